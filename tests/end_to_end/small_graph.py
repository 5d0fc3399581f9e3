"""Settings and index of a small graph in four shards, and the question for it."""

from __future__ import annotations

from pathlib import Path

from cluster.index.manifest import EncoderEntry
from cluster.models.encoder import Encoder
from cluster.models.store import checksum
from cluster.settings.settings import Settings
from pipelines.sample.generate_citations import generate_citations
from tests.end_to_end.command import small_settings
from tests.publish_manifest import publish
from tests.serve.http_server import free_port
from tests.small_index import make_index

SHARDS = 4
WHOLE = f"{SHARDS}/{SHARDS}"
# Without the reranker, which may miss its deadline on a busy machine.
ASKED = {"question": "protein", "system": "hybrid"}
# On nodes with few CPUs. Replicas without CPUs could be placed on the head and be lost with it.
LIGHT = ("gateway", "expander", "encoder", "writer")
ON_NODES = ["serve.host=0.0.0.0", *(f"serve.{stage}.cpus=0.1" for stage in LIGHT)]
TWO_GATEWAYS = [f"serve.gateway.{limit}_replicas=2" for limit in ("min", "max")]
# Longer than the deadline of an answer, shorter than a hang.
ANSWER_S = 60


def graph_settings(folder: Path, encoder: Path) -> list[str]:
    """Return overrides for a graph over a small index with one CPU per shard."""
    overrides = small_settings(folder / "index", encoder, SHARDS)
    overrides += [f"serve.port={free_port()}", "serve.shard.cpus=1", "serve.follow_s=1"]
    return [*overrides, f"serve.request_deadline_s={ANSWER_S / 2}"]


def make_graphs_index(
    folder: Path, encoder: Path, settings: Settings, shards: int = SHARDS
) -> None:
    model = Encoder(encoder, device="cpu", dtype="float32", max_tokens=64, threads=1)
    citations = [c for c in generate_citations(80, seed=3) if c.search_text]
    manifest = make_index(folder / "index", citations, shards=shards, encoder=model)
    made_by = EncoderEntry(
        model=settings.encoder.model, sha256=checksum(encoder), dimensions=32, max_tokens=64
    )
    publish(folder / "index", manifest.model_copy(update={"encoder": made_by}))
