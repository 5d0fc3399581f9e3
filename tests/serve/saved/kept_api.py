"""The API over what users keep."""

from __future__ import annotations

from starlette.testclient import TestClient

from cluster.settings.settings import load_settings
from serve.http.api import create_api
from serve.http.service import Service
from serve.saved.keep import Saved


def client_of(service: Service, saved: Saved | None) -> TestClient:
    return TestClient(create_api(service, load_settings().serve, saved=saved))
