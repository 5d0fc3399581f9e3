"""Digests tell whether two settings name the same index and the same database."""

import os
from pathlib import Path

import pytest

from cluster.settings.settings import load_settings
from cluster.settings.store_digests import store_digests


def digests(index: str, saved: str) -> dict[str, str]:
    return store_digests(
        load_settings(overrides=[f"index.path={index}", f"serve.saved.url={saved}"])
    )


def test_relative_places_depend_on_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").symlink_to(tmp_path / "a")
    monkeypatch.chdir(tmp_path / "a")
    here = digests("index", "sqlite:///kept/citeray.db")
    monkeypatch.chdir(tmp_path)
    assert here == digests("b/index", f"sqlite:///{os.getcwd()}/a/kept/citeray.db")
    other = digests("index", "sqlite:///kept/citeray.db")
    assert not set(here.values()) & set(other.values())


def test_stores_and_servers_are_compared_without_the_user() -> None:
    one = digests("s3://bucket/index", "postgresql://one@db/citeray")
    assert one == digests("s3://bucket/index", "postgresql+psycopg://two@db/citeray")
    assert one["index.path"] != digests("s3://bucket/other", "")["index.path"]
    assert (
        one["serve.saved.url"]
        != digests("s3://bucket/index", "postgresql://db/b")["serve.saved.url"]
    )
