"""Audit of stored answers against a newer index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cluster.answers import RankedCitation
from cluster.errors import IndexFormatError, InputError
from cluster.records import Citation, Link
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
from evaluation.audit.read_answers import read_answers
from evaluation.find_citations import CitationLookup
from tests.evaluation.evaluate_command.small_runs import lines, runner_of
from tests.evaluation.stored_answers import evidence_of, reply
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


def test_audit_refuses_bad_file_and_missing_index(tmp_path: Path, index: Path) -> None:
    answers = lines(tmp_path / "a", reply((1,)))
    with pytest.raises(InputError, match="cannot be read"):
        run_audit(index, tmp_path / "absent")
    with pytest.raises(IndexFormatError, match="no index here") as caught:
        run_audit(tmp_path / "none", answers)
    assert caught.value.exit_code == InputError.exit_code == 2
    make_index(tmp_path / "index", [SOUND], shards=1)
    next((tmp_path / "index").rglob("citations.arrow")).write_bytes(b"")
    with pytest.raises(IndexFormatError):
        run_audit(tmp_path / "index", answers)
