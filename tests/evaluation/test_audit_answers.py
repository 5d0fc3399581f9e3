"""Audit of stored answers against a newer index, and reading of every format of answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cluster.answers import Evidence, Question, RankedCitation, Sentence
from cluster.errors import IndexFormatError, InputError
from cluster.records import Citation, Link, Passage
from cluster.settings.settings import load_settings
from commands.evaluation.audit import audit
from evaluation.audit.audit_answers import (
    CITES_RETRACTED,
    KINDS,
    Audit,
    Concern,
    Reason,
    audit_answers,
)
from evaluation.audit.read_answers import StoredAnswer, read_answers
from evaluation.find_citations import CitationLookup
from tests.evaluation.evaluate_command.small_runs import lines, runner_of
from tests.evaluation.lint.lint_runs import URL, grounded, snippet
from tests.serve.answering import answer
from tests.small_index import citation, make_index

TEXT = "Iron is stored in ferritin. It is safe."


def linked(pmid: int, *kinds: str) -> Citation:
    return citation(pmid, TEXT, links=tuple(Link(kind, 42, "J. 2020") for kind in kinds))


SOUND, GONE = citation(1, TEXT, "Iron.", year=2001), citation(99, TEXT)
NOW = [
    SOUND,
    linked(2, "RetractionIn"),
    citation(3, TEXT, publication_types=("Retracted Publication",)),
    linked(4, "ExpressionOfConcernIn", "ErratumIn"),
    citation(5, f"BACKGROUND: {TEXT}"),
    linked(6, "ErratumIn"),
    citation(7, "Copper is another matter.", "Copper.", year=2002),
    linked(12, "RetractedandRepublishedIn"),
    citation(13, TEXT, references=(1, 3)),
    citation(14, TEXT, references=(4,)),
    linked(8, "RetractionOf", "ErratumFor", "ExpressionOfConcernFor", "CommentIn", "Cites"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "index"
    make_index(path, NOW)
    return path


@pytest.fixture(scope="module")
def lookup(index: Path) -> CitationLookup:
    return CitationLookup(load_settings(None, [f"index.path={index}"]))


def reply(
    *sentences: tuple[int, ...],
    evidence: Sequence[Evidence] = (),
    citations: Sequence[RankedCitation] = (),
    version: str = "v000001",
    name: str = "q1",
) -> dict[str, Any]:
    """Return an answer with one sentence per tuple of PMIDs."""
    found = answer(
        question=Question(name, "Does iron help?", "yesno"),
        ideal=tuple(Sentence(f"Sentence {n}.", pmids, 0.9) for n, pmids in enumerate(sentences)),
        citations=tuple(citations),
        evidence=tuple(evidence),
        index_version=version,
    )
    plain: dict[str, Any] = json.loads(json.dumps(asdict(found)))
    return plain


def evidence_of(citation: Citation, begin: int, end: int) -> Evidence:
    """Return a passage of the abstract as evidence."""
    passage = Passage(citation.pmid, "abstract", begin, end, citation.abstract[begin:end])
    return Evidence(passage, title=citation.title, year=citation.year)


def audited(folder: Path, lookup: CitationLookup, *rows: Any) -> Audit:
    return audit_answers(read_answers(lines(folder / "answers.jsonl", *rows)), lookup)


def only(found: Audit) -> Concern:
    (concern,) = found.concerns
    return concern


def test_unchanged_citations_raise_no_concern(tmp_path: Path, lookup: CitationLookup) -> None:
    changed = evidence_of(citation(7, TEXT), 0, 27)
    rows = [
        reply((1,), evidence=[evidence_of(SOUND, 0, 27)]),
        # Notices about other articles, and comments, raise no concern.
        reply((8,)),
        # No text of the changed record was stored; in the next answer, no sentence cites it.
        reply((7,)),
        reply((1,), evidence=[changed]),
    ]
    assert audited(tmp_path, lookup, *rows) == Audit("v000001", 4, 4, ())


def test_notices_are_reported_by_kind(
    tmp_path: Path, lookup: CitationLookup, subtests: pytest.Subtests
) -> None:
    for pmid, kind, detail in [
        (2, "retracted", "retraction notice in J. 2020 PMID 42"),
        (3, "retracted", "publication type Retracted Publication"),
        (4, "expression of concern", "expression of concern in J. 2020 PMID 42"),
        (6, "corrected", "erratum in J. 2020 PMID 42"),
        (12, "retracted", "retracted and republished in J. 2020 PMID 42"),
    ]:
        with subtests.test(pmid=pmid, kind=kind):
            concern = only(audited(tmp_path, lookup, reply((pmid,))))
            assert (concern.pmid, concern.kind, concern.reasons[0].detail) == (pmid, kind, detail)


def test_deleted_citation_is_reported_with_its_version(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    concern = only(audited(tmp_path, lookup, reply((1,), (99,), version="v000000")))
    assert (concern.kind, concern.pmid, concern.cited_by) == ("deleted", 99, ("sentence 2",))
    assert concern.reasons[0].detail == (
        "no longer in index version v000001, the answer is from v000000"
    )
    assert concern.record is None


def test_changed_quotation_title_and_year_are_revisions(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    old = citation(7, TEXT, "Iron.", year=2001)
    concern = only(audited(tmp_path, lookup, reply((7,), evidence=[evidence_of(old, 0, 27)])))
    assert [reason.detail for reason in concern.reasons] == [
        "quotation of abstract 0-27 is no longer there",
        "title was 'Iron.', is 'Copper.'",
        "year was 2001, is 2002",
    ]
    assert concern.record == {"version": 1, "source": "", "position": 0, "year": 2002}
    moved = reply((5,), evidence=[evidence_of(citation(5, TEXT), 0, 27)])
    concern = only(audited(tmp_path, lookup, moved))
    assert concern.kind == "revised"
    assert concern.reasons[0].detail == "quotation of abstract 0-27 is now at 12"


def test_negative_quotation_offset_is_a_revision(tmp_path: Path, lookup: CitationLookup) -> None:
    row = reply((1,), evidence=[evidence_of(SOUND, 0, 27)])
    row["evidence"][0]["passage"]["begin"] = -39
    assert only(audited(tmp_path, lookup, row)).kind == "revised"


def test_concerns_are_sorted_worst_first(tmp_path: Path, lookup: CitationLookup) -> None:
    old = citation(5, TEXT)
    rows = [
        reply((6, 4, 14, 13), name="a"),
        reply((5,), evidence=[evidence_of(old, 0, 27)], name="b"),
        reply((99, 2), name="c"),
    ]
    found = audited(tmp_path, lookup, *rows)
    assert tuple(concern.kind for concern in found.concerns) == KINDS
    assert [concern.answer for concern in found.concerns] == ["c", "c", "a", "a", "a", "b", "a"]
    assert (found.answers, found.citations) == (3, 7)


def test_exposure_to_retractions_is_reported(tmp_path: Path, lookup: CitationLookup) -> None:
    stored = {"exposure": {"exposed": [{"pmid": 13, "retracted": [3]}]}}
    new, known = audited(tmp_path, lookup, reply((13,)), {**reply((13,)), **stored}).concerns
    assert new.reasons == (Reason(CITES_RETRACTED, "cites PMID 3"),)
    assert (new.known, known.known) == (False, True)
    # Only a notice says that PMID 42, which is not in the index, is retracted.
    deleted = only(audited(tmp_path, lookup, reply((42,))))
    assert [reason.kind for reason in deleted.reasons] == ["retracted", "deleted"]


def run_audit(index: Path, *arguments: object) -> Result:
    return runner_of(audit)(*arguments, f"--set=index.path={index}")


def test_audit_command_prints_one_line_per_concern(tmp_path: Path, index: Path) -> None:
    known = RankedCitation(2, 1.0, retracted=True)
    rows = [
        reply((4,)) | {"verdict": "not_enough_evidence"},
        reply((2,), (2, 1), citations=[known]),
    ]
    result = run_audit(index, lines(tmp_path / "a", *rows))
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "retracted (marked so in the answer): q1, PMID 2, sentence 1, sentence 2: "
        "retraction notice in J. 2020 PMID 42",
        "expression of concern (the verdict is not enough evidence): q1, PMID 4, sentence 1: "
        "expression of concern in J. 2020 PMID 42; corrected: erratum in J. 2020 PMID 42",
    ]
    summary = " ".join(result.stderr.split())
    assert "2 answers, 3 citations against index version v000001: 2 citations with" in summary
    clean = run_audit(index, lines(tmp_path / "a", reply((1,))))
    assert (clean.exit_code, clean.stdout) == (0, "")
    assert "1 answer, 1 citation against index version" in " ".join(clean.stderr.split())


def test_audit_refuses_a_missing_or_damaged_index(tmp_path: Path) -> None:
    answers = lines(tmp_path / "a", reply((1,)))
    with pytest.raises(IndexFormatError, match="no index here") as caught:
        run_audit(tmp_path / "none", answers)
    assert caught.value.exit_code == InputError.exit_code == 2
    make_index(tmp_path / "index", [SOUND], shards=1)
    next((tmp_path / "index").rglob("citations.arrow")).write_bytes(b"")
    with pytest.raises(IndexFormatError):
        run_audit(tmp_path / "index", answers)


IRON = citation(7, "Iron is stored in ferritin.", "Iron.")


def read_one(path: Path) -> StoredAnswer:
    (answer,) = read_answers(path)
    return answer


def test_reply_citations_are_read_by_sentence(tmp_path: Path) -> None:
    row = reply((7, 8), (8,), evidence=[evidence_of(citation(9, "Zinc."), 0, 4)])
    answer = read_one(lines(tmp_path / "a", row))
    assert answer.cited == {7: ["sentence 1"], 8: ["sentence 1", "sentence 2"]}
    assert (answer.id, answer.version, answer.verdict) == ("q1", "v000001", "answered")
    # Evidence that no sentence cites is also quoted.
    assert answer.quoted == [Passage(9, "abstract", 0, 4, "Zinc")]


def test_evidence_counts_as_cited_without_sentences(tmp_path: Path) -> None:
    row = reply(evidence=[evidence_of(IRON, 0, 4), evidence_of(IRON, 5, 7)])
    answer = read_one(lines(tmp_path / "a", row))
    assert answer.described == {7: {"title": "Iron."}}
    assert answer.cited == {7: ["evidence 1", "evidence 2"]}


def test_stored_answers_are_yielded_before_a_later_error(tmp_path: Path) -> None:
    path = lines(tmp_path / "a", reply((7,)), {"ideal": "none"})
    answers = read_answers(path)
    assert next(answers).id == "q1"
    with pytest.raises(InputError, match="line 2: field ideal must be a list"):
        next(answers)


def test_bioasq_citations_are_read_by_document_and_snippet(tmp_path: Path) -> None:
    """A snippet that cannot be compared still counts as a citation."""
    old = {"beginSection": "sections.0", "endSection": "sections.0"}
    placed = snippet("is", 5, 7, document=f"{URL}8", **old)
    odd = [{"text": None}, {"endSection": "title"}, {"offsetInBeginSection": "5"}]
    snippets = [placed, *({**placed, "document": f"{URL}9", **fields} for fields in odd)]
    row = {"id": "q", "documents": [f"{URL}7"], "snippets": snippets}
    (tmp_path / "a").write_text(json.dumps({"questions": [row]}, indent=1), encoding="utf-8")
    answer = read_one(tmp_path / "a")
    assert answer.id == "q"
    assert (answer.cited[7], answer.cited[8]) == (["document 1"], ["snippet 1"])
    assert len(answer.cited[9]) == 3
    assert answer.quoted == [Passage(8, "abstract", 5, 7, "is")]


def test_biogen_citations_are_read_by_sentence(tmp_path: Path) -> None:
    cited = {"supported_citations": [8], "contradicted_citations": ["9"]}
    a = grounded(existing_supported_citations=["7"], **cited) | {"metadata": {"qa_id": 3}}
    metadata = {"topic_id": "4", "verdict": "mixed"}
    b = {"metadata": metadata, "responses": [{"text": "T.", "citations": {"10": 1}}]}
    first, second = read_answers(lines(tmp_path / "a", a, b))
    assert (first.id, sorted(first.cited)) == ("3", [7, 8, 9])
    assert (second.id, second.cited, second.verdict) == ("4", {10: ["sentence 1"]}, "mixed")
    (tmp_path / "list").write_text(json.dumps([b], indent=1))
    assert read_one(tmp_path / "list").cited == {10: ["sentence 1"]}


def test_invalid_stored_answer_is_refused_with_its_place(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for text, message in [
        ('{"error": "late"}', "not in the format"),
        ('{"questions": []}', "contains no answer"),
        ('{"ideal": []}\n{"error": 1}', "line 2: no answer"),
        ('{"ideal": [{"pmids": ["x"]}]}', "line 1, sentence 1: 'x' is not a PMID"),
        ('{"ideal": [{"pmids": 7}]}', "ideal 1: field pmids must be a list"),
        ('{"ideal": [7]}', "ideal 1: must be an object"),
        ('{"ideal": [], "evidence": [{}]}', "evidence 1: field passage: must be an object"),
        ('{"questions": [{"id": "q", "documents": ["http://x"]}]}', "'http://x' is not a PMID"),
    ]:
        with subtests.test(text=text, message=message):
            (tmp_path / "a").write_text(text)
            with pytest.raises(InputError, match=message):
                list(read_answers(tmp_path / "a"))


def test_answers_without_verdict_are_read(tmp_path: Path) -> None:
    row = reply((7,), evidence=[evidence_of(IRON, 0, 4)])
    for name in ("verdict", "confidence", "guess"):
        del row[name]
    del row["evidence"][0]["stance_on"]
    answer = read_one(lines(tmp_path / "a", row))
    assert (answer.verdict, list(answer.cited)) == ("", [7])
