"""An adapter in the settings, as the service loads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cluster.errors import IndexFormatError
from cluster.index.manifest import Manifest
from cluster.models.adapters import weights_checksum
from cluster.settings.settings import Settings, load_settings
from serve.graph.load_stages import load_encoder, load_late_interaction, load_reranker
from serve.graph.versions.follow_versions import check_follows
from tests.small_index import citation, make_index
from tests.tiny_adapter import make_tiny_adapter
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "store"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_adapter(base, tmp_path_factory.mktemp("adapter") / "tuned")


def settings(base: Path, *changes: str) -> Settings:
    tiny = ["encoder.dtype=float32", "encoder.max_tokens=32", "encoder.threads=1"]
    return load_settings(overrides=[f"encoder.model=file:{base}", *tiny, *changes])


def built_with(path: Path, settings: Settings) -> Manifest:
    manifest = make_index(path, [citation(1, "Aspirin treats fever.")])
    entry = manifest.encoder.model_copy(
        update={
            "model": settings.encoder.model,
            "adapter": settings.encoder.adapter,
            "sha256": weights_checksum(settings.encoder),
        }
    )
    return manifest.model_copy(update={"encoder": entry})


def test_index_is_searched_with_the_adapter_that_made_it(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    tuned = settings(base, f"encoder.adapter=file:{adapter}")
    plain = load_encoder(settings(base), built_with(tmp_path / "plain", settings(base)))
    changed = load_encoder(tuned, built_with(tmp_path / "tuned", tuned))
    texts = ["aspirin treats fever"]
    assert not np.allclose(changed.encode(texts), plain.encode(texts), atol=1e-2)


def test_index_of_another_adapter_is_refused_and_not_followed(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    plain, tuned = settings(base), settings(base, f"encoder.adapter=file:{adapter}")
    without, of_adapter = built_with(tmp_path / "a", plain), built_with(tmp_path / "b", tuned)
    with pytest.raises(IndexFormatError, match=r"built with .* with file:.*tuned"):
        load_encoder(plain, of_adapter)
    with pytest.raises(IndexFormatError, match=r"encoder of the settings is .*tuned"):
        load_encoder(tuned, without)
    with pytest.raises(IndexFormatError, match="start the graph again"):
        check_follows(without, of_adapter)


def test_reranker_has_an_adapter_of_its_own_and_the_encoder_none(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    own = settings(base, f"reranker.adapter=file:{adapter}")
    encoder = load_encoder(own, built_with(tmp_path, own))
    passages = ["aspirin treats fever", "the gene inhibits a protein"]
    tuned = load_reranker(own).score("which drug", passages)
    plain = load_late_interaction(own, encoder).score("which drug", passages)
    assert not np.allclose(tuned, plain, atol=1e-3)
