"""Stores of saved data in a test's folder; quick to import for tests that start processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster.settings.settings import Settings, load_settings
from serve.saved.stores import Saved, open_saved

KEYS = {name: {"X-API-Key": name[0] * 32} for name in ("alice", "bob", "carol")}
KEYS_ENV = " ".join(f"{name}:{name[0] * 32}" for name in KEYS)

URL_FILE = "database.url"


def url_of(folder: Path) -> str:
    """Return the URL in the file `URL_FILE`, or that of an SQLite database in the folder."""
    named = folder / URL_FILE
    return named.read_text() if named.exists() else f"sqlite:///{folder}/saved/citeray.db"


def settings_at(folder: Path, **values: Any) -> Settings:
    values_by_key = {
        "serve.saved.url": url_of(folder),
        **{f"serve.saved.{k}": v for k, v in values.items()},
    }
    return load_settings(overrides=[f"{name}={value}" for name, value in values_by_key.items()])


def saved_at(folder: Path, **values: Any) -> Saved:
    saved = open_saved(settings_at(folder, **values))
    assert saved is not None
    return saved
