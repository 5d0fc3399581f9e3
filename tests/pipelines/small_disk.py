"""Index on a disk of a few megabytes that is filled or made read-only between jobs.

    unshare --map-root-user --mount python -m tests.pipelines.small_disk FOLDER

Mounts the disk at FOLDER, visible only to this process. Prints JSON with the error of each attempt
and the version and live citations after it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cluster.errors import CiteRayError
from cluster.index.manifest import current_version
from cluster.storage.whole_files import require_writable
from tests.pipelines.histories import SmallIndex

SIZE = 8 << 20
BASE = [[(pmid, "aspirin and fever") for pmid in range(1, 40)]]
UPDATE = [[(pmid, "heparin and blood") for pmid in range(30, 60)]]
AFTER = list(range(1, 60))


def mount(folder: Path, options: str) -> None:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    subprocess.run(command, check=True)


@contextmanager
def full(folder: Path, left: int) -> Iterator[None]:
    """Fill the disk until `left` bytes are free."""
    filler = folder / "filler"
    block = bytes(4096)
    with filler.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(block)
        except OSError:
            stream.truncate(max(stream.tell() - left, 0))
    yield
    filler.unlink()


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    mount(folder, "remount,ro")
    yield
    mount(folder, "remount,rw")


def attempt(index: SmallIndex, job: Callable[[], object]) -> dict[str, object]:
    """Run `job` and return its error message and what a reader finds afterwards."""
    try:
        job()
        said = ""
    except CiteRayError as error:
        said = f"{type(error).__name__}: {error}"
    version = current_version(index.path)
    live = found = 0
    if version:
        live = len(index.citations(AFTER))
        found = sum(r.frequencies(["fever"], "citations")["fever"] for r in index.readers())
    aside = [p.name for p in index.path.rglob("*.partial")]
    return {"said": said, "version": version, "live": live, "found": found, "aside": aside}


def attempts(folder: Path) -> dict[str, dict[str, object]]:
    index = SmallIndex(folder / "index")
    jobs: Sequence[tuple[str, Callable[[], object]]] = (
        ("build", lambda: index.build(BASE)),
        ("update", lambda: index.update(UPDATE)),
        ("compact", index.compact),
    )
    found: dict[str, dict[str, object]] = {}
    for name, job in jobs:
        with full(folder, left=64 << 10):
            found[f"{name}, full"] = attempt(index, job)
        with read_only(folder):
            found[f"{name}, read-only"] = attempt(index, job)
            check = attempt(index, lambda: require_writable(index.path))
            found[f"{name}, checked"] = check
        found[f"{name}, again"] = attempt(index, job)
    return found


def main(folder: Path) -> None:
    mount(folder, f"size={SIZE}")
    print(json.dumps(attempts(folder)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
