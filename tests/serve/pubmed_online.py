"""PubMed client without rate limit and back-off, for a local server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from cluster.entrez.entrez_client import Patience
from cluster.entrez.rate_limiter import RateLimiter
from cluster.entrez.search_pubmed import PubMed
from cluster.settings.settings import load_settings
from cluster.settings.stages.entrez import EntrezSettings
from serve.search.pubmed.search_online import Online
from tests.serve.eutils_server import EUtils

# Name of an environment variable that is not set.
KEY = "CITERAY_TEST_NCBI_KEY"


class QuickOnline(Online):
    """PubMed stage without rate limit and back-off."""

    def __init__(self, server: EUtils, folder: Path) -> None:
        self._pubmed = make(server, folder)


def settings_for(server: EUtils, folder: Path, **changes: Any) -> EntrezSettings:
    local = {"base_url": server.url, "api_key_env": KEY, "cache": folder / "cache"}
    return load_settings().entrez.model_copy(update={**local, **changes})


def make(server: EUtils, folder: Path, patience: Patience | None = None, **changes: Any) -> PubMed:
    return PubMed(
        settings_for(server, folder, **changes),
        limiter=RateLimiter(100_000),
        patience=patience or Patience(backoff_s=0.001),
    )


def search(pubmed: PubMed, limit: int = 10, query: str = "egfr", **options: Any) -> list[int]:
    return asyncio.run(pubmed.search(query, limit=limit, **options))


def fetch(pubmed: PubMed, *pmids: int, **options: Any) -> list[int]:
    return [each.pmid for each in asyncio.run(pubmed.fetch(pmids, **options))]
