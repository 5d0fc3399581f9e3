"""Encoders and readers on OpenVINO give the results of torch, or run on torch."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from cluster.errors import InputError
from cluster.models import convert_to_openvino, openvino_runtime
from cluster.models.encoder import Encoder
from cluster.models.kept.keep_models import MIN_COSINE
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


def slowed(forward: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, cls: type) -> None:
    def slow(*args: Any, **inputs: Any) -> Any:
        time.sleep(0.3)
        return forward(*args, **inputs)

    monkeypatch.setattr(cls, forward.__name__, slow)


@pytest.mark.parametrize("batch_size", [1, 4, 32])
def test_vectors_are_those_of_torch_for_any_batch_size(model_dir: Path, batch_size: int) -> None:
    compiled = encoder(model_dir, "openvino", batch_size=batch_size)
    assert compiled.runtime == "openvino"
    np.testing.assert_allclose(
        compiled.encode(TEXTS), encoder(model_dir, "torch").encode(TEXTS), atol=1e-4
    )


def test_token_vectors_are_those_of_torch(model_dir: Path) -> None:
    found = encoder(model_dir, "openvino").token_vectors(TEXTS)
    for compiled, plain in zip(
        found, encoder(model_dir, "torch").token_vectors(TEXTS), strict=True
    ):
        np.testing.assert_allclose(compiled, plain, atol=1e-4)


def test_pooling_of_the_model_is_kept(model_dir: Path, tmp_path: Path) -> None:
    transformer = Transformer(str(model_dir), max_seq_length=MAX_TOKENS)
    first_token = Pooling(WIDTH, pooling_mode="cls")
    SentenceTransformer(modules=[transformer, first_token], device="cpu").save(
        str(tmp_path / "cls")
    )
    found = encoder(tmp_path / "cls", "openvino").encode(TEXTS)
    np.testing.assert_allclose(found, encoder(tmp_path / "cls", "torch").encode(TEXTS), atol=1e-4)
    assert np.abs(found - encoder(model_dir, "openvino").encode(TEXTS)).max() > 0.1


def test_several_threads_may_encode_at_once(model_dir: Path) -> None:
    compiled = encoder(model_dir, "openvino")
    expected = compiled.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(compiled.encode, [TEXTS] * 8):
            np.testing.assert_allclose(found, expected, atol=1e-6)


def test_readings_are_those_of_torch(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("slow", ["torch", "openvino"])
def test_auto_takes_the_faster_one(
    model_dir: Path, tmp_path: Path, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert encoder(model_dir, "auto").runtime == "torch"
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path))
    monkeypatch.setattr(convert_to_openvino, "SMALL_BYTES", 0)
    monkeypatch.setattr(openvino_runtime, "BUDGET_S", 0.1)
    if slow == "openvino":
        slowed(OpenVinoForward.__call__, monkeypatch, OpenVinoForward)
    else:
        # In the class, which OpenVINO's forward pass does not call.
        from transformers import BertModel

        slowed(BertModel.forward, monkeypatch, BertModel)
    assert encoder(model_dir, "auto").runtime == {"torch": "openvino", "openvino": "torch"}[slow]


@pytest.mark.parametrize("faster", [False, True])
def test_auto_keeps_to_its_first_choice_for_the_same_number_of_threads(
    model_dir: Path, tmp_path: Path, faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path))
    monkeypatch.setattr(convert_to_openvino, "SMALL_BYTES", 0)
    measured = iter([faster, not faster])
    monkeypatch.setattr(openvino_runtime, "_is_faster", lambda *_: next(measured))
    names = {True: "openvino", False: "torch"}
    assert encoder(model_dir, "auto").runtime == names[faster]
    assert encoder(model_dir, "auto").runtime == names[faster]
    other = Encoder(model_dir, device="cpu", dtype="float32", runtime="auto", threads=2)
    assert other.runtime == names[not faster]


def test_a_model_that_cannot_be_converted_runs_on_torch_and_the_log_says_so(
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
def test_a_model_whose_results_change_runs_on_torch_and_the_log_says_so(
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


def test_a_large_model_is_converted_once_and_one_with_other_weights_again(
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


def test_nothing_reports_use_over_the_network(model_dir: Path) -> None:
    encoder(model_dir, "openvino")
    assert sys.modules["openvino_telemetry"] is None


def test_without_the_package_auto_is_torch_and_openvino_an_error_with_the_fix(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino_runtime, "is_installed", lambda: False)
    assert encoder(model_dir, "auto").runtime == "torch"
    with pytest.raises(InputError, match=r'not installed: install it with `pip install "citeray'):
        encoder(model_dir, "openvino")


def test_openvino_is_refused_for_a_gpu_and_auto_is_torch_there() -> None:
    facts: dict[str, Any] = {"device": "cuda", "dtype": torch.float32, "threads": 1, "name": "m"}
    assert choose_runtime(None, [], runtime="auto", **facts) == "torch"
    with pytest.raises(InputError, match=r"set encoder\.runtime to auto or torch"):
        choose_runtime(None, [], runtime="openvino", **facts)
