"""Encoders and readers on OpenVINO give the results of torch, or fall back to torch."""

from __future__ import annotations

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from cluster.errors import InputError
from cluster.models import openvino_runtime
from cluster.models.encoder import Encoder
from cluster.models.model_cache import convert_to_openvino
from cluster.models.model_cache.cache_entries import MIN_COSINE
from cluster.models.openvino_runtime import OpenVinoForward, Runtime, choose_runtime
from cluster.models.reader import Reader
from tests.tiny_models import MAX_TOKENS, WIDTH, make_tiny_encoder, make_tiny_reader

pytestmark = [pytest.mark.model, pytest.mark.nightly]

TEXTS = [
    "aspirin reduces fever",
    "",
    "the",
    "patients with a tumour of the heart in the study of the gene, and with bleeding",
    "the heart " * MAX_TOKENS,
    *("a protein inhibits the gene in the cell" for _ in range(9)),
]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("models"))


def encoder(model_dir: Path, runtime: Runtime, dtype: str = "float32", **settings: Any) -> Encoder:
    return Encoder(model_dir, device="cpu", dtype=dtype, runtime=runtime, threads=1, **settings)


@pytest.mark.parametrize("batch_size", [1, 4, 32])
def test_openvino_vectors_match_torch(model_dir: Path, batch_size: int) -> None:
    compiled = encoder(model_dir, "openvino", batch_size=batch_size)
    assert compiled.runtime == "openvino"
    np.testing.assert_allclose(
        compiled.encode(TEXTS), encoder(model_dir, "torch").encode(TEXTS), atol=1e-4
    )


def test_openvino_keeps_the_pooling(model_dir: Path, tmp_path: Path) -> None:
    transformer = Transformer(str(model_dir), max_seq_length=MAX_TOKENS)
    first_token = Pooling(WIDTH, pooling_mode="cls")
    SentenceTransformer(modules=[transformer, first_token], device="cpu").save(
        str(tmp_path / "cls")
    )
    found = encoder(tmp_path / "cls", "openvino").encode(TEXTS)
    np.testing.assert_allclose(found, encoder(tmp_path / "cls", "torch").encode(TEXTS), atol=1e-4)
    assert np.abs(found - encoder(model_dir, "openvino").encode(TEXTS)).max() > 0.1


def test_openvino_encoder_is_thread_safe(model_dir: Path) -> None:
    compiled = encoder(model_dir, "openvino")
    expected = compiled.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(compiled.encode, [TEXTS] * 8):
            np.testing.assert_allclose(found, expected, atol=1e-6)


def test_openvino_reader_matches_torch(tmp_path: Path) -> None:
    folder = make_tiny_reader(tmp_path)
    texts = ["aspirin treats fever .", "", "a gene inhibits the tumour in patients . " * 9]
    limits = {"dtype": "float32", "max_tokens": 32, "batch_size": 2, "device": "cpu"}
    plain, compiled = (
        Reader.load(folder, runtime=runtime, **limits).read("what treats fever ?", texts)
        for runtime in ("torch", "openvino")
    )
    for wanted, found in zip(plain, compiled, strict=True):
        assert found.relevance == pytest.approx(wanted.relevance, abs=1e-4)
        assert found.yes == pytest.approx(wanted.yes, abs=1e-4)
        assert [n.begin for n in found.names] == [n.begin for n in wanted.names]


def test_auto_runtime_is_openvino_except_for_small_models(
    model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert encoder(model_dir, "auto").runtime == "torch"
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path))
    monkeypatch.setattr(convert_to_openvino, "SMALL_BYTES", 0)
    assert encoder(model_dir, "auto").runtime == "openvino"


def test_failed_conversion_falls_back_to_torch(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("No conversion rule found for aten::odd")

    monkeypatch.setattr(openvino_runtime, "convert", fail)
    with caplog.at_level(logging.WARNING):
        found = encoder(model_dir, "openvino")
    assert found.runtime == "torch"
    assert "runs on torch: OpenVINO cannot run it (No conversion rule" in caplog.text
    np.testing.assert_array_equal(found.encode(TEXTS), encoder(model_dir, "torch").encode(TEXTS))


@pytest.mark.parametrize("value", [torch.nan, 1.0])
def test_different_results_fall_back_to_torch(
    model_dir: Path, value: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    true_call = OpenVinoForward.__call__

    def wrong(self: OpenVinoForward, **inputs: Any) -> Any:
        output = true_call(self, **inputs)
        output["last_hidden_state"][:, -1] = 9 * value
        return output

    monkeypatch.setattr(OpenVinoForward, "__call__", wrong)
    with caplog.at_level(logging.WARNING):
        found = encoder(model_dir, "openvino")
    assert found.runtime == "torch"
    assert f"{MIN_COSINE} is the least accepted" in caplog.text


def test_converted_model_is_cached_by_weights(
    model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "store"))
    monkeypatch.setattr(convert_to_openvino, "SMALL_BYTES", 0)
    first = encoder(model_dir, "openvino").encode(TEXTS)
    other = encoder(make_tiny_encoder(tmp_path, seed=1), "openvino")
    assert len(list((tmp_path / "store" / "openvino").iterdir())) == 2
    assert np.abs(other.encode(TEXTS) - first).max() > 0.1
    monkeypatch.setattr(convert_to_openvino, "_converted", None)
    again = encoder(model_dir, "openvino")
    assert again.runtime == "openvino"
    np.testing.assert_array_equal(again.encode(TEXTS), first)


def test_openvino_telemetry_is_disabled(model_dir: Path) -> None:
    encoder(model_dir, "openvino")
    assert sys.modules["openvino_telemetry"] is None


def test_missing_openvino_package_is_reported(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino_runtime, "is_installed", lambda: False)
    assert encoder(model_dir, "auto").runtime == "torch"
    with pytest.raises(InputError, match=r'not installed: install it with `pip install "citeray'):
        encoder(model_dir, "openvino")


def test_openvino_is_rejected_on_a_gpu() -> None:
    facts: dict[str, Any] = {"device": "cuda", "dtype": torch.float32, "threads": 1, "name": "m"}
    assert choose_runtime(None, [], runtime="auto", **facts) == "torch"
    with pytest.raises(InputError, match=r"set encoder\.runtime to auto or torch"):
        choose_runtime(None, [], runtime="openvino", **facts)
