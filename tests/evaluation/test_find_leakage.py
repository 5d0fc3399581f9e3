from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from cluster.errors import InputError
from evaluation.bioasq.read_bioasq import Entry
from evaluation.find_leakage import TrainingData, explain_leakage, find_leaks, read_card

PUBMED = "http://www.ncbi.nlm.nih.gov/pubmed/"


def entry(id_: str, body: str, *pmids: str) -> Entry:
    documents = tuple(PUBMED + pmid for pmid in pmids)
    return Entry(id_, "summary", documents, (), None, (), body)


GOLD = {
    "q1": entry("q1", "Does metformin activate AMPK?", "11111111", "22222222"),
    "q2": entry("q2", "What is the target of losartan?", "33333333"),
}


def trained_on(folder: Path, name: str, text: str) -> TrainingData:
    path = folder / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return TrainingData("ranker", (path,))


def test_leaks_are_found_in_every_file_format(tmp_path: Path, subtests: pytest.Subtests) -> None:
    words = "Does metformin activate AMPK?"
    losartan = "0\tWhat is the target of losartan?\tAT1\n"
    for name, row, questions, documents in [
        ("t.jsonl", {"query": "does Metformin activate: AMPK"}, ("q1",), ()),
        ("t.json", {"questions": [{"id": "q2"}]}, ("q2",), ()),
        ("t.tsv", losartan, ("q2",), ()),
        ("t.jsonl.gz", {"q": words, "pmids": [33333333, True]}, ("q1",), ("33333333",)),
        ("t.jsonl", {"pmid": 22222222}, (), ("22222222",)),
        ("t.jsonl", {"positive_docs": ["22222222"]}, (), ("22222222",)),
        ("t.jsonl", {"documents": [PUBMED + "22222222"]}, (), ("22222222",)),
        ("t.jsonl", {"text": "https://pubmed.ncbi.nlm.nih.gov/22222222/"}, (), ("22222222",)),
        ("t.jsonl", {"text": "PMID: 22222222"}, (), ("22222222",)),
    ]:
        with subtests.test(name=name, row=row):
            text = row if isinstance(row, str) else json.dumps(row)
            [leak] = find_leaks(GOLD, trained_on(tmp_path, name, text))
            assert (leak.questions, leak.documents) == (questions, documents)
    # A number in another field, such as a length, is not a leak.
    assert find_leaks(GOLD, trained_on(tmp_path, "t.jsonl", '{"length": 22222222}\n\n')) == []


def test_damaged_training_data_is_refused(tmp_path: Path) -> None:
    for name, text in [("t.jsonl", '{"a": 1}\n{'), ("t.json", "{")]:
        with pytest.raises(InputError, match=rf"{name}.*not JSON"):
            find_leaks(GOLD, trained_on(tmp_path, name, text))
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(b"not gzip")
    with pytest.raises(InputError, match=r"t\.jsonl\.gz: training data cannot be read"):
        find_leaks(GOLD, TrainingData("ranker", (path,)))


def test_card_names_local_files_and_data_sets(tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("{}", encoding="utf-8")
    card = "---\nlicense: mit\ndatasets:\n- pairs.jsonl\n- ms_marco\n---\n# A ranker\n"
    (tmp_path / "README.md").write_text(card, encoding="utf-8")
    (tmp_path / "data_config.json").write_text('[{"name": "s2orc.jsonl.gz"}]', encoding="utf-8")
    data = read_card("ranker", tmp_path)
    assert data.files == (tmp_path / "pairs.jsonl",)
    assert data.names == ("ms_marco", "s2orc.jsonl.gz")
    assert data.has_card


def test_card_without_data_is_empty_and_damaged_card_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data_config.json").write_text('{"name": "x"}', encoding="utf-8")
    for card in ("# no front matter\n", "---\nlicense: mit\n---\n", "---\n- a\n---\n"):
        (tmp_path / "MODEL_CARD.md").write_text(card, encoding="utf-8")
        assert read_card("ranker", tmp_path) == TrainingData("ranker")
    (tmp_path / "README.md").write_text("---\na: [\n---\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"README\.md: its front matter is not YAML"):
        read_card("ranker", tmp_path)


def test_benchmark_name_is_reported_as_leak() -> None:
    found, unknown = explain_leakage(GOLD, [TrainingData("m", names=("BeIR/bioasq", "squad"))])
    assert len(found) == 1
    assert "BeIR/bioasq" in found[0]
    assert unknown == ["m (its card names 1 data sets that are not available)"]
