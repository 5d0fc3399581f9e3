"""Store few-shot examples: one JSON file per round of feedback, with all examples up to it.

`FOLDER/round-0002.json` is `{"format", "round", "sources", "examples"}`. A round is never
rewritten, so that an earlier run can be reproduced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cluster.errors import InputError
from cluster.parse_json import parse_json
from cluster.read_given import read_given
from cluster.storage.whole_files import sha256_of, write_atomically
from serve.answer.examples.read_examples import FewShotExample, curate_examples

FORMAT = 1
_FILE = re.compile(r"round-(\d{4,})\.json")
_EXAMPLES = TypeAdapter(list[FewShotExample])


@dataclass(frozen=True, slots=True)
class Round:
    """All examples up to a round; `sources` maps the SHA-256 of each source file to its name."""

    number: int
    sources: dict[str, str]
    examples: tuple[FewShotExample, ...]


def stored_rounds(folder: Path) -> list[int]:
    """Return the numbers of the stored rounds in order, [] if there is no folder."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(match[1]) for name in names if (match := _FILE.fullmatch(name)))


def read_round(folder: Path) -> Round:
    """Return the last round; raises InputError if there is none or its file has another format."""
    stored = stored_rounds(folder)
    if not stored:
        raise InputError(
            f"{folder}: no few-shot round is stored; create one with `citeray remember`"
        )
    path = _path(folder, stored[-1])
    value = parse_json(read_given(path), str(path))
    try:
        if value["format"] != FORMAT:
            raise InputError(f"{path}: format {value['format']!r}, this CiteRay reads {FORMAT}")
        examples = _EXAMPLES.validate_python(value["examples"])
        return Round(int(value["round"]), dict(value["sources"]), tuple(examples))
    except (KeyError, TypeError, ValueError, ValidationError) as error:
        why = " ".join(str(error).split())
        raise InputError(f"{path}: not a few-shot round: {why:.200}") from None


def store_examples(folder: Path, sources: Sequence[Path], number: int | None = None) -> Round:
    """Store the examples of `sources` as round `number`, by default the one after the last.

    The examples of earlier rounds are kept, except that a newer answer to the same question
    replaces the older one. If the last round contains these sources already, it is returned and
    nothing is written. Raises InputError if `number` is not after the last round, and the errors of
    `curate_examples`.
    """
    stored = stored_rounds(folder)
    last = read_round(folder) if stored else Round(0, {}, ())
    # Read before hashing: this rejects special files, which could be endless.
    curated = [curate_examples(path) for path in sources]
    digests = {sha256_of(path): path.name for path in sources}
    if stored and digests.keys() <= last.sources.keys() and number in (None, last.number):
        return last
    number = number or last.number + 1
    if number <= last.number:
        raise InputError(
            f"{folder}: round {number} cannot be added after round {last.number}, which is "
            "stored; leave the number out or take another folder"
        )
    examples = {example.id: example for example in last.examples}
    for found in curated:
        examples.update({example.id: example for example in found})
    new = Round(number, {**last.sources, **digests}, tuple(examples.values()))
    write_atomically(_path(folder, number), _json(new).encode())
    return new


def _path(folder: Path, number: int) -> Path:
    return folder / f"round-{number:04}.json"


def _json(new: Round) -> str:
    value: dict[str, Any] = {
        "format": FORMAT,
        "round": new.number,
        "sources": new.sources,
        "examples": [asdict(example) for example in new.examples],
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"
