import tracemalloc
from itertools import islice

import pytest

from cluster.errors import InputError
from cluster.pubmed.parse_articles import read_records
from pipelines.sample.generate_citations import generate_citations, write_generated


@pytest.mark.slow
def test_same_seed_gives_same_records_and_another_seed_gives_others():
    assert list(generate_citations(5, seed=3)) == list(generate_citations(5, seed=3))
    assert list(generate_citations(5, seed=3)) != list(generate_citations(5, seed=4))


def test_a_range_can_be_made_by_itself():
    whole = list(generate_citations(20, seed=2))
    assert [c.pmid for c in whole] == list(range(1, 21))
    assert list(generate_citations(5, seed=2, first_pmid=11)) == whole[10:15]


def test_two_thirds_have_an_abstract_as_long_as_pubmeds():
    lengths = [len(c.abstract) for c in generate_citations(400, seed=1)]
    assert sum(map(bool, lengths)) / 400 == pytest.approx(0.65, abs=0.1)
    assert sum(lengths) / sum(map(bool, lengths)) == pytest.approx(1300, abs=200)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_count():
    records = generate_citations(10**12)
    next(records)
    tracemalloc.start()
    for _ in islice(records, 500):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_negative_count_and_zero_files_are_refused(tmp_path):
    with pytest.raises(InputError, match="count is -1"):
        generate_citations(-1)
    with pytest.raises(InputError, match="per_file is 0"):
        write_generated(tmp_path, 5, per_file=0)


@pytest.mark.slow
def test_files_are_named_like_nlms_and_hold_all_records(tmp_path):
    paths = write_generated(tmp_path / "new", 25, per_file=10, seed=5)
    assert [path.name for path in paths] == [
        "pubmed26n0001.xml.gz",
        "pubmed26n0002.xml.gz",
        "pubmed26n0003.xml.gz",
    ]
    pmids = [record.pmid for path in paths for record in read_records(path)]
    assert pmids == list(range(1, 26))
