import tracemalloc
from collections import Counter
from itertools import islice

import pytest

from cluster.errors import InputError
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from pipelines.sample.generate_citations import generate_citations, write_generated


@pytest.fixture(scope="module")
def thousands() -> list[Citation]:
    return list(generate_citations(3000, seed=1))


def test_count_and_pmids_are_as_asked():
    assert [c.pmid for c in generate_citations(3, first_pmid=70)] == [70, 71, 72]


@pytest.mark.slow
def test_same_seed_gives_same_records_and_another_seed_gives_others():
    assert list(generate_citations(5, seed=3)) == list(generate_citations(5, seed=3))
    assert list(generate_citations(5, seed=3)) != list(generate_citations(5, seed=4))


def test_a_range_can_be_made_by_itself():
    whole = list(generate_citations(20, seed=2))
    assert list(generate_citations(5, seed=2, first_pmid=11)) == whole[10:15]


def test_two_thirds_have_an_abstract_and_a_third_of_those_is_labelled(thousands):
    with_abstract = [c for c in thousands if c.sections]
    labelled = [c for c in with_abstract if c.sections[0].label]
    assert len(with_abstract) / len(thousands) == pytest.approx(0.65, abs=0.03)
    assert len(labelled) / len(with_abstract) == pytest.approx(1 / 3, abs=0.04)


def test_abstracts_are_as_long_as_pubmeds(thousands):
    lengths = [len(c.abstract) for c in thousands if c.sections]
    assert sum(lengths) / len(lengths) == pytest.approx(1300, abs=60)
    assert min(lengths) < 700
    assert max(lengths) > 2200


def test_few_words_are_frequent_and_most_are_rare(thousands):
    words = Counter(word for c in thousands for word in c.abstract.lower().split())
    counts = sorted(words.values(), reverse=True)
    assert sum(counts[:100]) > sum(counts) / 3
    assert len(counts) > 15_000


def test_records_of_a_topic_share_headings_and_words(thousands):
    leads = Counter(c.mesh[0].name for c in thousands)
    name, times = leads.most_common(1)[0]
    assert times > 10
    of_topic = [c for c in thousands if c.mesh[0].name == name and c.sections]
    assert all(name.lower() in c.abstract.lower() for c in of_topic if len(c.abstract) > 900)


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
