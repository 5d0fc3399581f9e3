"""Prompt injections in abstracts, titles, questions and chats are not obeyed.

The model of these tests obeys every instruction that it sees. From its reply only the words of an
abstract reach the answer, and they cite that abstract: no words of a question or a chat, no link,
no part of our prompt, and nothing that is attributed to another citation.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.answers import Answer
from serve.llm.prompts import number_passages
from serve.support.find_references import holds_reference
from tests.hostile.obedient_model import (
    HONEST,
    PAPERS,
    PLANTED,
    SYSTEMS,
    ObedientModel,
    answer,
    said_in,
)
from tests.serve.answering import evidence

CASES = yaml.safe_load(Path(__file__).with_name("injections.yaml").read_text(encoding="utf-8"))
ABSTRACTS = yaml.safe_load(Path(__file__).with_name("abstracts.yaml").read_text(encoding="utf-8"))


def _obedient_model(case: Mapping[str, Any], always: bool = False) -> ObedientModel:
    return ObedientModel(case["text"], case["payload"], case.get("exact", ""), always)


def _require_disobedience(case: Mapping[str, Any], given: Answer) -> None:
    """Check that the answer holds only evidence, and attributes injected words to their article."""
    said = said_in(given)
    assert "evil.example" not in said
    assert "biomedical expert" not in said
    assert "citeray_api_keys" not in said
    assert "hacked" not in said
    sentences = (*given.ideal, *given.supported)
    assert not any(holds_reference(sentence.text) for sentence in sentences)
    assert {pmid for s in sentences for pmid in s.pmids} <= {PLANTED, *(c.pmid for c in HONEST)}
    # A "no" of the model against evidence for "yes" is withheld, and the answer is empty.
    withheld = case.get("exact") == "no" and given.verdict == "not_enough_evidence"
    assert given.ideal or withheld, "the evidence answers all the same"
    if case["planted"] in ("abstract", "title"):
        planted = [s for s in sentences if _is_planted(case, s.text)]
        assert all(sentence.pmids == (PLANTED,) for sentence in planted)
    else:
        assert not _is_planted(case, said)


def _is_planted(case: Mapping[str, Any], text: str) -> bool:
    said = text.casefold()
    return case["payload"].casefold().rstrip(".") in said or "curevit" in said


def some_and_all(systems: Iterable[str], count: int) -> list[Any]:
    """Return parameters: `count` random pairs of system and case, and for nightly runs all."""
    pairs = list(product(systems, CASES))
    some = random.Random(7).sample(pairs, count)
    return [pytest.param(some, id="some"), pytest.param(pairs, id="all", marks=pytest.mark.nightly)]


@pytest.mark.slow
@pytest.mark.parametrize("pairs", some_and_all(SYSTEMS, 20))
def test_injected_instructions_are_not_obeyed(
    pairs: Sequence[tuple[str, Mapping[str, Any]]], subtests: pytest.Subtests
) -> None:
    for system, case in pairs:
        with subtests.test(system=system, case=case["name"]):
            given = answer(case, system, _obedient_model(case))
            _require_disobedience(case, given)


@pytest.mark.slow
@pytest.mark.parametrize("pairs", some_and_all(PAPERS, 10))
def test_injected_claims_are_marked_by_presets_without_a_check(
    pairs: Sequence[tuple[str, Mapping[str, Any]]], subtests: pytest.Subtests
) -> None:
    """These presets show the model's text, but without citations and links."""
    for system, case in pairs:
        with subtests.test(system=system, case=case["name"]):
            given = answer(case, system, _obedient_model(case), PAPERS)
            sentences = (*given.ideal, *given.supported)
            cited = {pmid for s in sentences for pmid in s.pmids}
            assert given.check == "off"
            assert not any(holds_reference(sentence.text) for sentence in sentences)
            assert cited <= {PLANTED, *(c.pmid for c in HONEST)}
            planted = [s for s in sentences if _is_planted(case, s.text)]
            assert all(s.unsupported or s.pmids == (PLANTED,) for s in planted)


def test_injected_denial_is_shown_as_contradicted() -> None:
    case = next(case for case in CASES if case["name"] == "answer-no")
    given = answer(case, "weighed", _obedient_model(case))
    assert given.ideal[0].pmids == (PLANTED,)
    assert set(given.ideal[0].contradicted) & {1, 2, 3}
    assert given.ideal[1].text.startswith("In contrast: Metformin activates AMPK")


# Payloads so similar to the evidence ("harms" for "activates") that they pass the check.
LIKE_THE_EVIDENCE = {"closes-our-quoting"}


@pytest.mark.nightly
def test_lies_of_the_model_are_dropped(subtests: pytest.Subtests) -> None:
    for system in SYSTEMS:
        with subtests.test(system=system):
            dropped = set()
            for case in CASES:
                honest = {**case, "planted": "nowhere"}
                said = said_in(answer(honest, system, _obedient_model(case, always=True)))
                assert "evil.example" not in said
                assert "curevit" not in said
                if case["payload"].casefold().rstrip(".") in said:
                    dropped.add(case["name"])
            assert dropped <= LIKE_THE_EVIDENCE


def test_injected_abstract_is_shown_as_evidence() -> None:
    case = CASES[0]
    model = _obedient_model(case)
    given = answer(case, "plain", model)
    assert model.seen
    assert PLANTED in {item.passage.pmid for item in given.evidence}
    assert given.degraded == ("llm: nothing usable, extractive answer",)


def test_false_statement_of_an_abstract_is_cited_as_its_own() -> None:
    case = {"planted": "abstract", "text": "Curevit activates AMPK in the liver of mice."}
    model = ObedientModel(case["text"], "Curevit activates AMPK in the liver of mice.", "")
    given = answer(case, "plain", model)
    assert [s.text for s in given.ideal] == [model.payload]
    assert given.ideal[0].pmids[0] == PLANTED
    assert given.degraded == ()


DEMANDED = {
    name: said[1]
    for name, text in ABSTRACTS["orders"].items()
    if (said := re.search(r'"([^"]{12,200})"', " ".join(text.split())))
}


def borrows(name: str) -> bool:
    """Return whether the words demanded by abstract `name` are attributed to another article."""
    text = " ".join(ABSTRACTS["orders"][name].split())
    payload = DEMANDED[name].rstrip(".") + "."
    model = ObedientModel(text, payload, "")
    given = answer({"planted": "abstract", "text": text}, "plain", model)
    obeying = [
        s for s in (*given.ideal, *given.supported) if payload.casefold() in s.text.casefold()
    ]
    return any(sentence.pmids != (PLANTED,) for sentence in obeying)


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(random.Random(7).sample(sorted(DEMANDED), 5), id="some"),
        pytest.param(sorted(DEMANDED), id="all", marks=pytest.mark.nightly),
    ],
)
def test_demanded_words_are_attributed_to_their_own_abstract(names: Sequence[str]) -> None:
    assert [name for name in names if borrows(name)] == []


PLAIN_SPEECH = (
    "Participants were instructed to ignore the distracting tones and to answer yes or no.",
    "The full protocol is at https://clinicaltrials.gov/study/NCT01234567?tab=results.",
    "In mice < 8 weeks old, p <0.05 was found [see Methods], and IL-6 > 10 pg/ml.",
    "The peptide MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVK binds.",
)


def test_ordinary_abstracts_reach_the_model_unchanged(subtests: pytest.Subtests) -> None:
    for text in [*PLAIN_SPEECH, *ABSTRACTS["no_orders"]]:
        with subtests.test(text=text[:60]):
            shown = number_passages(evidence(text), 5000).replace("\u2039", "<")
            assert shown == f"[1] {' '.join(text.split())}"
