"""Finds the PubMed files that a build was asked for, in the order they apply."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path

from cluster.errors import InputError

SUFFIXES = (".xml", ".xml.gz")


def natural_key(name: str) -> tuple[tuple[int, str], ...]:
    """Sorts names by the numbers in them, so that n0010 follows n0009 and n10 follows n9."""
    parts = re.split(r"(\d+)", name)
    return tuple((int(p), "") if p.isdigit() else (-1, p) for p in parts)


def _expand(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        found = [p for p in path.iterdir() if p.name.endswith(SUFFIXES)]
        if not found:
            raise InputError(f"{pattern}: no {' or '.join(SUFFIXES)} file in this folder")
        return found
    if path.is_file():
        return [path]
    matches = [Path(p) for p in glob.glob(pattern, recursive=True)]
    if not matches:
        raise InputError(f"{pattern}: no such file, folder or match")
    return [p for p in matches if p.is_file()]


def find_sources(patterns: Sequence[str]) -> list[Path]:
    """Absolute paths of the files, folders and globs, in number order of their names.

    The number order is the order in which PubMed's baseline and update files apply.
    Raises InputError for a pattern without a match and for two files of one name.
    """
    if not patterns:
        raise InputError("no source given; name PubMed XML files, folders or globs")
    found = {p.resolve() for pattern in patterns for p in _expand(pattern)}
    by_name: dict[str, Path] = {}
    for path in sorted(found):
        other = by_name.setdefault(path.name, path)
        if other != path:
            raise InputError(
                f"two sources are named {path.name}: {other} and {path}; names give the order, "
                "so each must be there once"
            )
    return [by_name[name] for name in sorted(by_name, key=natural_key)]
