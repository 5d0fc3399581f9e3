"""Publish a manifest unchanged and without a lease, for tests of code that reads an index."""

import json

from cluster.index.layout import CURRENT
from cluster.index.manifest import Manifest, write_manifest
from cluster.storage.locations import Location
from cluster.storage.whole_files import write_atomically


def publish(index: Location, manifest: Manifest) -> None:
    pointer = {"version": manifest.version, "sha256": write_manifest(index, manifest)}
    write_atomically(index / CURRENT, json.dumps(pointer).encode())
