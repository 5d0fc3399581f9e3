"""Models on OpenVINO give the results of torch or fall back to it; cached, they run without it."""

from __future__ import annotations

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from cluster.errors import InputError
from cluster.index.tokens.codec import learn_codec
from cluster.models import openvino_runtime
from cluster.models.encoder import Encoder
from cluster.models.model_cache import cache_entries, convert_to_openvino, converted_encoder
from cluster.models.model_cache.cache_entries import MIN_COSINE, Conditions
from cluster.models.model_cache.converted_encoder import ConvertedEncoder, find_encoder
from cluster.models.model_cache.converted_reader import find_reader
from cluster.models.openvino_runtime import OpenVinoForward, choose_runtime
from cluster.models.reader import Reader
from cluster.settings.settings import load_settings
from cluster.settings.stages.encoder import EncoderSettings
from tests.tiny_models import MAX_TOKENS, WIDTH, make_tiny_encoder, make_tiny_reader

pytestmark = [pytest.mark.model, pytest.mark.nightly]

TEXTS = [
    "aspirin reduces fever",
    "",
    "the [SEP] heart",
    "the heart " * MAX_TOKENS,
    *("a protein inhibits the gene in the cell" for _ in range(9)),
]
PREFIX = "the study of "
LIMITS: dict[str, Any] = {"max_tokens": MAX_TOKENS, "batch_size": 4}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary model store that also caches small models."""
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path / "store"))
    monkeypatch.setattr(convert_to_openvino, "SMALL_BYTES", 0)
    return tmp_path / "store"


def settings_of(**changes: Any) -> EncoderSettings:
    asked = {"device": "cpu", "dtype": "float32", "runtime": "openvino", "threads": 1, **LIMITS}
    return load_settings().encoder.model_copy(update=asked | changes)


def conditions(folder: Path) -> Conditions:
    return Conditions.of(settings_of(), folder)


def load(folder: Path, **settings: Any) -> Encoder:
    how = {"device": "cpu", "dtype": "float32", "runtime": "openvino", "threads": 1, **LIMITS}
    return Encoder(folder, **{**how, **settings})


@pytest.fixture
def folder(store: Path, tmp_path: Path) -> Path:
    return make_tiny_encoder(tmp_path)


def test_cached_encoder_matches_torch(folder: Path) -> None:
    full = load(folder, query_prefix=PREFIX)
    kept = find_encoder(settings_of(query_prefix=PREFIX), folder)
    assert isinstance(kept, ConvertedEncoder)
    assert (kept.dtype, kept.dimensions) == ("float32", WIDTH)
    np.testing.assert_allclose(kept.encode(TEXTS), full.encode(TEXTS), atol=1e-5)
    assert kept.encode([]).shape == (0, WIDTH)
    tokens = zip(kept.token_vectors(TEXTS), full.token_vectors(TEXTS), strict=True)
    for found, wanted in tokens:
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    asked = zip(kept.encode_queries(TEXTS), full.encode_queries(TEXTS), strict=True)
    for one, other in asked:
        np.testing.assert_allclose(one.vector, other.vector, atol=1e-5)
        np.testing.assert_allclose(one.tokens, other.tokens, atol=1e-3)
        assert one.tokens.dtype == np.float16


def test_cached_token_codes_match_torch(folder: Path) -> None:
    full = load(folder)
    # Learn from other texts; otherwise the bounds would be components of the texts compared below.
    sample = ["a tumour of the gene in the study", "patients with fever and bleeding"]
    codec = learn_codec(np.concatenate(full.token_vectors(sample)), 8, 2)
    kept = find_encoder(settings_of(), folder)
    assert kept is not None
    wanted = full.embed(TEXTS, full.compress_by(codec, 1))
    found = kept.embed(TEXTS, kept.compress_by(codec, 1))
    np.testing.assert_allclose(found.vectors, wanted.vectors, atol=1e-5)
    assert [c.shape for c in found.codes] == [c.shape for c in wanted.codes]
    differing = sum((a != b).sum() for a, b in zip(found.codes, wanted.codes, strict=True))
    # A component that lies on a bound may be rounded either way.
    assert differing <= sum(c.size for c in wanted.codes) // 50
    with pytest.raises(ValueError, match="a cached encoder does not pool tokens"):
        kept.compress_by(codec, 2)


@pytest.mark.usefixtures("store")
def test_openvino_reader_matches_torch_cached_or_not(tmp_path: Path) -> None:
    folder = make_tiny_reader(tmp_path)
    how: dict[str, Any] = {"device": "cpu", "dtype": "float32", "threads": 1, **LIMITS}
    plain = Reader.load(folder, runtime="torch", **how)
    full = Reader.load(folder, runtime="openvino", **how)
    kept = find_reader(conditions(folder), **LIMITS)
    assert kept is not None
    questions = ("what ?", "what treats the fever ? " * MAX_TOKENS)
    for question, reader in product(questions, (full, kept)):
        pairs = zip(plain.read(question, TEXTS), reader.read(question, TEXTS), strict=True)
        for wanted, found in pairs:
            assert found.relevance == pytest.approx(wanted.relevance, abs=1e-4)
            assert found.yes == pytest.approx(wanted.yes, abs=1e-4)
            assert [n.begin for n in found.names] == [n.begin for n in wanted.names]
            spans = [(s.begin, s.end) for s in wanted.sentences]
            assert [(s.begin, s.end) for s in found.sentences] == spans
            leans = [s.lean for s in wanted.sentences]
            assert [s.lean for s in found.sentences] == pytest.approx(leans, abs=1e-3)


def test_cached_models_run_without_torch(folder: Path) -> None:
    load(folder)
    program = (
        "import sys; from pathlib import Path\n"
        "from cluster.models.model_cache.converted_encoder import find_encoder\n"
        "from cluster.settings.stages.encoder import EncoderSettings\n"
        f"asked = EncoderSettings.model_validate({settings_of().model_dump()!r})\n"
        f"kept = find_encoder(asked, Path({str(folder)!r}))\n"
        "assert kept.encode(['the heart']).shape == (1, kept.dimensions)\n"
        "import cluster.models.model_cache.converted_reader, serve.search.rerank_passages\n"
        "print(sorted({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.stdout.strip(), ran.returncode) == ("[]", 0), ran.stderr


def test_cache_key_covers_settings_versions_and_files(
    folder: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_encoder(settings_of(), folder) is None
    load(folder)
    assert find_encoder(settings_of(), folder) is not None
    others = [{"threads": 2}, {"dtype": "bfloat16"}, {"runtime": "torch"}, {"device": "cuda"}]
    assert [find_encoder(settings_of(**other), folder) for other in others] == [None] * 4
    with monkeypatch.context() as patch:
        patch.setattr(cache_entries, "_version", lambda _: "0.0.1")
        assert find_encoder(settings_of(), folder) is None
    [record] = (store / "kept").iterdir()
    whole = record.read_bytes()
    for damage in ("{", "{}", "[]"):
        record.write_text(damage, encoding="utf-8")
        assert find_encoder(settings_of(), folder) is None
    record.write_bytes(whole)
    models = [*(store / "openvino").rglob("model.*")]
    for path in models:
        path.rename(path.with_suffix(f"{path.suffix}.aside"))
    assert find_encoder(settings_of(), folder) is None
    for path in models:
        path.with_suffix(f"{path.suffix}.aside").rename(path)
    (folder / "config_sentence_transformers.json").write_text("{}", encoding="utf-8")
    assert find_encoder(settings_of(), folder) is None


def test_auto_device_is_not_cached_if_there_is_a_gpu(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(conditions(folder), device="auto")
    assert asked.is_cacheable
    monkeypatch.setattr(cache_entries, "_GPUS", (str(tmp_path),))
    assert not asked.is_cacheable
    assert conditions(folder).is_cacheable


def test_other_pooling_is_kept_but_not_cached(folder: Path, tmp_path: Path) -> None:
    transformer = Transformer(str(folder), max_seq_length=MAX_TOKENS)
    first_token = Pooling(WIDTH, pooling_mode="cls")
    plain = SentenceTransformer(modules=[transformer, first_token], device="cpu")
    plain.save(str(tmp_path / "cls"))
    compiled = load(tmp_path / "cls")
    assert compiled.runtime == "openvino"
    by_torch = load(tmp_path / "cls", runtime="torch").encode(TEXTS)
    np.testing.assert_allclose(compiled.encode(TEXTS), by_torch, atol=1e-4)
    assert np.abs(by_torch - load(folder).encode(TEXTS)).max() > 0.1
    assert find_encoder(settings_of(), tmp_path / "cls") is None


def test_model_with_different_results_is_not_cached(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(states: np.ndarray, _: np.ndarray) -> np.ndarray:
        return states[:, 0]

    monkeypatch.setattr(converted_encoder, "_means", wrong)
    assert load(folder).runtime == "openvino"
    assert find_encoder(settings_of(), folder) is None


@pytest.mark.parametrize("batch_size", [1, 4, 32])
def test_openvino_vectors_match_torch(folder: Path, batch_size: int) -> None:
    compiled = load(folder, batch_size=batch_size)
    assert compiled.runtime == "openvino"
    np.testing.assert_allclose(
        compiled.encode(TEXTS), load(folder, runtime="torch").encode(TEXTS), atol=1e-4
    )


def test_openvino_encoder_is_thread_safe(folder: Path) -> None:
    compiled = load(folder)
    expected = compiled.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(compiled.encode, [TEXTS] * 8):
            np.testing.assert_allclose(found, expected, atol=1e-6)


def test_auto_runtime_is_openvino_except_for_small_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_tiny_encoder(tmp_path)
    assert load(folder, runtime="auto").runtime == "torch"
    monkeypatch.setenv("CITERAY_MODELS", str(tmp_path))
    monkeypatch.setattr(convert_to_openvino, "SMALL_BYTES", 0)
    assert load(folder, runtime="auto").runtime == "openvino"


def test_failed_conversion_falls_back_to_torch(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("No conversion rule found for aten::odd")

    monkeypatch.setattr(openvino_runtime, "convert", fail)
    with caplog.at_level(logging.WARNING):
        found = load(folder)
    assert found.runtime == "torch"
    assert "runs on torch: OpenVINO cannot run it (No conversion rule" in caplog.text
    np.testing.assert_array_equal(found.encode(TEXTS), load(folder, runtime="torch").encode(TEXTS))


@pytest.mark.parametrize("value", [torch.nan, 1.0])
def test_different_results_fall_back_to_torch(
    folder: Path, value: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    true_call = OpenVinoForward.__call__

    def wrong(self: OpenVinoForward, **inputs: Any) -> Any:
        output = true_call(self, **inputs)
        output["last_hidden_state"][:, -1] = 9 * value
        return output

    monkeypatch.setattr(OpenVinoForward, "__call__", wrong)
    with caplog.at_level(logging.WARNING):
        found = load(folder)
    assert found.runtime == "torch"
    assert f"{MIN_COSINE} is the least accepted" in caplog.text


def test_converted_model_is_cached_by_weights(
    folder: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(folder).encode(TEXTS)
    other = load(make_tiny_encoder(tmp_path / "other", seed=1))
    assert len(list((store / "openvino").iterdir())) == 2
    assert np.abs(other.encode(TEXTS) - first).max() > 0.1
    monkeypatch.setattr(convert_to_openvino, "_converted", None)
    again = load(folder)
    assert again.runtime == "openvino"
    np.testing.assert_array_equal(again.encode(TEXTS), first)


def test_openvino_telemetry_is_disabled(folder: Path) -> None:
    load(folder)
    assert sys.modules["openvino_telemetry"] is None


def test_missing_openvino_package_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino_runtime, "is_installed", lambda: False)
    assert load(folder, runtime="auto").runtime == "torch"
    with pytest.raises(InputError, match=r'not installed: install it with `pip install "citeray'):
        load(folder)


def test_openvino_is_rejected_on_a_gpu() -> None:
    facts: dict[str, Any] = {"device": "cuda", "dtype": torch.float32, "threads": 1, "name": "m"}
    assert choose_runtime(None, [], runtime="auto", **facts) == "torch"
    with pytest.raises(InputError, match=r"set encoder\.runtime to auto or torch"):
        choose_runtime(None, [], runtime="openvino", **facts)
