from pathlib import Path

import numpy as np
import pytest

from cluster.index.tokens.codec import learn_codec
from cluster.models.encoder import Encoder
from cluster.text.tokenise import make_tokeniser
from pipelines.indexing.staging.embed_passages import (
    TOKENISED_SCHEMA,
    embed_citations,
    embed_tokens,
    split_citations,
    tokenise_citations,
)
from pipelines.indexing.staging.split_passages import make_splitter
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
