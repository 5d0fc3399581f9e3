"""Jobs on a disk of a few megabytes that is filled or made read-only while they run.

    unshare --map-root-user --mount python -m tests.pipelines.small_disk FOLDER [URL]

Mounts the disk at FOLDER, visible only to this process. It holds an index or, given a URL, local
copies of the index of `FILES[:1]` at URL, in an object store. Prints JSON with the error and the
result of each attempt, and the state after it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import CiteRayError
from cluster.index.manifest import current_version, read_manifest
from cluster.storage.locations import StoredLocation, list_files
from cluster.storage.whole_files import require_writable
from tests.pipelines.histories import SmallIndex

ROOT = Path(__file__).resolve().parents[2]
OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]
SIZE = 8 << 20
FILES = [
    [(pmid, "aspirin and fever") for pmid in range(1, 40)],
    [(pmid, "heparin and blood") for pmid in range(30, 60)],
]
SMALL = ("index.bm25_over=[citations]",)
Job = Callable[[], object]
Look = Callable[[], dict[str, Any]]


def require_mounts() -> None:
    """Skip the test if this user may not mount a disk."""
    command = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if not shutil.which("unshare") or subprocess.run(command, check=False).returncode:
        pytest.skip("this machine lets nobody mount a disk of their own")


def run_there(module: str, *arguments: object) -> Any:
    """Run a module that mounts a disk, visible only to itself, and return the JSON it prints."""
    command = [*OWN_MOUNTS, sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


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


def attempt(job: Job, look: Look) -> dict[str, Any]:
    found: object = None
    try:
        found = job()
        said = ""
    except CiteRayError as error:
        said = f"{type(error).__name__}: {error}"
    return {"said": said, "found": found, **look()}


def attempts(folder: Path, left: int, jobs: Mapping[str, Job], look: Look) -> dict[str, Any]:
    """Run each job on a full disk, on a read-only one, and again on a sound one."""
    found = {}
    for name, job in jobs.items():
        with full(folder, left):
            found[f"{name}, full"] = attempt(job, look)
        with read_only(folder):
            found[f"{name}, read-only"] = attempt(job, look)
            found[f"{name}, checked"] = attempt(lambda: require_writable(folder / "index"), look)
        found[f"{name}, again"] = attempt(job, look)
    return found


def with_index(folder: Path) -> dict[str, Any]:
    """Build, update and compact an index on the disk."""
    index = SmallIndex(folder / "index")

    def look() -> dict[str, Any]:
        version = current_version(index.path)
        live = len(index.citations(range(1, 60))) if version else 0
        readers = index.readers() if version else []
        fever = sum(r.frequencies(["fever"], "citations")["fever"] for r in readers)
        aside = [p.name for p in index.path.rglob("*.partial")]
        return {"version": version, "live": live, "fever": fever, "aside": aside}

    jobs = {
        "build": lambda: index.build(FILES[:1]).version,
        "update": lambda: index.update(FILES[1:]).version,
        "compact": lambda: index.compact().version,
    }
    return attempts(folder, 64 << 10, jobs, look)


def with_copies(folder: Path, url: str) -> dict[str, Any]:
    """Read and update a stored index whose local copies are on the disk."""
    location = StoredLocation.at(url, folder / "cache")
    index = SmallIndex(location, applied=1, manifest=read_manifest(location), overrides=SMALL)
    # Stage before the disk is full, because SmallIndex takes incomplete staging for complete.
    index.stage(FILES[1:])

    def look() -> dict[str, Any]:
        copies = [p for p in location.copy.rglob("*") if p.is_file() and p.suffix != ".lock"]
        names = [str(p.relative_to(location.copy)) for p in copies]
        half = [n for n in names if (location.copy / n).read_bytes() != (location / n).read_bytes()]
        scratch = list(list_files(location.scratch)) if location.scratch.is_dir() else []
        return {"version": current_version(location), "half": half, "scratch": scratch}

    jobs: dict[str, Job] = {
        "read": lambda: sorted(index.citations(range(1, 100))),
        "update": lambda: index.update(FILES[1:]).version,
    }
    return attempts(folder, 16 << 10, jobs, look)


def main(folder: Path, url: str = "") -> None:
    mount(folder, f"size={SIZE}")
    print(json.dumps(with_copies(folder, url) if url else with_index(folder)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
