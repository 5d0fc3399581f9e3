from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.answers import (
    Answer,
    ExactAnswer,
    Guess,
    Question,
    QuestionType,
    RankedCitation,
    SearchResult,
    Sentence,
)
from cluster.errors import InputError
from cluster.records import Passage
from serve.formats.bioasq import RunWriter, count_guesses, read_questions, to_entry, write_run
from tests.serve.answering import answer as bare_answer
from tests.serve.answering import passage

GOOD = {"id": "a1", "type": "yesno", "body": "Is water wet?"}


def save(folder: Path, content: Any) -> Path:
    path = folder / "questions.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def search_result(
    question: Question, snippets: tuple[Passage, ...] = (), pmids: range = range(1, 3)
) -> SearchResult:
    citations = tuple(RankedCitation(pmid, 1.0) for pmid in pmids)
    return SearchResult(question, "s", citations, (), snippets, (), (), "1/1", "v1", "n1.xml", {})


def answer(
    exact: ExactAnswer,
    kind: QuestionType = "yesno",
    ideal: tuple[Sentence, ...] = (Sentence("Water is wet.", (7,), 1.0),),
) -> Answer:
    return bare_answer(question=Question("a1", "Is water wet?", kind), exact=exact, ideal=ideal)


def entry(name: str) -> dict[str, Any]:
    return to_entry(search_result(Question(name, "Is water wet?", "yesno")))


def test_invalid_file_is_refused_by_place_and_field(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for content, complaint in [
        ("{", r"questions\.json: not JSON"),
        ([GOOD], r"questions\.json: not in BioASQ's format"),
        ({"questions": [GOOD, 3]}, "question 1: must be an object, not int"),
        ({"questions": [{"type": "list", "body": "Q?"}]}, "question 0: field id is missing"),
        ({"questions": [{**GOOD, "id": 5}]}, "question 0: id must be a string, not 5"),
        ({"questions": [{"id": "a1", "body": "Q?"}]}, r"\(id a1\): field type is missing"),
        ({"questions": [{**GOOD, "body": " \n"}]}, r"\(id a1\): body is empty"),
        ({"questions": [{**GOOD, "body": None}]}, r"\(id a1\): body must be a string, not None"),
        ({"questions": [{**GOOD, "type": "YesNo"}]}, "type 'YesNo' is not one of yesno, factoid"),
        ({"questions": [{**GOOD, "body": "x" * 2001}]}, "2001 characters, at most 2000"),
        ({"questions": [{**GOOD, "body": "x \ud800"}]}, "body has a lone surrogate at 2"),
        ({"questions": [{**GOOD, "id": "x" * 201}]}, "id has 201 characters, at most 200"),
        ({"questions": [GOOD, GOOD]}, "question 1: id 'a1' is also that of question 0"),
    ]:
        with subtests.test(content=content), pytest.raises(InputError, match=complaint):
            read_questions(save(tmp_path, content))


def test_questions_are_read_in_order_and_unusable_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_questions(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{"questions": "\xff"}')
    with pytest.raises(InputError, match="not in UTF-8"):
        read_questions(tmp_path / "latin.json")
    with pytest.raises(InputError, match="cannot be written"):
        RunWriter(tmp_path / "none" / "run.json", "s", "v1")
    longest = Question("a0", "x" * 2000, "list")
    second = {"id": "a0", "type": "list", "body": longest.body}
    path = save(tmp_path, {"questions": [GOOD, second]})
    assert read_questions(path) == [Question("a1", "Is water wet?", "yesno"), longest]


def test_entry_has_at_most_ten_documents_and_snippets() -> None:
    snippets = tuple(passage(letter) for letter in "abcdefghijklm")
    result = search_result(Question("a1", "Q?", "summary"), snippets, range(1, 20))
    found = to_entry(result)
    assert found["documents"] == [f"http://www.ncbi.nlm.nih.gov/pubmed/{n}" for n in range(1, 11)]
    assert len(found["snippets"]) == 10
    assert not {"exact_answer", "ideal_answer"} & found.keys()
    given = passage("Water is wet.", 7, begin=20, title=True)
    assert to_entry(result, [given])["snippets"] == [
        {
            "document": "http://www.ncbi.nlm.nih.gov/pubmed/7",
            "beginSection": "title",
            "endSection": "title",
            "offsetInBeginSection": 20,
            "offsetInEndSection": 33,
            "text": "Water is wet.",
        }
    ]
    assert len(to_entry(result, documents=100)["documents"]) == 19


def test_entry_has_the_best_guess_and_the_verdict() -> None:
    guess = Guess((Sentence("Water may be wet.", (7,), 0.4),), "yes")
    unsure = replace(
        answer(None, ideal=()), verdict="not_enough_evidence", confidence=0.2, guess=guess
    )
    found = to_entry(unsure)
    assert found["ideal_answer"] == "Water may be wet."
    assert found["exact_answer"] == "yes"
    assert (found["verdict"], found["confidence"]) == ("not_enough_evidence", 0.2)
    stated = to_entry(answer("yes"))
    assert (stated["exact_answer"], stated["verdict"]) == ("yes", "answered")


def test_ideal_answer_has_at_most_200_words() -> None:
    two = (Sentence("Water is wet.", (7,), 1.0), Sentence("Ice is cold.", (8, 9), 0.9))
    assert to_entry(answer("yes", ideal=two))["ideal_answer"] == "Water is wet. Ice is cold."
    three = (Sentence("word " * 89 + "end.", (7,), 1.0),) * 3
    one = (Sentence("word " * 300, (7,), 1.0),)
    for ideal, words in ((three, 180), (one, 200)):
        assert len(to_entry(answer("yes", ideal=ideal))["ideal_answer"].split()) == words


def test_exact_answer_has_the_format_of_its_type(subtests: pytest.Subtests) -> None:
    for kind, exact, written in [
        ("yesno", "yes", "yes"),
        ("yesno", None, "no"),
        ("factoid", [["a", "b"], ["c"]], [["a"], ["c"]]),
        ("factoid", [[c] for c in "abcdefg"], [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("factoid", None, []),
        ("list", [["x" * 101], ["a", "x" * 101]], [["a"]]),
        ("list", [[str(n)] for n in range(150)], [[str(n)] for n in range(100)]),
    ]:
        with subtests.test(kind=kind, exact=exact):
            assert to_entry(answer(exact, kind))["exact_answer"] == written
    assert "exact_answer" not in to_entry(answer(None, "summary"))


def test_run_is_utf8_and_written_atomically(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_run(path, [{"id": "β"}])
    with pytest.raises(TypeError):
        write_run(path, [{"id": object()}])
    assert json.loads(path.read_text(encoding="utf-8")) == {"questions": [{"id": "β"}]}
    assert list(tmp_path.iterdir()) == [path]


def questions(*names: str) -> list[Question]:
    return [Question(name, "Is water wet?", "yesno") for name in names]


def interrupt(path: Path, *names: str) -> None:
    with RunWriter(path, "s", "v1") as run:
        for name in names:
            run.add(entry(name))


def test_interrupted_run_is_resumed_and_written_in_the_order_of_the_questions(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.json"
    interrupt(path, "b", "c")
    with RunWriter(path, "s", "v1") as run:
        assert run.done == {"b", "c"}
        with pytest.raises(InputError, match=r"1 questions unanswered: \['a'\]"):
            run.finish(questions("a", "b", "c"))
        assert not path.exists()
        run.add(entry("a"))
        run.finish(questions("a", "b", "c"))
    assert [e["id"] for e in json.loads(path.read_text())["questions"]] == ["a", "b", "c"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "other", [{"system": "t"}, {"index_version": "v2"}, {"answers": False}, {"inputs": "f1"}]
)
def test_entries_of_another_run_are_not_reused(tmp_path: Path, other: dict[str, Any]) -> None:
    path, same = tmp_path / "run.json", {"system": "s", "index_version": "v1"}
    with RunWriter(path, **{**same, **other}) as first:
        first.add(entry("a"))
    with RunWriter(path, "s", "v1") as second:
        assert second.done == frozenset()


def test_incomplete_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    interrupt(path, "a", "b")
    partial = tmp_path / "run.json.partial"
    partial.write_bytes(partial.read_bytes()[:-20])
    with RunWriter(path, "s", "v1") as run:
        assert run.done == {"a"}
        run.add(entry("b"))
    with RunWriter(path, "s", "v1") as run:
        assert run.done == {"a", "b"}


def test_guesses_of_a_run_are_counted(tmp_path: Path) -> None:
    stated = answer("yes")
    withheld = replace(stated, verdict="not_enough_evidence", ideal=(), exact=None)
    withheld = replace(withheld, guess=Guess(stated.ideal, "yes"))
    mixed = replace(stated, verdict="mixed")
    write_run(tmp_path / "run.json", [*map(to_entry, (stated, withheld, mixed)), entry("a2")])
    assert count_guesses(tmp_path / "run.json") == 1
