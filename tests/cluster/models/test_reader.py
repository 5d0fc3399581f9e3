"""Windows of the reader over long texts, and rejected model folders."""

from __future__ import annotations

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cluster.errors import InputError
from cluster.models.reader import Reader, cut_question, encode_pairs
from tests.tiny_models import make_tiny_reader, tiny_tokenizer

pytestmark = pytest.mark.model

ASKED = "what treats fever ?"
LONG = "Aspirin treats fever. " * 50 + "The tumour bleeding."


def load(path: Path, max_tokens: int = 32) -> Reader:
    return Reader.load(
        make_tiny_reader(path), device="cpu", dtype="float32", max_tokens=max_tokens, batch_size=2
    )


def test_readings_are_independent_of_the_batch(tmp_path: Path) -> None:
    reader = load(tmp_path)
    texts = ["aspirin treats fever .", "the heart", "", "a gene inhibits the tumour .", LONG]
    together = reader.read(ASKED, texts)
    for text, found in zip(texts, together, strict=True):
        [alone] = reader.read(ASKED, [text])
        assert alone.relevance == pytest.approx(found.relevance, abs=1e-5)
        assert [n.begin for n in alone.names] == [n.begin for n in found.names]
        assert [s.end for s in alone.sentences] == [s.end for s in found.sentences]
    assert reader.read("what ?", []) == []


def test_windows_cover_a_long_text(tmp_path: Path) -> None:
    reader = load(tmp_path)
    windows = list(reader.score(ASKED, ["the heart", LONG]))
    assert [windows[0].row, windows[-1].row] == [0, 1]
    assert len(windows) > 10
    held = {begin for window in windows[1:] for begin in window.offsets[:, 0].tolist()}
    words = [n for n, letter in enumerate(LONG) if n == 0 or LONG[n - 1] == " "]
    assert held.issuperset(words)
    for window in windows:
        assert len(window.logits) <= 32
        assert len(window.seen) == len(window.offsets)
    # The last window comes first, and has the maximum length.
    assert windows[1].offsets[-1, 1] == len(LONG)
    assert len(windows[1].logits) == 32
    for later, earlier in itertools.pairwise(windows[1:]):
        assert earlier.offsets[0, 0] < later.offsets[0, 0] < earlier.offsets[-1, 1]
    [found] = reader.read(ASKED, [LONG])
    assert LONG[found.sentences[-1].begin : found.sentences[-1].end] == "The tumour bleeding."
    assert len(found.sentences) == 51


def test_long_question_is_cut_to_half_of_the_window() -> None:
    tokenizer = tiny_tokenizer()
    for most, words in [(16, 8), (32, 16), (64, 32)]:
        asked = "what treats fever " * 50
        cut = cut_question(tokenizer, asked, most)
        assert (asked.startswith(cut), len(cut.split())) == (True, words)
        inputs = encode_pairs(tokenizer, asked, ["aspirin", LONG], most)
        assert inputs["input_ids"].shape[1] <= most
        assert len(inputs["input_ids"]) > 2
    assert cut_question(tokenizer, ASKED, 32) == ASKED


def test_reader_is_thread_safe(tmp_path: Path) -> None:
    reader = load(tmp_path)
    several_windows = LONG[:150]
    texts = [f"aspirin treats fever {'in the heart ' * n}." for n in range(16)]
    alone = [reader.read(ASKED, [text, several_windows]) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda text: reader.read(ASKED, [text, several_windows]), texts))
    for wanted, given in zip(alone, found, strict=True):
        for one, other in zip(wanted, given, strict=True):
            assert other.relevance == pytest.approx(one.relevance, abs=1e-5)
            assert [s.end for s in other.sentences] == [s.end for s in one.sentences]


def test_windows_are_batched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = load(tmp_path)
    model, sizes = reader._model, []

    class Counted:
        device = model.device

        def __call__(self, **inputs: Any) -> Any:
            sizes.append(len(inputs["input_ids"]))
            return model(**inputs)

    monkeypatch.setattr(reader, "_model", Counted())
    assert len(list(reader.score(ASKED, [LONG]))) == sum(sizes) > 10
    assert max(sizes) == 2


def test_oversized_window_is_rejected(tmp_path: Path) -> None:
    folder = make_tiny_reader(tmp_path)
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings["model_max_length"] = 48
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(InputError, match=r"reader\.max_tokens is 64, but reader reads at most 48"):
        Reader.load(folder, device="cpu", max_tokens=64)


def test_model_with_other_labels_is_rejected(tmp_path: Path) -> None:
    folder = make_tiny_reader(tmp_path, ("O", "B-Disease", "I-Disease"))
    with pytest.raises(InputError, match="its labels are not O, B-ANSWER"):
        Reader.load(folder)
