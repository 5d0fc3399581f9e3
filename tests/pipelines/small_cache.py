"""Cache of a few megabytes whose disk is filled or made read-only while the index is used.

    unshare --map-root-user --mount python -m tests.pipelines.small_cache FOLDER URL

The index at URL, in an object store, holds `FILES[:1]`. Mounts the cache's disk at FOLDER, visible
only to this process. Prints JSON with the error of each attempt, the live PMIDs that it found, the
published version after it, and the local copies that differ from the store.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from cluster.errors import CiteRayError
from cluster.index.manifest import current_version, read_manifest
from cluster.storage.locations import StoredLocation, list_files
from tests.pipelines.histories import SmallIndex
from tests.pipelines.small_disk import full, mount, read_only

SIZE = 8 << 20
FILES = [
    [(pmid, "aspirin and fever") for pmid in range(1, 40)],
    [(pmid, "heparin and blood") for pmid in range(30, 60)],
]
SMALL = ("index.bm25_over=[citations]",)


def half_copies(place: StoredLocation) -> list[str]:
    """Return the cached copies that differ from their objects."""
    copies = [p for p in place.copy.rglob("*") if p.is_file() and p.suffix != ".lock"]
    names = [str(p.relative_to(place.copy)) for p in copies]
    return [n for n in names if (place.copy / n).read_bytes() != (place / n).read_bytes()]


def attempt(place: StoredLocation, job: Callable[[], object]) -> dict[str, object]:
    found: object = None
    try:
        found = job()
        said = ""
    except CiteRayError as error:
        said = f"{type(error).__name__}: {error}"
    return {
        "said": said,
        "found": found,
        "version": current_version(place),
        "half": half_copies(place),
        "scratch": [] if not place.scratch.is_dir() else list(list_files(place.scratch)),
    }


def attempts(folder: Path, url: str) -> dict[str, dict[str, object]]:
    place = StoredLocation.at(url, folder / "cache")
    index = SmallIndex(place, applied=1, manifest=read_manifest(place), overrides=SMALL)

    # Stage before the disk is full, because SmallIndex takes incomplete staging for complete.
    index.stage(FILES[1:])

    def read() -> list[int]:
        return sorted(index.citations(range(1, 100)))

    def update() -> str:
        return index.update(FILES[1:]).version

    found: dict[str, dict[str, object]] = {}
    for name, job in (("read", read), ("update", update)):
        with full(folder, left=16 << 10):
            found[f"{name}, full"] = attempt(place, job)
        with read_only(folder):
            found[f"{name}, read-only"] = attempt(place, job)
        found[f"{name}, again"] = attempt(place, job)
    return found


def main(folder: Path, url: str) -> None:
    mount(folder, f"size={SIZE}")
    print(json.dumps(attempts(folder, url)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
