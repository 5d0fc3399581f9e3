"""Build steps, called directly as a Ray worker calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.models.store import checksum
from cluster.settings.settings import load_settings
from pipelines.indexing.staging.embed_passages import split_citations
from pipelines.indexing.staging.stage_citations import staged_dtype
from pipelines.indexing.staging.staging_tasks import EmbedAndStage
from tests.pipelines.staging import SPLITTER
from tests.small_index import citation
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_staged_vectors_record_the_encoder_dtype(tmp_path: Path, dtype: str) -> None:
    model = make_tiny_encoder(tmp_path)
    overrides = [f"encoder.dtype={dtype}", "encoder.max_tokens=32", "encoder.device=cpu"]
    overrides += [f"encoder.model=file:{model}"]
    settings = load_settings(overrides=overrides).encoder
    table = split_citations([citation(1, "Aspirin treats fever.")], SPLITTER)
    [source] = table.column("source").unique().to_pylist()
    step = EmbedAndStage(settings, checksum(model), {source: tmp_path / "staged"}, 2, None)
    assert step(table).num_rows == 1
    assert staged_dtype([tmp_path / "staged"]) == dtype
