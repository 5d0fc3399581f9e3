"""Outcomes of judged answers: right, held back or wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.answers.judge import judge, same_thing
from tests.answers.suite import Row

CITATIONS = [{"pmid": 95_000_001, "title": "T", "text": "The gene PTPN11 shapes the neck."}]


def row(type: str, expected: Any = None, forbidden: tuple[str, ...] = ()) -> Row:
    fields = {"id": "a-01", "question": "Q?", "type": type, "expected": expected}
    return Row.model_validate({**fields, "forbidden": forbidden, "evidence": CITATIONS})


GENE = row("factoid", [["PTPN11", "SHP2"]], ("neck",))
GENES = row("list", [["PTPN11"], ["SOS1"]])
DISEASE = row("factoid", [["cat scratch disease"]], ("cat",))
NO, MIXED, UNANSWERABLE = row("yesno", "no"), row("yesno", "mixed"), row("factoid")


def test_answers_are_judged_by_their_rows(subtests: pytest.Subtests) -> None:
    for expected, verdict, exact, wanted in [
        (NO, "answered", "no", "right"),
        (NO, "answered", "yes", "wrong"),
        (NO, "answered", None, "wrong"),
        (NO, "mixed", "yes", "held back"),
        (NO, "not_enough_evidence", "yes", "held back"),
        (MIXED, "mixed", None, "right"),
        (MIXED, "not_enough_evidence", None, "held back"),
        (MIXED, "answered", "yes", "wrong"),
        (UNANSWERABLE, "answered", [["Paris"]], "wrong"),
        (UNANSWERABLE, "mixed", [["Paris"]], "wrong"),
        (UNANSWERABLE, "not_enough_evidence", None, "right"),
        # A factoid is right if any synonym is its first answer.
        (GENE, "answered", [["SHP2"], ["SOS1"]], "right"),
        (GENE, "answered", [["SOS1"], ["SHP2"]], "wrong"),
        (GENE, "not_enough_evidence", [], "held back"),
        # A name of the wrong type is wrong at any place.
        *((GENE, "answered", [["PTPN11"], [s]], "wrong") for s in ("neck", "Neck", "webbed neck")),
        # A forbidden word is allowed within an expected name.
        (DISEASE, "answered", [["cat scratch disease"]], "right"),
        (DISEASE, "answered", [["cat scratch disease", "cat"]], "wrong"),
        # The F1 of a list must be high enough.
        (GENES, "answered", [["PTPN11"], ["RAF1"]], "right"),
        (GENES, "answered", [["PTPN11"], ["A"], ["B"]], "wrong"),
    ]:
        with subtests.test(row=expected.expected, verdict=verdict, exact=exact):
            given = SimpleNamespace(verdict=verdict, exact=exact)
            assert judge(expected, given).outcome == wanted  # type: ignore[arg-type]


def test_name_with_a_few_extra_words_is_accepted(subtests: pytest.Subtests) -> None:
    release = "inhibits the release of acetylcholine"
    for said, name, wanted in [
        ("CFTR gene", "CFTR", True),
        ("\u03b1-synuclein", "alpha-synuclein", True),
        ("about 40 years", "40 years", True),
        ("0.5 mg", "0.5 mg", True),
        ("500 \u00b5g", "500 \u03bcg", True),
        (f"{release} at motor nerve endings", release, True),
        # Another value or a sentence is not the name.
        ("5 mg", "0.5 mg", False),
        ("0.5 g", "0.5 mg", False),
        ("BRCA1 and four other genes of repair", "BRCA1", False),
    ]:
        with subtests.test(said=said, name=name):
            assert same_thing(said, name) == wanted
