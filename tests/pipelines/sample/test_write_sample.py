import gzip
import json
from pathlib import Path

import Bio
import pytest
from lxml import etree

from cluster.errors import InputError
from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation, Deletion, Rejected
from pipelines.sample.generate_citations import generate_citations, write_generated
from pipelines.sample.write_sample import SampleCorpus, write_questions, write_sample

ROOT = Path(__file__).resolve().parents[3]
DTD = Path(Bio.__file__).parent / "Entrez/DTDs/pubmed_250101.dtd"
REVISED, DELETED = 90000034, 90000028


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> SampleCorpus:
    return write_sample(tmp_path_factory.mktemp("sample") / "new")


@pytest.fixture(scope="module")
def records(sample) -> list[list]:
    return [list(read_records(path)) for path in sample.sources]


@pytest.fixture(scope="module")
def live(records) -> dict[int, Citation]:
    """Return the live citations after the baseline and the update."""
    kept: dict[int, Citation] = {}
    for record in (record for file in records for record in file):
        if isinstance(record, Citation):
            kept[record.pmid] = record
        elif isinstance(record, Deletion):
            del kept[record.pmid]
    return kept


@pytest.fixture(scope="module")
def questions(sample) -> list[dict]:
    return json.loads(sample.questions.read_text())["questions"]


def test_documents_state_the_number_of_live_citations(records):
    citations = {r.pmid for file in records for r in file if isinstance(r, Citation)}
    live = citations - {r.pmid for r in records[2] if isinstance(r, Deletion)}
    assert (len(citations), len(live)) == (314, 313)
    for name in ("README.md", "docs/quickstart.md", "docs/limitations.md"):
        assert f"{len(live)} citations in our own words" in (ROOT / name).read_text()
    sample = (ROOT / "pipelines/sample/README.md").read_text()
    assert sample.startswith(f"# The sample corpus\n\n{len(live)} citations about")
    assert f"hold\n{len(citations)} citations" in sample


def test_sample_has_a_baseline_and_an_update(sample, records):
    names = [path.name for path in sample.sources]
    assert names == [f"citeray26n000{number}.xml.gz" for number in (1, 2, 3)]
    assert [len(file) for file in records] == [156, 156, 5]
    pmids = [record.pmid for file in records[:2] for record in file]
    assert pmids == list(range(90_000_001, 90_000_313))
    added, _, revised, book, deletion = records[2]
    assert (added.pmid, revised.pmid, revised.version) == (90000313, REVISED, 2)
    assert isinstance(book, Rejected)
    assert (deletion.pmid, deletion.position) == (DELETED, 4)
    first = {record.pmid: record for record in records[0]}
    assert DELETED in first
    assert (first[REVISED].version, first[REVISED].authors) == (1, revised.authors)
    assert first[REVISED].abstract != revised.abstract


def test_sample_files_are_valid_by_the_nlm_dtd(sample):
    dtd = etree.DTD(str(DTD))
    for path in sample.sources:
        dtd.validate(etree.fromstring(gzip.decompress(path.read_bytes())))
        assert not dtd.error_log


def test_sample_is_reproducible(sample, tmp_path):
    again = write_sample(tmp_path)
    for before, after in zip(
        (*sample.sources, sample.questions), (*again.sources, again.questions), strict=True
    ):
        assert before.read_bytes() == after.read_bytes()


def test_corrections_have_the_headings_of_their_own_subjects(live):
    assert [[h.name for h in live[90000300 + n].mesh] for n in (9, 10, 11, 12)] == [
        ["Amyloid Neuropathies, Familial"],
        ["Amyloid Neuropathies, Familial"],
        ["Diabetes Mellitus, Type 2"],
        ["Diabetes Mellitus, Type 1"],
    ]


def test_gold_documents_are_live_with_exact_offsets(questions, live):
    for question in questions:
        assert len(question["documents"]) >= 1
        for snippet in question["snippets"]:
            assert snippet["document"] in question["documents"]
            citation = live[int(snippet["document"].rsplit("/", 1)[1])]
            assert snippet["beginSection"] == snippet["endSection"]
            text = getattr(citation, snippet["beginSection"])
            begin, end = snippet["offsetInBeginSection"], snippet["offsetInEndSection"]
            assert text[begin:end] == snippet["text"]


def question_files(folder: Path, snippets: str) -> Path:
    for kind in ("yesno", "factoid", "list", "summary"):
        (folder / f"{kind}.yaml").write_text("[]")
    (folder / "summary.yaml").write_text(f"- {{body: Why?, ideal: So., snippets: {snippets}}}")
    return folder


def test_quote_missing_from_live_citations_is_refused(tmp_path):
    folder = question_files(tmp_path, "{5: not there}")
    with pytest.raises(InputError, match="'Why\\?': PMID 5 does not hold the quote 'not there'"):
        write_questions(folder, {5: Citation(5, title="here")}, tmp_path / "q.json")
    with pytest.raises(InputError, match="PMID 5 is not in the sample"):
        write_questions(folder, {}, tmp_path / "q.json")


@pytest.mark.slow
def test_generated_records_depend_only_on_the_seed_and_the_pmid():
    whole = list(generate_citations(8, seed=2))
    assert [c.pmid for c in whole] == list(range(1, 9))
    assert list(generate_citations(3, seed=2, first_pmid=5)) == whole[4:7]
    assert list(generate_citations(3, seed=4, first_pmid=5)) != whole[4:7]


@pytest.mark.slow
def test_generated_files_have_nlm_names_and_all_records(tmp_path):
    paths = write_generated(tmp_path / "new", 25, per_file=10, seed=5)
    assert [path.name for path in paths] == [f"pubmed26n000{n}.xml.gz" for n in (1, 2, 3)]
    pmids = [record.pmid for path in paths for record in read_records(path)]
    assert pmids == list(range(1, 26))
