"""Find the PubMed files given to a build, in the order in which they apply."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from pathlib import Path

from cluster.errors import InputError
from cluster.pubmed.source_order import apply_order, check_one_baseline, numbered_place
from cluster.pubmed.source_order import natural_key as natural_key
from cluster.storage.object_store import (
    File,
    StoredFile,
    glob_store,
    is_store,
    is_stored,
    join_url,
    list_folder,
)

# Folders of NCBI's server; `citeray download` uses the same names.
BASELINE, UPDATES = "baseline", "updatefiles"
SUFFIXES = (".xml", ".xml.gz")


def _expand(pattern: str) -> Sequence[File]:
    if is_store(pattern):
        return _expand_stored(pattern)
    path = Path(pattern)
    if path.is_dir():
        folders = (path, path / BASELINE, path / UPDATES)
        inside = (p for folder in folders if folder.is_dir() for p in folder.iterdir())
        found = _existing(p for p in inside if p.name.endswith(SUFFIXES))
        if not found:
            raise InputError(f"{pattern}: no {' or '.join(SUFFIXES)} file in this folder")
        return found
    if path.is_file():
        return [path]
    files = _existing(map(Path, glob.glob(pattern, recursive=True)))
    if not files:
        raise InputError(f"{pattern}: no such file, folder or match")
    return files


def _existing(paths: Iterable[Path]) -> list[Path]:
    """Return the files among `paths`; raise InputError for a link to a file that is missing."""
    found = list(paths)
    if dangling := [path for path in found if path.is_symlink() and not path.exists()]:
        raise InputError(
            f"{dangling[0]}: a symbolic link to {dangling[0].readlink()}, which does not exist; "
            "restore the file or remove the link"
        )
    return [path for path in found if path.is_file()]


def _expand_stored(url: str) -> list[StoredFile]:
    if "*" in url or "[" in url:
        found = glob_store(url)
    elif is_stored(url):
        return [StoredFile(url)]
    else:
        folders = (url, join_url(url, BASELINE), join_url(url, UPDATES))
        found = [f for folder in folders for f in list_folder(folder)]
        found = [f for f in found if f.name.endswith(SUFFIXES)]
    if not found:
        raise InputError(
            f"{url}: no such object or match, nor a folder with {' or '.join(SUFFIXES)} objects"
        )
    return found


def find_sources(patterns: Sequence[str]) -> list[File]:
    """Return the files that paths, folders and globs name, in the order in which they apply.

    Names that differ only in their numbers, such as those of PubMed's files, are in the order of
    the numbers. Other files stay in the order of `patterns`, and those of one folder or glob are in
    the order of their names. A folder gives its XML files and those in its `baseline` and
    `updatefiles`. Local paths are made absolute. Raises InputError for a pattern without a match,
    for two files of one name, and for files of two years' baselines.
    """
    if not patterns:
        raise InputError("no source given; name PubMed XML files, folders or globs")
    by_name: dict[str, File] = {}
    for pattern in patterns:
        for found in sorted(_expand(pattern), key=lambda file: (natural_key(file.name), str(file))):
            file = found.resolve() if isinstance(found, Path) else found
            other = by_name.setdefault(file.name, file)
            if other != file:
                raise InputError(
                    f"two sources are named {file.name}: {other} and {file}; an index knows its "
                    "sources by their names, so rename one of them or leave it out"
                )
    check_one_baseline(by_name)
    return [by_name[name] for name in apply_order(by_name, numbered_place)]
