"""Digests of the locations of the index and of the database of saved data."""

from __future__ import annotations

import os
from hashlib import sha256
from urllib.parse import urlsplit

from cluster.settings.settings import Settings


def store_digests(settings: Settings) -> dict[str, str]:
    """Return digests of the absolute locations, by the setting that names each.

    Equal digests mean the same location, so that a client can tell whether an endpoint uses the
    stores that the client would read, without the endpoint publishing its paths.
    """
    parts = urlsplit(settings.serve.saved.url)
    if parts.scheme.startswith("sqlite"):
        saved = os.path.realpath(parts.path.removeprefix("/"))
    else:
        saved = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    index = settings.index.path
    places = {
        "index.path": index if isinstance(index, str) else os.path.realpath(index),
        "serve.saved.url": saved,
    }
    return {name: sha256(location.encode()).hexdigest()[:16] for name, location in places.items()}
