from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cluster.errors import IndexFormatError
from cluster.index.manifest import Manifest
from cluster.models import check_dtype
from cluster.models.adapters import weights_checksum
from cluster.models.encoder import Encoder
from cluster.models.model_cache.cache_entries import MIN_COSINE
from cluster.settings.settings import Settings, load_settings
from serve.graph.follow_versions import check_follows
from serve.graph.load_stages import (
    load_calibration,
    load_encoder,
    load_late_interaction,
    load_reranker,
)
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


def built_with(path: Path, settings: Settings, dtype: str = "float32") -> Manifest:
    manifest = make_index(path, [citation(1, "Aspirin treats fever.")])
    entry = manifest.encoder.model_copy(
        update={
            "model": settings.encoder.model,
            "adapter": settings.encoder.adapter,
            "sha256": weights_checksum(settings.encoder),
            "dtype": dtype,
        }
    )
    return manifest.model_copy(update={"encoder": entry})


def test_encoder_applies_the_adapter_of_the_index(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    tuned = settings(base, f"encoder.adapter=file:{adapter}")
    plain = load_encoder(settings(base), built_with(tmp_path / "plain", settings(base)))
    changed = load_encoder(tuned, built_with(tmp_path / "tuned", tuned))
    texts = ["aspirin treats fever"]
    assert not np.allclose(changed.encode(texts), plain.encode(texts), atol=1e-2)


def test_index_of_another_adapter_is_refused(base: Path, adapter: Path, tmp_path: Path) -> None:
    plain, tuned = settings(base), settings(base, f"encoder.adapter=file:{adapter}")
    without, of_adapter = built_with(tmp_path / "a", plain), built_with(tmp_path / "b", tuned)
    with pytest.raises(IndexFormatError, match=r"built with .* with file:.*tuned"):
        load_encoder(plain, of_adapter)
    with pytest.raises(IndexFormatError, match=r"encoder of the settings is .*tuned"):
        load_encoder(tuned, without)
    with pytest.raises(IndexFormatError, match="start the graph again"):
        check_follows(without, of_adapter)


def test_reranker_can_have_its_own_adapter(base: Path, adapter: Path, tmp_path: Path) -> None:
    own = settings(base, f"reranker.adapter=file:{adapter}")
    encoder = load_encoder(own, built_with(tmp_path, own))
    passages = ["aspirin treats fever", "the gene inhibits a protein"]
    tuned = load_reranker(own).score("which drug", passages)
    plain = load_late_interaction(own, encoder).score("which drug", passages)
    assert not np.allclose(tuned, plain, atol=1e-3)


@pytest.mark.parametrize("dtype", ["", "float32", "float16"])
def test_index_of_another_dtype_is_accepted_if_vectors_match(
    base: Path, tmp_path: Path, dtype: str
) -> None:
    assert (
        load_encoder(settings(base), built_with(tmp_path, settings(base), dtype)).dtype == "float32"
    )


def test_index_of_another_dtype_is_refused_if_vectors_differ(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Coarse(Encoder):
        def encode(self, texts: object) -> np.ndarray:
            vectors = np.zeros((len(texts), 2), np.float32)  # type: ignore[arg-type]
            angle = np.arccos(MIN_COSINE - 1e-4) if self.dtype == "bfloat16" else 0.0
            vectors[:] = np.cos(angle), np.sin(angle)
            return vectors

    manifest = built_with(tmp_path, settings(base), "bfloat16")
    monkeypatch.setattr(check_dtype, "Encoder", Coarse)
    monkeypatch.setattr("cluster.models.encoder.Encoder", Coarse)
    with pytest.raises(
        IndexFormatError, match=r"made in bfloat16.* cosine of 0\.9989, below 0\.999"
    ):
        load_encoder(settings(base), manifest)


def test_corrections_of_the_shipped_reader_apply_to_no_other_reader() -> None:
    shipped = load_settings().reader
    other = shipped.model_copy(update={"model": "file:another"})
    zero_shot = shipped.model_copy(update={"kind": "zero-shot"})
    assert load_calibration(shipped).related > 0
    assert load_calibration(shipped).no_weight > 1
    for reader in (other, zero_shot):
        assert (load_calibration(reader).related, load_calibration(reader).no_weight) == (0, 1)
    assert load_calibration(other).types == load_calibration(shipped).types
