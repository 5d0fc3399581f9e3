"""Jobs on a small disk, which may be filled or made read-only while they run.

    unshare --map-root-user --mount python -m tests.pipelines.small_disk index|copies|segments \\
        FOLDER [URL]

Mounts the disk at FOLDER, visible only to this process. It holds an index, or local copies of the
index at URL, in an object store (for `copies` that of `FILES[:1]`). Prints JSON with the results.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import CiteRayError, StorageError
from cluster.index.copies import fresh_copy
from cluster.index.layout import segment_directory
from cluster.index.manifest import SegmentEntry, current_version, read_manifest
from cluster.storage.locations import StoredLocation, list_files
from cluster.storage.whole_files import require_writable
from pipelines.verify.verify_index import verify_index
from tests.pipelines.histories import SMALL, SmallIndex

ROOT = Path(__file__).resolve().parents[2]
OWN_MOUNTS = ["unshare", "--map-root-user", "--mount"]
SIZE = f"size={8 << 20}"
PAGE = 4096
# For folders, which take memory of a tmpfs too.
SLACK = 8 * PAGE
FILES = [
    [(pmid, "aspirin and fever") for pmid in range(1, 40)],
    [(pmid, "heparin and blood") for pmid in range(30, 60)],
]
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


def with_index(folder: Path, _: str) -> dict[str, Any]:
    """Build, update and compact an index on the disk.

    Return the error and the result of each attempt, and the state after it.
    """
    mount(folder, SIZE)
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
    """Read and update a stored index whose local copies are on the disk, as `with_index` does."""
    mount(folder, SIZE)
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


def with_segments(folder: Path, url: str) -> dict[str, Any]:
    """Verify a stored index on a disk that has room for two of its segments.

    Return the findings, the number of segments, and the error of an attempt to copy three segments.
    """
    location = StoredLocation.at(url, folder / "cache")
    manifest = read_manifest(location)
    mount(folder, f"size={2 * max(map(pages, manifest.segments)) + SLACK}")
    three = ""
    try:
        with ExitStack() as stack:
            for segment in manifest.shards[0].segments[:3]:
                place = location / segment_directory(0, segment.id)
                stack.enter_context(fresh_copy(place, segment.artefacts))
    except (OSError, StorageError) as error:
        three = str(error)
    findings = [str(finding) for finding in verify_index(location).findings]
    return {"findings": findings, "segments": len(manifest.segments), "three": three}


def pages(segment: SegmentEntry) -> int:
    """Return the bytes that the segment takes on a disk that stores whole pages."""
    return sum(-(-file.bytes // PAGE) * PAGE for file in segment.artefacts.values()) + PAGE


PROGRAMS = {"index": with_index, "copies": with_copies, "segments": with_segments}

if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]](Path(sys.argv[2]), "".join(sys.argv[3:]))))
