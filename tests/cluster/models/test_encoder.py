from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from cluster.errors import InputError
from cluster.models.batches import MOST_PADDING, batched_by_length, one_ahead
from cluster.models.encoder import Encoder
from cluster.models.hardware import choose_device, choose_dtype
from cluster.text.tokenise import make_tokeniser
from tests.tiny_models import MAX_TOKENS, WIDTH, make_tiny_encoder

pytestmark = pytest.mark.model


TEXTS = [
    "aspirin reduces fever",
    "the",
    "",
    "patients with a tumour of the heart in the study of the gene, and with bleeding",
    "aspirin",
    "a protein inhibits the gene in the cell",
    "the risk of bleeding",
]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def encoder(model_dir: Path) -> Encoder:
    return Encoder(model_dir, device="cpu", dtype="float32", batch_size=2)


def test_vectors_equal_sentence_transformers(encoder: Encoder, model_dir: Path) -> None:
    expected = SentenceTransformer(str(model_dir), device="cpu").encode(TEXTS, batch_size=1)
    vectors = encoder.encode(TEXTS)
    assert (vectors.dtype, vectors.shape) == (np.float32, (len(TEXTS), WIDTH))
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_bfloat16_vectors_are_close_to_float32(encoder: Encoder, model_dir: Path) -> None:
    vectors = Encoder(model_dir, device="cpu", dtype="bfloat16").encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert (vectors * encoder.encode(TEXTS)).sum(axis=1).min() > 0.99


def test_empty_input_gives_empty_arrays(encoder: Encoder, model_dir: Path) -> None:
    assert encoder.encode([]).shape == (0, WIDTH)
    assert encoder.token_vectors([]) == []
    assert make_tokeniser(model_dir, 16)([]) == []
    assert encoder.embed_tokens([], None).vectors.shape == (0, WIDTH)


def test_max_tokens_truncates_texts(model_dir: Path) -> None:
    short = Encoder(model_dir, device="cpu", dtype="float32", max_tokens=4)
    # 4 tokens are [CLS], two words and [SEP].
    first, second, third = short.encode(["the heart fever", "the heart blood", "the gene fever"])
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert float(first @ third) < 0.999
    assert short.max_tokens == 4


@pytest.mark.parametrize("max_tokens", [0, 2, MAX_TOKENS + 1])
def test_invalid_max_tokens_is_rejected(model_dir: Path, max_tokens: int) -> None:
    with pytest.raises(InputError, match=f"max_tokens is {max_tokens}, .* from 3 to {MAX_TOKENS}"):
        Encoder(model_dir, device="cpu", max_tokens=max_tokens)


def test_query_prefix_applies_to_queries_only(encoder: Encoder, model_dir: Path) -> None:
    prefixed = Encoder(model_dir, device="cpu", dtype="float32", query_prefix="study: ")
    (asked,) = prefixed.encode_queries(["the gene"])
    np.testing.assert_allclose(asked.vector, encoder.encode(["study: the gene"])[0], atol=1e-6)
    # Tokens of the prefix are left out of the token vectors.
    (tokens,) = encoder.token_vectors(["study: the gene"])
    assert len(asked.tokens) == len(encoder.token_vectors(["the gene"])[0])
    np.testing.assert_allclose(asked.tokens, tokens[-len(asked.tokens) :], atol=1e-3)
    np.testing.assert_allclose(
        prefixed.encode(["the gene"]), encoder.encode(["the gene"]), atol=1e-6
    )


def test_token_vectors_exclude_special_tokens_and_padding(encoder: Encoder) -> None:
    # One token per word and one for the comma; the snowman is the unknown token, which counts.
    texts = ["aspirin reduces fever", "", "\u2603", "the gene, the cell"]
    shapes = [vectors.shape for vectors in encoder.token_vectors(texts)]
    assert shapes == [(3, WIDTH), (0, WIDTH), (1, WIDTH), (5, WIDTH)]


def test_vectors_are_independent_of_the_batch(encoder: Encoder, model_dir: Path) -> None:
    for batch_size in (1, 100):
        other = Encoder(model_dir, device="cpu", dtype="float32", batch_size=batch_size)
        np.testing.assert_allclose(other.encode(TEXTS), encoder.encode(TEXTS), atol=1e-5)
    together = encoder.token_vectors(TEXTS)
    for text, vectors in zip(TEXTS, together, strict=True):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(vectors, encoder.token_vectors([text])[0], atol=1e-5)


def test_token_offsets_are_code_points(encoder: Encoder) -> None:
    text = "\U0001f9ec gene, " + "the heart " * MAX_TOKENS
    offsets = encoder.token_offsets(text)
    assert [text[b:e] for b, e in offsets[:4]] == ["\U0001f9ec", "gene", ",", "the"]
    assert text[slice(*offsets[-1])] == "heart"
    assert len(offsets) == 3 + 2 * MAX_TOKENS


def test_token_offsets_do_not_affect_encoding_in_other_threads(encoder: Encoder) -> None:
    expected = encoder.encode(TEXTS)
    found: list[np.ndarray] = []
    thread = threading.Thread(target=lambda: found.extend(encoder.encode(TEXTS) for _ in range(5)))
    thread.start()
    while thread.is_alive():
        encoder.token_offsets("the heart " * 100)
    assert len(found) == 5
    for vectors in found:
        np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_folder_without_model_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not an encoder's folder"):
        Encoder(tmp_path, device="cpu")
    with pytest.raises(InputError, match="does not load as a tokeniser"):
        make_tokeniser(tmp_path, 16)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_missing_gpu_and_unknown_dtype_are_rejected() -> None:
    assert choose_device("auto") == "cpu"
    with pytest.raises(InputError, match="no GPU was found"):
        choose_device("cuda:0")
    with pytest.raises(InputError, match="dtype 'int3' is unknown: choose auto, float32"):
        choose_dtype("int3", "cpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_vectors_match_the_cpu(encoder: Encoder, model_dir: Path) -> None:
    on_gpu = Encoder(model_dir)
    assert on_gpu.device == "cuda"
    assert (on_gpu.encode(TEXTS) * encoder.encode(TEXTS)).sum(axis=1).min() > 0.99


def test_one_ahead_prefetches_one_item_and_raises_errors() -> None:
    begun = [threading.Event() for _ in range(3)]
    results = one_ahead(lambda i: (begun[i].set(), i)[1], range(3))
    assert next(results) == 0
    assert begun[1].wait(60)
    assert not begun[2].is_set()
    assert list(results) == [1, 2]
    with pytest.raises(ZeroDivisionError):
        list(one_ahead(lambda i: 1 // i, [2, 1, 0]))


def test_embed_tokens_uses_the_given_tokens(
    encoder: Encoder, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = make_tokeniser(model_dir, encoder.max_tokens)(TEXTS)
    expected = encoder.encode(TEXTS)
    monkeypatch.delattr(Encoder, "_tokenize")
    found = encoder.embed_tokens(tokens, None).vectors
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_check_tokeniser_rejects_different_tokens(encoder: Encoder, model_dir: Path) -> None:
    tokenise = make_tokeniser(model_dir, encoder.max_tokens)
    encoder.check_tokeniser(tokenise)
    with pytest.raises(InputError, match=r"tokenizer_config\.json"):
        encoder.check_tokeniser(lambda texts: tokenise([text + " fever" for text in texts]))


@pytest.mark.parametrize("texts", [2, 300, 12_000])
def test_padding_and_size_of_batches_are_limited(texts: int) -> None:
    # Lengths as those of passages of abstracts: most are long, and titles are short.
    lengths = np.random.default_rng(1).beta(4, 2, texts) * 230
    lengths = np.maximum(lengths.astype(int), 3).tolist()
    batches = list(batched_by_length(lengths, 1024 * 350))
    assert sorted(place for batch in batches for place in batch) == list(range(texts))
    padded = [max(lengths[place] for place in batch) * len(batch) for batch in batches]
    assert sum(padded) <= MOST_PADDING * sum(lengths)
    assert max(padded) <= 1024 * 350
