"""Measure where query expansion with other names of an entity helps the search.

    python -m benchmarks.bench_expansion QUESTIONS --index INDEX --output FOLDER [--seed 0]

Searches four forms of the same questions with the same gold documents: plain; short (only the names
of the entities); renamed (one entity replaced by another of its names in the vocabulary, drawn with
the seed); and short and renamed. Questions without an entity that has another name are left out.
Prints for each form a table of `citeray ablate`: presets with and without expansion, documents MAP
with paired differences.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.smallest import parse_arguments
from cluster.records import Entity
from cluster.settings.settings import load_settings
from serve.graph.load_stages import load_expander, open_manifest
from serve.question.expand_question import expansion_terms

SMALLEST = "QUESTIONS --index INDEX --output FOLDER --limit 6 --systems bm25"

Row = dict[str, Any]
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--systems", nargs="+", default=["citeray", "citeray-ner"])
    parser.add_argument("--vary", action="append", default=[])
    parser.add_argument("--limit", type=int, help="number of questions read (default all)")
    asked = parse_arguments(parser, SMALLEST)
    settings = load_settings(None, [f"index.path={asked.index}"])
    expander = load_expander(settings, open_manifest(settings))
    rows = json.loads(asked.questions.read_text(encoding="utf-8"))["questions"][: asked.limit]
    for name, chosen in forms_of(rows, expander.entities, asked.seed).items():
        folder = asked.output / name.replace(" ", "-")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "questions.json"
        path.write_text(json.dumps({"questions": chosen}, ensure_ascii=False), encoding="utf-8")
        print(f"\n{name}: {len(chosen)} questions", flush=True)
        command = [sys.executable, "-m", "commands.cli", "ablate", *asked.systems]
        command += [word for value in asked.vary for word in ("--vary", value)]
        command += ["--questions", str(path), "--gold", str(path), "--output", str(folder)]
        command += ["--set", f"index.path={asked.index}", "--set", "llm.kind=none"]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
