"""Measure where query expansion with other names of an entity helps the search.

    python -m benchmarks.bench_expansion QUESTIONS --index INDEX --output FOLDER [--seed 0]

Searches four forms of the same questions with the same gold documents: plain; short (only the names
of the entities); renamed (one entity replaced by another of its names in the vocabulary, drawn with
the seed); and short and renamed. Questions without an entity that has another name are left out.
Prints for each form a table of `citeray ablate`: presets with and without expansion, documents MAP
with paired differences.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.questions import Row, asked, overrides, question_parser
from benchmarks.smallest import parse_arguments
from cluster.records import Entity
from cluster.settings.settings import load_settings
from serve.graph.load_stages import load_expander, open_manifest
from serve.question.expand_question import expansion_terms

SMALLEST = "QUESTIONS --index INDEX --output FOLDER --limit 6 --systems bm25"

Entities = Callable[[str], Sequence[Entity]]


def renamed(body: str, entities: Sequence[Entity], chance: random.Random) -> str | None:
    """Replace one entity by another of its names. Return None if no entity has another name."""
    chosen = [(e, names) for e in entities if (names := expansion_terms(body, [e]))]
    if not chosen:
        return None
    entity, names = chance.choice(chosen)
    return f"{body[: entity.begin]}{chance.choice(names)}{body[entity.end :]}"


def forms_of(rows: Sequence[Row], entities: Entities, seed: int) -> dict[str, list[Row]]:
    """Return the same questions in each form."""
    chance = random.Random(seed)
    forms: dict[str, list[Row]] = {"plain": [], "short": [], "renamed": [], "short renamed": []}
    for row in rows:
        body = str(row["body"])
        found = entities(body)
        other = renamed(body, found, chance)
        short = " ".join(entity.text for entity in found)
        other_short = renamed(short, entities(short), chance)
        if other is None or other_short is None:
            continue
        for name, text in zip(forms, (body, short, other, other_short), strict=True):
            forms[name].append({**row, "body": text})
    return forms


def main() -> None:
    parser = question_parser(__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--systems", nargs="+", default=["citeray", "citeray-ner"])
    parser.add_argument("--vary", action="append", default=[])
    given = parse_arguments(parser, SMALLEST)
    settings = load_settings(given.config, overrides(given))
    expander = load_expander(settings, open_manifest(settings))
    for name, chosen in forms_of(asked(given), expander.entities, given.seed).items():
        folder = given.output / name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "questions.json"
        path.write_text(json.dumps({"questions": chosen}, ensure_ascii=False), encoding="utf-8")
        print(f"\n{name}: {len(chosen)} questions", flush=True)
        command = [sys.executable, "-m", "commands.cli", "ablate", *given.systems]
        command += [word for value in given.vary for word in ("--vary", value)]
        command += ["--questions", str(path), "--gold", str(path), "--output", str(folder)]
        chosen_settings = overrides(given, "llm.kind=none")
        command += [word for setting in chosen_settings for word in ("--set", setting)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
