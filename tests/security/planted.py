"""A pickle that leaves a mark when it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


class Planted:
    """Pickles to code that creates the file `mark`."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (Path.touch, (self.mark,))
