"""Verify a stored index on a disk that has room for two of its segments.

    unshare --map-root-user --mount python -m tests.pipelines.verify.two_segments FOLDER URL

Mounts the disk at FOLDER, visible only to this process. Prints JSON with the findings, the number
of segments, and the error of an attempt to keep copies of three segments.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path

from cluster.errors import StorageError
from cluster.index.copies import fresh_copy
from cluster.index.layout import segment_directory
from cluster.index.manifest import Manifest, SegmentEntry, read_manifest
from cluster.storage.locations import StoredLocation
from pipelines.verify.verify_index import verify_index
from tests.pipelines.small_disk import mount

PAGE = 4096
# For folders, which take memory of a tmpfs too.
SLACK = 8 * PAGE


def pages(segment: SegmentEntry) -> int:
    """Return the bytes that the segment takes on a disk that stores whole pages."""
    return sum(-(-file.bytes // PAGE) * PAGE for file in segment.artefacts.values()) + PAGE


def keep_three(location: StoredLocation, manifest: Manifest) -> str:
    try:
        with ExitStack() as stack:
            for segment in manifest.shards[0].segments[:3]:
                folder = location / segment_directory(0, segment.id)
                stack.enter_context(fresh_copy(folder, segment.artefacts))
    except (OSError, StorageError) as error:
        return str(error)
    return ""


def main(folder: Path, url: str) -> None:
    location = StoredLocation.at(url, folder / "cache")
    manifest = read_manifest(location)
    mount(folder, f"size={2 * max(map(pages, manifest.segments)) + SLACK}")
    refused = keep_three(location, manifest)
    found = verify_index(location)
    findings = [str(finding) for finding in found.findings]
    print(json.dumps({"findings": findings, "segments": len(manifest.segments), "three": refused}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
