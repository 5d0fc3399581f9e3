"""BM25 scores computed from stored term numbers."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.errors import IndexFormatError
from cluster.index.bm25 import Bm25Index, Bm25Query, Bm25Writer
from cluster.index.terms.bags import Bags, BagWriter, numbered
from tests.cluster.test_index import lucene_score

TEXTS = st.lists(st.text(st.sampled_from("abc \u00e9-"), max_size=30), min_size=1, max_size=20)
QUERY = st.dictionaries(
    st.text(st.sampled_from("abc"), min_size=1, max_size=2), st.floats(0.1, 3), max_size=6
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(TEXTS, QUERY, st.sampled_from([0.0, 0.9]), st.data())
def test_bags_score_equals_lucene_score_of_the_text(
    tmp_path_factory: pytest.TempPathFactory,
    texts: list,
    weights: dict,
    k1: float,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("bags") / "bm25"
    writer = Bm25Writer(folder)
    for text in texts:
        writer.add(text)
    writer.close()
    query = Bm25Query(weights, dict.fromkeys(weights, 3), 50, 4.0, k1, 0.4)
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=9, unique=True))
    found = Bm25Index(folder).scores(query, np.array(rows, np.int64))
    np.testing.assert_allclose(found, [lucene_score(query, texts[r]) for r in rows], rtol=1e-5)


def test_bags_return_terms_and_counts(tmp_path: Path) -> None:
    units = [["fever"], [], ["aspirin", "fever", "aspirin"]] * 1500
    writer = BagWriter(tmp_path)
    for terms in units:
        writer.add(terms)
    writer.close()
    bags = Bags(tmp_path)
    assert bags.units == len(units)
    flat, counts = bags.of(np.array([4499, 0, 1, 2]))
    assert flat.tolist() == numbered(
        ["aspirin", "fever", "aspirin", "fever", "aspirin", "fever", "aspirin"]
    )
    assert counts.tolist() == [3, 1, 0, 3]
    found, lengths = bags.count(np.array([2, 1, 0]), ["fever", "absent", "aspirin"])
    assert found.tolist() == [[1, 0, 2], [0, 0, 0], [1, 0, 0]]
    assert lengths.tolist() == [3, 0, 1]


@pytest.mark.parametrize("data", [b"", b"no bags"])
def test_invalid_bags_are_rejected(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bags.arrow").write_bytes(data)
    with pytest.raises(IndexFormatError, match="not a term file"):
        Bags(tmp_path)
