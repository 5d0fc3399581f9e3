"""Passages are embedded as by the encoder, with a codec learned from all readable sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cluster.index.tokens.codec import learn_codec, read_codec
from cluster.models.encoder import Encoder
from cluster.models.store import checksum
from cluster.settings.settings import load_settings
from cluster.settings.stages.index import TokenVectorSettings
from cluster.text.tokenise import make_tokeniser
from pipelines.indexing.staging.embed_passages import (
    TOKENISED_SCHEMA,
    embed_citations,
    embed_tokens,
    split_citations,
    tokenise_citations,
)
from pipelines.indexing.staging.split_passages import make_splitter
from pipelines.indexing.staging.stage_citations import staged_dtype
from pipelines.indexing.staging.staging_tasks import (
    SOURCES,
    EmbedAndStage,
    keep_codec,
    sample_passages,
)
from tests.pipelines.staging import SPLITTER
from tests.pipelines.verify.built_index import record, write_source
from tests.small_index import citation
from tests.tiny_models import make_tiny_encoder

pytestmark = pytest.mark.model


CITATIONS = [
    citation(1, "aspirin reduces fever. " * 9, "Aspirin"),
    citation(2, ""),
    citation(3, "the gene inhibits the protein of the cell", "A drug, and a tumour"),
]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_encoder(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def encoder(model_dir: Path) -> Encoder:
    return Encoder(model_dir, device="cpu", dtype="float32")


@pytest.mark.parametrize("chosen", [slice(0, 3), slice(1, 2), slice(0, 0)])
def test_pretokenised_rows_get_the_same_vectors(
    encoder: Encoder, model_dir: Path, chosen: slice
) -> None:
    split = split_citations(CITATIONS, make_splitter("characters", 60, 10))
    table = split.slice(chosen.start, chosen.stop - chosen.start)
    tokenised = tokenise_citations(table, make_tokeniser(model_dir, encoder.max_tokens))
    assert tokenised.schema == TOKENISED_SCHEMA
    sample = np.concatenate(encoder.token_vectors([c.search_text for c in CITATIONS]))
    compress = encoder.compress_by(learn_codec(sample, 16, 2), 1)
    ours = embed_tokens(tokenised, encoder.embed_tokens, compress)
    theirs = embed_citations(table, encoder.embed, compress)
    assert ours.drop_columns("vectors") == theirs.drop_columns("vectors")
    assert sum(map(sum, ours["token_counts"].to_pylist())) * 4 == len(
        b"".join(ours["codes"].to_pylist())
    )
    for mine, plain in zip(ours["vectors"], theirs["vectors"], strict=True):
        np.testing.assert_allclose(
            np.frombuffer(mine.as_py(), np.float16),
            np.frombuffer(plain.as_py(), np.float16),
            atol=2e-3,
        )


def sources(folder: Path, count: int) -> list[Path]:
    return [
        write_source(
            folder / f"n{n:02d}.xml.gz",
            *(record(100 * n + i, f"Text {i} of file {n}.") for i in range(1, 9)),
        )
        for n in range(count)
    ]


def test_codec_sample_is_spread_over_the_files(tmp_path: Path) -> None:
    found = sample_passages(sources(tmp_path, 30), SPLITTER, 16)
    files = {int(text.split()[-1].rstrip(".")) for text in found if text.startswith("Text")}
    assert len(found) == 16
    assert (min(files), max(files), len(files)) == (0, 29, SOURCES)


def test_codec_sample_skips_unreadable_files(tmp_path: Path) -> None:
    files = sources(tmp_path, 3)
    files[1].write_bytes(files[1].read_bytes()[:40])
    files[2].unlink()
    found = sample_passages(files, SPLITTER, 30)
    assert found
    assert not any("file 2" in text for text in found)


def test_codec_is_stored_by_checksum_and_fits_the_encoder(tmp_path: Path) -> None:
    encoder = Encoder(make_tiny_encoder(tmp_path / "model"), device="cpu", dtype="float32")
    chosen = TokenVectorSettings(components=16, bits=2, pool=1, training_passages=5)
    texts = ["aspirin reduces fever", "the gene inhibits a protein"]
    path = keep_codec(tmp_path / "index", texts, encoder, chosen)
    assert path == keep_codec(tmp_path / "index", texts, encoder, chosen)
    codec = read_codec(path)
    (vectors,) = encoder.token_vectors(["aspirin reduces fever"])
    embedded = encoder.embed(["aspirin reduces fever"], encoder.compress_by(codec, 1))
    assert embedded.codes[0].shape == (len(vectors), 4)
    np.testing.assert_allclose(embedded.vectors, encoder.encode(["aspirin reduces fever"]))
    textless = keep_codec(tmp_path / "textless", [], encoder, chosen)
    assert read_codec(textless).bytes_a_token == 4


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
