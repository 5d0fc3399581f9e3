"""What an index of today says of answers of yesterday."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from cluster.answers import RankedCitation
from cluster.errors import IndexFormatError, InputError
from cluster.records import Citation, Link
from cluster.settings.settings import load_settings
from commands.evaluation.audit import audit
from evaluation.audit.audit_answers import KINDS, Audit, Concern, audit_answers
from evaluation.audit.read_answers import read_answers
from evaluation.find_citations import CitationLookup
from tests.evaluation.stored_answers import evidence_of, reply, write_lines
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
    linked(8, "RetractionOf", "ErratumFor", "ExpressionOfConcernFor", "CommentIn", "Cites"),
    linked(9, "UpdateIn"),
    linked(10, "PartialRetractionIn"),
    linked(11, "CorrectedandRepublishedIn"),
    linked(12, "RetractedandRepublishedIn"),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "index"
    make_index(path, NOW)
    return path


@pytest.fixture(scope="module")
def lookup(index: Path) -> CitationLookup:
    return CitationLookup(load_settings(None, [f"index.path={index}"]))


def audited(folder: Path, lookup: CitationLookup, *rows: Any) -> Audit:
    return audit_answers(read_answers(write_lines(folder / "answers.jsonl", *rows)), lookup)


def only(found: Audit) -> Concern:
    (concern,) = found.concerns
    return concern


def test_an_answer_whose_citations_stand_is_no_concern(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    row = reply((1,), evidence=[evidence_of(SOUND, 0, 27)])
    found = audited(tmp_path, lookup, row)
    assert found == Audit("v000001", 1, 1, ())


def test_each_notice_is_found_and_named(
    tmp_path_factory: pytest.TempPathFactory, lookup: CitationLookup, subtests: pytest.Subtests
) -> None:
    for pmid, kind, detail in [
        (2, "retracted", "RetractionIn J. 2020 PMID 42"),
        (3, "retracted", "publication type Retracted Publication"),
        (4, "expression of concern", "ExpressionOfConcernIn J. 2020 PMID 42"),
        (6, "corrected", "ErratumIn J. 2020 PMID 42"),
        (9, "corrected", "UpdateIn J. 2020 PMID 42"),
        (10, "corrected", "PartialRetractionIn J. 2020 PMID 42"),
        (11, "corrected", "CorrectedandRepublishedIn J. 2020 PMID 42"),
        (12, "retracted", "RetractedandRepublishedIn J. 2020 PMID 42"),
    ]:
        with subtests.test(pmid=pmid, kind=kind):
            tmp_path = tmp_path_factory.mktemp("case")
            concern = only(audited(tmp_path, lookup, reply((pmid,))))
            assert (concern.pmid, concern.kind, concern.reasons[0].detail) == (pmid, kind, detail)


def test_notices_about_other_articles_and_comments_are_no_concern(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    assert audited(tmp_path, lookup, reply((8,))).concerns == ()


def test_a_citation_that_is_gone_is_told_with_the_version_it_was_in(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    concern = only(audited(tmp_path, lookup, reply((1,), (99,), version="v000000")))
    assert (concern.kind, concern.pmid, concern.cited_by) == ("deleted", 99, ("sentence 2",))
    assert concern.reasons[0].detail == (
        "not in index version v000001 any more, the answer is from v000000"
    )
    assert concern.record is None


def test_a_quotation_that_moved_is_a_revision(tmp_path: Path, lookup: CitationLookup) -> None:
    old = citation(5, TEXT)
    concern = only(audited(tmp_path, lookup, reply((5,), evidence=[evidence_of(old, 0, 27)])))
    assert concern.kind == "revised"
    assert concern.reasons[0].detail == "quotation of abstract 0-27 is now at 12"


def test_a_quotation_title_and_year_that_changed_are_revisions(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    old = citation(7, TEXT, "Iron.", year=2001)
    concern = only(audited(tmp_path, lookup, reply((7,), evidence=[evidence_of(old, 0, 27)])))
    assert [reason.detail for reason in concern.reasons] == [
        "quotation of abstract 0-27 is not there any more",
        "title was 'Iron.', is 'Copper.'",
        "year was 2001, is 2002",
    ]
    assert concern.record == {"version": 1, "source": "", "position": 0, "year": 2002}


def test_a_record_of_which_nothing_was_stored_is_not_called_revised(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    assert audited(tmp_path, lookup, reply((7,))).concerns == ()


def test_a_changed_record_that_no_sentence_cites_is_no_concern(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    old = citation(7, TEXT)
    assert audited(tmp_path, lookup, reply((1,), evidence=[evidence_of(old, 0, 27)])).concerns == ()


def test_a_quotation_at_a_negative_offset_is_not_found_there(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    row = reply((1,), evidence=[evidence_of(SOUND, 0, 27)])
    row["evidence"][0]["passage"]["begin"] = -39
    assert only(audited(tmp_path, lookup, row)).kind == "revised"


def test_all_reasons_of_a_citation_are_told_the_worst_first(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    old = linked(4)
    moved = citation(4, f"Was: {TEXT}")
    row = reply((4,), evidence=[evidence_of(old, 0, 27), evidence_of(moved, 5, 32)])
    kinds = [reason.kind for reason in only(audited(tmp_path, lookup, row)).reasons]
    assert kinds == ["expression of concern", "revised", "corrected"]


def test_the_worst_comes_first_whatever_answer_it_is_in(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    old = citation(5, TEXT)
    rows = [
        reply((6, 4), name="a"),
        reply((5,), evidence=[evidence_of(old, 0, 27)], name="b"),
        reply((99, 2), name="c"),
    ]
    found = audited(tmp_path, lookup, *rows)
    assert tuple(concern.kind for concern in found.concerns) == KINDS
    assert [concern.answer for concern in found.concerns] == ["c", "c", "a", "b", "a"]
    assert (found.answers, found.citations) == (3, 5)


def test_a_retraction_that_the_answer_knew_of_is_told_apart(
    tmp_path: Path, lookup: CitationLookup
) -> None:
    known = RankedCitation(2, 1.0, retracted=True)
    found = audited(tmp_path, lookup, reply((2,), citations=[known]), reply((2,)))
    assert [concern.known for concern in found.concerns] == [True, False]


app = typer.Typer()
app.command()(audit)


def run_audit(index: Path, *arguments: object) -> Result:
    command = [*map(str, arguments), f"--set=index.path={index}"]
    return CliRunner().invoke(app, command, catch_exceptions=False)


def test_each_concern_is_a_line(tmp_path: Path, index: Path) -> None:
    known = RankedCitation(2, 1.0, retracted=True)
    path = write_lines(tmp_path / "a", reply((4,)), reply((2,), (2, 1), citations=[known]))
    result = run_audit(index, path)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "retracted (marked so in the answer): q1, PMID 2, sentence 1, sentence 2: "
        "RetractionIn J. 2020 PMID 42",
        "expression of concern: q1, PMID 4, sentence 1: ExpressionOfConcernIn J. 2020 PMID 42; "
        "corrected: ErratumIn J. 2020 PMID 42",
    ]
    assert "2 answers, 3 citations against index version v000001: 2 of concern" in result.stderr


def test_a_concern_about_an_answer_without_enough_evidence_says_so(
    tmp_path: Path, index: Path
) -> None:
    row = reply((4,)) | {"verdict": "not_enough_evidence"}
    result = run_audit(index, write_lines(tmp_path / "a", row))
    assert result.stdout.startswith(
        "expression of concern (the verdict is not enough evidence): q1, PMID 4"
    )


def test_nothing_of_concern_exits_0(tmp_path: Path, index: Path) -> None:
    result = run_audit(index, write_lines(tmp_path / "a", reply((1,))))
    assert (result.exit_code, result.stdout) == (0, "")


def test_the_concerns_are_there_for_programs(tmp_path: Path, index: Path) -> None:
    path = write_lines(tmp_path / "a", reply((6,)))
    result = run_audit(index, path, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "index_version": "v000001",
        "answers": 1,
        "citations": 1,
        "concerns": [
            {
                "answer": "q1",
                "place": f"{path}: line 1",
                "pmid": 6,
                "kind": "corrected",
                "reasons": [{"kind": "corrected", "detail": "ErratumIn J. 2020 PMID 42"}],
                "cited_by": ["sentence 1"],
                "answered_from": "v000001",
                "known": False,
                "record": {"version": 1, "source": "", "position": 0, "year": None},
                "verdict": "answered",
            }
        ],
    }


def test_a_bad_file_or_no_index_is_bad_input(tmp_path: Path, index: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        run_audit(index, tmp_path / "absent")
    with pytest.raises(IndexFormatError, match="no index here") as caught:
        run_audit(tmp_path / "none", write_lines(tmp_path / "a", reply((1,))))
    assert caught.value.exit_code == InputError.exit_code == 2


def test_a_damaged_index_is_no_verdict(tmp_path: Path) -> None:
    make_index(tmp_path / "index", [SOUND], shards=1)
    next((tmp_path / "index").rglob("citations.arrow")).write_bytes(b"")
    with pytest.raises(IndexFormatError) as caught:
        run_audit(tmp_path / "index", write_lines(tmp_path / "a", reply((1,))))
    assert caught.value.exit_code == 2
