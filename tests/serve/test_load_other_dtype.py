"""An index whose vectors were made in another number type than this machine computes in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cluster.errors import IndexFormatError
from cluster.index.manifest import Manifest
from cluster.models import check_dtype
from cluster.models.adapters import weights_checksum
from cluster.models.encoder import Encoder
from cluster.models.kept.keep_models import MIN_COSINE
from cluster.settings.settings import Settings, load_settings
from serve.graph.load_stages import load_encoder
from tests.small_index import citation, make_index
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    model = make_tiny_encoder(tmp_path_factory.mktemp("model"))
    tiny = ["encoder.dtype=float32", "encoder.max_tokens=32", "encoder.threads=1"]
    return load_settings(overrides=[f"encoder.model=file:{model}", *tiny])


def made_in(dtype: str, settings: Settings, path: Path) -> Manifest:
    manifest = make_index(path, [citation(1, "Aspirin treats fever.")])
    of_model = {"sha256": weights_checksum(settings.encoder), "dtype": dtype}
    return manifest.model_copy(update={"encoder": manifest.encoder.model_copy(update=of_model)})


@pytest.mark.parametrize("dtype", ["", "float32", "float16"])
def test_an_index_is_served_in_another_number_type_with_nearly_the_same_vectors(
    settings: Settings, tmp_path: Path, dtype: str
) -> None:
    assert load_encoder(settings, made_in(dtype, settings, tmp_path)).dtype == "float32"


def test_an_index_is_refused_where_the_vectors_differ_more(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Coarse(Encoder):
        def encode(self, texts: object) -> np.ndarray:
            vectors = np.zeros((len(texts), 2), np.float32)  # type: ignore[arg-type]
            angle = np.arccos(MIN_COSINE - 1e-4) if self.dtype == "bfloat16" else 0.0
            vectors[:] = np.cos(angle), np.sin(angle)
            return vectors

    monkeypatch.setattr(check_dtype, "Encoder", Coarse)
    monkeypatch.setattr("cluster.models.encoder.Encoder", Coarse)
    with pytest.raises(
        IndexFormatError, match=r"made in bfloat16.* cosine of 0\.9989, below 0\.999"
    ):
        load_encoder(settings, made_in("bfloat16", settings, tmp_path))
