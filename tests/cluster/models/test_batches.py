import numpy as np
import pytest

from cluster.models.batches import MOST_PADDING, batched_by_length

pytestmark = pytest.mark.model


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
