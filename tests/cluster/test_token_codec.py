"""Quantisation of token vectors, and late-interaction scores of stored vectors."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cluster.errors import IndexFormatError
from cluster.index.tokens.codec import TokenCodec, learn_codec, read_codec
from cluster.index.tokens.stored import StoredTokens, mean_max_sim
from cluster.models.compress_tokens import make_compress, pool_tokens

pytestmark = pytest.mark.model

WIDTH = 48


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def tokens() -> np.ndarray:
    """Vectors with components of different sizes, like those of an encoder."""
    rng = np.random.default_rng(1)
    return unit(rng.normal(size=(3000, WIDTH)) * np.exp(-np.arange(WIDTH) / 12))


def code(codec: TokenCodec, vectors: np.ndarray) -> np.ndarray:
    counts = torch.tensor([len(vectors)])
    return make_compress(codec, "cpu")(torch.from_numpy(vectors), counts)[0].numpy()


@pytest.mark.parametrize(("bits", "least"), [(1, 0.75), (2, 0.9), (4, 0.98), (8, 0.999)])
def test_more_bits_are_more_accurate(tokens: np.ndarray, bits: int, least: float) -> None:
    codec = learn_codec(tokens[:2000], 32, bits)
    codes = code(codec, tokens[2000:])
    assert codes.shape == (1000, 32 * bits // 8) == (1000, codec.bytes_a_token)
    cosines = (unit(codec.decode(codes)) * codec.project(tokens[2000:])).sum(axis=1)
    assert cosines.mean() > least


def test_code_decodes_to_the_level_of_its_interval(tokens: np.ndarray) -> None:
    codec = learn_codec(tokens, 16, 2)
    projected, decoded = codec.project(tokens), codec.decode(code(codec, tokens))
    for axis in range(16):
        places = np.searchsorted(codec.bounds[axis], projected[:, axis])
        np.testing.assert_array_equal(decoded[:, axis], codec.levels[axis][places])


def test_invalid_codecs_are_rejected(tokens: np.ndarray, tmp_path: Path) -> None:
    codec = learn_codec(tokens, 16, 2)
    unfit = TokenCodec(codec.components, codec.bounds[:8], codec.levels).to_bytes()
    for data, said in (
        (b"", "not a codec of token vectors"),
        (b"\x00" * 64, "not a codec of token vectors"),
        (b"not a codec at all, but some text", "not a codec of token vectors"),
        (unfit, "do not fit together"),
    ):
        (tmp_path / "codec").write_bytes(data)
        with pytest.raises(IndexFormatError, match=said):
            read_codec(tmp_path / "codec")


def stored(
    folder: Path, codec: TokenCodec, passages: list[np.ndarray]
) -> tuple[StoredTokens, list[np.ndarray]]:
    codes = [code(codec, p) if len(p) else np.empty((0, codec.bytes_a_token)) for p in passages]
    path = folder / "tokens.bin"
    path.write_bytes(b"".join(c.tobytes() for c in codes))
    ends = np.cumsum([len(c) for c in codes]).astype(np.uint64)
    return StoredTokens(path, ends, codec), codes


def test_late_interaction_uses_own_tokens(tokens: np.ndarray, tmp_path: Path) -> None:
    codec = learn_codec(tokens, 32, 2)
    passages = [tokens[0:7], tokens[7:7], tokens[7:40], tokens[40:41]]
    shelf, codes = stored(tmp_path, codec, passages)
    asked = codec.project(tokens[100:105])
    rows = np.array([3, 1, 0, 2, 0])
    best = shelf.best_cosines(asked, rows)
    for found, row in zip(best, rows, strict=True):
        cosines = (
            codec.decode(codes[row]) @ asked.T if len(codes[row]) else np.full((1, 5), -np.inf)
        )
        np.testing.assert_allclose(found, cosines.max(axis=0), atol=1e-6)
    scores = mean_max_sim(best)
    np.testing.assert_allclose(scores[[0, 2, 3, 4]], best[[0, 2, 3, 4]].mean(axis=1), atol=1e-6)
    assert scores[1] == 0
    of_nothing = shelf.best_cosines(codec.project(tokens[:0]), np.array([0, 2]))
    assert mean_max_sim(of_nothing).tolist() == [0, 0]


def test_truncated_token_file_is_rejected(tokens: np.ndarray, tmp_path: Path) -> None:
    codec = learn_codec(tokens, 32, 2)
    (tmp_path / "tokens.bin").write_bytes(b"\x00" * 20)
    with pytest.raises(IndexFormatError, match="20 bytes where 3 tokens take 24"):
        StoredTokens(tmp_path / "tokens.bin", np.array([1, 3], np.uint64), codec)


def test_similar_tokens_are_pooled(tokens: np.ndarray) -> None:
    first, second = tokens[0], tokens[1]
    text = torch.from_numpy(np.stack([first, second, first, second, first]))
    pooled, counts = pool_tokens(torch.cat([text, text[:1]]), torch.tensor([5, 1]), 2)
    assert counts.tolist() == [2, 1] or counts.tolist() == [3, 1]
    sims = pooled[: counts[0]] @ torch.from_numpy(np.stack([first, second])).T
    assert torch.allclose(sims.max(dim=0).values, torch.ones(2), atol=1e-5)
    np.testing.assert_allclose(pooled[-1], first, atol=1e-6)
