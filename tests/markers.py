"""Read the markers that the tests of a file may have from its text, without importing it.

A file states the kind of its tests once, as `pytestmark = pytest.mark.ray`; single tests may have
further markers. A test without a kind is a unit test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

KINDS = frozenset({"slow", "process", "model", "ray", "browser", "nightly"})
NAMES = KINDS | {"unit", "durability"}
_MARK = re.compile(r"\bpytest\.mark\.(\w+)")
# Regular expressions, because parsing all files takes seconds in each worker.
_FILE_MARKS = re.compile(r"^pytestmark\s*=\s*(\[[^\]]*\]|[^\n]*)", re.MULTILINE)


class _Marks(dict[str, bool]):
    def __missing__(self, name: str) -> bool:
        return False


def can_match(path: Path, expression: str) -> bool:
    """Return False if no test of the file `path` can match the `-m` expression."""
    return any(matches(marks, expression) for marks in _possible_marks(path))


def matches(marks: frozenset[str], expression: str) -> bool:
    """Return whether a test with `marks` matches the `-m` expression."""
    with_unit = marks if marks & KINDS else marks | {"unit"}
    names = _Marks(dict.fromkeys(with_unit, True))
    # The syntax of `-m` is that of Python's Boolean expressions.
    return bool(eval(expression, {"__builtins__": {}}, names))


def _possible_marks(path: Path) -> Iterator[frozenset[str]]:
    of_file, of_tests = _read_marks(path)
    for count in range(len(of_tests) + 1):
        for added in combinations(sorted(of_tests), count):
            yield of_file | frozenset(added)


def _read_marks(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Return (markers of each test in the file, further markers of some of its tests)."""
    text = path.read_text(encoding="utf-8")
    everywhere = _named_marks(text)
    of_file = _FILE_MARKS.search(text)
    always = _named_marks(of_file[1]) if of_file else frozenset()
    return always, everywhere - always


def _named_marks(text: str) -> frozenset[str]:
    """Return CiteRay's markers that appear in `text` as `pytest.mark.NAME`."""
    return frozenset(_MARK.findall(text)).intersection(NAMES)
