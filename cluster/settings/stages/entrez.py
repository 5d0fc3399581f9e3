"""Settings of PubMed's E-utilities."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from cluster.settings.fields import Positive, Seconds, Strict


class EntrezSettings(Strict):
    """PubMed's E-utilities. A cached reply is valid for `cache_days`.

    `timeout_s` limits a single request, `deadline_s` a whole search or fetch with its retries.
    """

    base_url: str
    api_key_env: str
    email: str
    tool: str
    cache: Path
    cache_days: Annotated[float, Field(ge=0)]
    cache_mb: Positive
    timeout_s: Seconds
    deadline_s: Seconds
