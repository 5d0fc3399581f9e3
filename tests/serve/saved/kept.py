"""What users keep in a folder of a test, and the API over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.testclient import TestClient

from cluster.settings.settings import Settings, load_settings
from serve.http.api import create_api
from serve.http.service import Service
from serve.saved.keep import Saved, open_saved

KEYS = {name: {"X-API-Key": name[0] * 32} for name in ("alice", "bob")}
KEYS_ENV = " ".join(f"{name}:{name[0] * 32}" for name in KEYS)


def settings_at(folder: Path, **values: Any) -> Settings:
    url = f"sqlite:///{folder}/saved/citeray.db"
    told = {"serve.saved.url": url, **{f"serve.saved.{k}": v for k, v in values.items()}}
    return load_settings(overrides=[f"{name}={value}" for name, value in told.items()])


def saved_at(folder: Path, **values: Any) -> Saved:
    saved = open_saved(settings_at(folder, **values))
    assert saved is not None
    return saved


def client_of(service: Service, saved: Saved | None) -> TestClient:
    return TestClient(create_api(service, load_settings().serve, saved=saved))


@contextmanager
def keyed(http: httpx.Client, name: str) -> Iterator[httpx.Client]:
    """The client with the key of that name."""
    before = dict(http.headers)
    http.headers.update(KEYS[name])
    try:
        yield http
    finally:
        http.headers = httpx.Headers(before)
