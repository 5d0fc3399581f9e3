"""Which markers the tests of a file can carry, read from its text, so that it need not be imported.

A file states the kind of its tests once, `pytestmark = pytest.mark.ray`; single tests may carry
further markers. A test without a kind is a unit test.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

KINDS = frozenset({"slow", "process", "model", "ray", "browser", "nightly"})
NAMES = KINDS | {"unit", "durability"}


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
    # The language of `-m` is that of Python's Boolean expressions.
    return bool(eval(expression, {"__builtins__": {}}, names))


def _possible_marks(path: Path) -> Iterator[frozenset[str]]:
    of_file, of_tests = _read_marks(path)
    for count in range(len(of_tests) + 1):
        for added in combinations(sorted(of_tests), count):
            yield of_file | frozenset(added)


def _read_marks(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """(markers that each test of the file carries, markers that some of them carry)."""
    module = ast.parse(path.read_text(encoding="utf-8"), str(path))
    everywhere = _named_marks(module)
    of_file: frozenset[str] = frozenset()
    for statement in module.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark":
            of_file = _named_marks(statement.value)
    return of_file, everywhere - of_file


def _named_marks(tree: ast.AST) -> frozenset[str]:
    """The markers of ours that appear in `tree` as `pytest.mark.NAME`."""
    return frozenset(
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pytest.mark"
    ).intersection(NAMES)
