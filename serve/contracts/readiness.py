"""What `/readyz` reports."""

from __future__ import annotations

from pydantic import BaseModel


class Readiness(BaseModel):
    """State of the graph.

    `coverage` is the number of shards that answer out of all, such as "2/2". `stages` maps each
    stage to "ready", "loading" or "lost". `versions` maps each stage that reads the index to the
    version that one of its replicas serves, and `index_version` is the oldest version among the
    shards, which was published on the day `index_date` (UTC). `refused` maps a stage to the reason
    why it does not serve the published version. `stores` has the digests of the locations of the
    index and of the database (`store_digests`).
    """

    ready: bool
    index_version: str
    last_source: str
    index_date: str
    coverage: str
    citations: int
    models: dict[str, str]
    stages: dict[str, str]
    versions: dict[str, str]
    refused: dict[str, str]
    stores: dict[str, str] = {}
