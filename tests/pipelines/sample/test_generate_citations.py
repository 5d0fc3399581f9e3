import pytest

from cluster.pubmed.parse_articles import read_records
from pipelines.sample.generate_citations import generate_citations, write_generated


@pytest.mark.slow
def test_records_depend_only_on_the_seed():
    assert list(generate_citations(5, seed=3)) == list(generate_citations(5, seed=3))
    assert list(generate_citations(5, seed=3)) != list(generate_citations(5, seed=4))


def test_a_range_of_records_can_be_generated_alone():
    whole = list(generate_citations(20, seed=2))
    assert [c.pmid for c in whole] == list(range(1, 21))
    assert list(generate_citations(5, seed=2, first_pmid=11)) == whole[10:15]


@pytest.mark.slow
def test_generated_files_have_nlm_names_and_all_records(tmp_path):
    paths = write_generated(tmp_path / "new", 25, per_file=10, seed=5)
    assert [path.name for path in paths] == [
        "pubmed26n0001.xml.gz",
        "pubmed26n0002.xml.gz",
        "pubmed26n0003.xml.gz",
    ]
    pmids = [record.pmid for path in paths for record in read_records(path)]
    assert pmids == list(range(1, 26))
