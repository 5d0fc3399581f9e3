from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from cluster.answers import Evidence, Question, QuestionType, Sentence
from cluster.models.readings import Reading, ScoredSpan
from serve.answer.calibration import FEATURES
from serve.answer.decide_verdict import (
    Balance,
    Decision,
    Written,
    decide_verdict,
    features_of,
    nearest_cosine,
    note_opposition,
    weigh,
    yesno_stances,
)
from serve.answer.names.rank_names import RankedName
from serve.answer.read_evidence import ReadCitation
from tests.serve.answering import CALIBRATION, citation, passage

IDEAL = (Sentence("It helps.", (1,), 0.7), Sentence("It is cheap.", (2,), 0.9))
NAMES = [RankedName(("aspirin",), 2.0, 0.9), RankedName(("heparin",), 0.5, 0.8)]
UNSURE = {"yes": 0.4, "no": 0.1, "silent": 0.5}
FOR = {"yes": 0.9, "no": 0.05, "silent": 0.05}
AGAINST = {"yes": 0.05, "no": 0.9, "silent": 0.05}


def asked(kind: QuestionType = "yesno") -> Question:
    return Question("q", "Does it help?", kind)


def cite(pmid: int = 1, **said: Any) -> ReadCitation:
    return citation(pmid=pmid, **said)


def decide(
    *citations: ReadCitation,
    kind: QuestionType = "yesno",
    exact: Any = "yes",
    ideal: tuple[Sentence, ...] = IDEAL,
    names: Any = NAMES,
    max_wrong: float = 0.1,
    **written: Any,
) -> Decision:
    said = Written(ideal, exact, **written)
    return decide_verdict(asked(kind), citations, names, said, CALIBRATION, max_wrong)


def test_weigh_sums_weights_discounted_by_rank() -> None:
    balance = weigh([cite(1, relevance=1.0), cite(2, relevance=1.0, **AGAINST)])
    assert (balance.yes, balance.no) == pytest.approx((0.9 + 0.05 / 1.15, 0.05 + 0.9 / 1.15))
    assert (balance.best_yes, balance.best_no) == (0.9, 0.9)
    assert (balance.side, balance.said) == ("yes", 0.9)
    assert weigh([]) == Balance()
    assert Balance().share == 0.5
    # An irrelevant citation carries almost no weight.
    assert weigh([cite(relevance=0.01)]).said < 0.01


def test_weight_of_no_is_corrected_for_the_reader() -> None:
    close = cite(relevance=1.0, yes=0.5, no=0.4, silent=0.1)
    assert weigh([close]).side == "yes"
    corrected = weigh([replace(close, no_weight=2.0)])
    assert corrected.side == "no"
    assert corrected.share == pytest.approx(0.81 / 1.32)
    # Evidence that is divided stays so, whatever the correction.
    both = [replace(cite(n, **said), no_weight=9.0) for n, said in enumerate((FOR, AGAINST), 1)]
    assert weigh(both).is_divided


def test_balance_is_divided_if_both_sides_are_clear() -> None:
    for citations, is_divided in [
        ([FOR, AGAINST], True),
        ([AGAINST, FOR], True),
        ([FOR, UNSURE, AGAINST, UNSURE], True),
        # A single contrary citation among many, an unclear citation, and only one side.
        ([FOR, FOR, FOR, FOR, FOR, AGAINST], False),
        ([FOR, {"yes": 0.1, "no": 0.4, "silent": 0.5}], False),
        ([FOR, FOR], False),
        ([], False),
    ]:
        found = [cite(n, **said) for n, said in enumerate(citations, 1)]
        assert weigh(found).is_divided is is_divided, citations


def test_features_increase_with_clearer_evidence() -> None:
    spans = (ScoredSpan(0, 9, 0.8),)
    weak = features_of(asked(), [cite(relevance=0.5, **UNSURE)], [])
    clear = features_of(asked(), [cite(sentences=spans)], NAMES)
    for name in ("share", "said", "relevance", "salience", "name", "margin", "mean_name"):
        assert clear[name] > weak[name], name
    assert clear["relevance"] == pytest.approx(math.log(99))
    assert clear["mean_name"] == 0.9
    assert tuple(clear) == FEATURES
    none = features_of(asked("list"), [], [])
    assert none.keys() == clear.keys()
    assert all(math.isfinite(value) for value in none.values())


def test_nearest_cosine_is_one_for_given_evidence() -> None:
    assert nearest_cosine([cite(cosine=0.2), cite(2, cosine=0.7)]) == 0.7
    bare = replace(cite(), items=(Evidence(passage("It helps.")),))
    assert nearest_cosine([bare]) == 1.0
    assert nearest_cosine([bare, cite(2, cosine=0.3)]) == 0.3


def test_clear_answer_is_stated() -> None:
    stated: dict[QuestionType, tuple[Any, str]] = {
        "yesno": ("yes", "yes"),
        "factoid": ([["aspirin"]], "It helps."),
        "list": ([["aspirin"]], "It helps."),
        "summary": (None, "It helps."),
        "unknown": (None, "It helps."),
    }
    for kind, (exact, on) in stated.items():
        found = decide(cite(), kind=kind, exact=exact)
        assert (found.verdict, found.stance_on) == ("answered", on), kind
        assert found.confidence > 0.8, kind
    assert decide(cite(**AGAINST), exact="no").stance_on == "no"


def test_uncertain_or_missing_answer_is_withheld(subtests: pytest.Subtests) -> None:
    for name, options in {
        "no sentence": {"ideal": ()},
        "an unclear side": {"citations": [cite(**UNSURE)]},
        "no citation": {"citations": []},
        "an irrelevant citation": {"citations": [cite(relevance=0.1)], "kind": "summary"},
        "an unlikely name": {"kind": "factoid", "exact": [["a"]], "names": []},
        "no name in a list": {"kind": "list", "exact": []},
        "no name": {"kind": "factoid", "exact": []},
        "a model that finds nothing": {"decision": "not stated"},
        "a budget of no error": {"max_wrong": 0.0},
    }.items():
        with subtests.test(name):
            citations = options.pop("citations", [cite()])
            found = decide(*citations, **options)
            assert (found.verdict, found.stance_on) == ("not_enough_evidence", "")
            assert 0 <= found.confidence <= 1


def test_error_budget_of_one_states_every_answer() -> None:
    for citations in ([], [cite(relevance=0.01)], [cite(**UNSURE)]):
        assert decide(*citations, max_wrong=1.0).verdict == "answered"
    assert decide(cite(), ideal=(), max_wrong=1.0).verdict == "not_enough_evidence"


@pytest.mark.parametrize(
    ("relevances", "max_wrong", "unrelated"),
    [((0.79, 0.1), 0.0, True), ((0.1, 0.81), 0.0, False), ((0.1,), 1.0, False), ((), 0.0, True)],
)
def test_withheld_answer_is_unrelated_if_no_citation_is_relevant(
    relevances: tuple[float, ...], max_wrong: float, unrelated: bool
) -> None:
    citations = [cite(relevance=relevance) for relevance in relevances]
    written = Written(IDEAL, "yes")
    related = CALIBRATION.model_copy(update={"related": 0.8})
    for calibration, expected in ((related, unrelated), (CALIBRATION, False)):
        found = decide_verdict(asked(), citations, [], written, calibration, max_wrong)
        assert found.unrelated is expected


def test_divided_sources_are_mixed_despite_the_model() -> None:
    for decision in (None, "yes", "no", "mixed"):
        found = decide(cite(), cite(2, **AGAINST), decision=decision)
        assert (found.verdict, found.stance_on) == ("mixed", "yes"), decision


def test_reader_vetoes_but_never_reverses_the_model() -> None:
    for said, exact, verdict in [
        (FOR, "yes", "answered"),
        (AGAINST, "no", "answered"),
        (AGAINST, "yes", "mixed"),
        (FOR, "no", "mixed"),
        # The reader is not sure of the opposite answer.
        (UNSURE, "no", "answered"),
        (UNSURE, "yes", "answered"),
    ]:
        found = decide(cite(**said), exact=exact, decision=exact)
        assert (found.verdict, found.stance_on) == (verdict, exact), (said, exact)
    agreed = decide(cite(), exact="yes", decision="yes").confidence
    alone = decide(cite(), exact="yes").confidence
    doubted = decide(cite(**UNSURE), exact="no", decision="no").confidence
    assert agreed > alone > doubted > 0.5


def test_error_budget_does_not_withhold_the_models_yesno() -> None:
    for said, exact in [(FOR, "yes"), (UNSURE, "no"), (AGAINST, "yes")]:
        budgets = (0.0, 0.1, 1.0)
        found = [decide(cite(**said), exact=exact, decision=exact, max_wrong=b) for b in budgets]
        assert len({decision.verdict for decision in found}) == 1, (said, exact)
    assert decide(cite(), decision="mixed").verdict == "mixed"


@pytest.mark.parametrize("kind", ["list", "factoid"])
def test_generated_answer_without_names_is_judged_as_a_summary(kind: QuestionType) -> None:
    assert decide(cite(), kind=kind, exact=[], names=[]).verdict == "not_enough_evidence"
    found = decide(cite(), kind=kind, exact=[], names=[], by_model=True)
    assert found.verdict == "answered"
    irrelevant = decide(cite(relevance=0.01), kind=kind, exact=[], names=[], by_model=True)
    assert irrelevant.verdict == "not_enough_evidence"


def two_passages(reading: Reading) -> ReadCitation:
    items = (Evidence(passage("It was given.", 3)), Evidence(passage("It failed.", 3, begin=14)))
    return ReadCitation(3, 2, items, (0, 14), "It was given. It failed.", reading)


def test_stance_of_a_citation_is_on_its_clearest_passage() -> None:
    sentences = (ScoredSpan(0, 13, 0.5, 0.1), ScoredSpan(14, 24, 0.5, -3.0))
    denying = two_passages(Reading(0.9, 0.05, 0.9, 0.05, (), sentences))
    citations = [cite(), denying, cite(4, **UNSURE)]
    ids = [item.passage.id for c in citations for item in c.items]
    for side, stances in [
        ("yes", ["support", "neutral", "contradict", "neutral"]),
        ("no", ["contradict", "neutral", "support", "neutral"]),
    ]:
        found = yesno_stances(citations, side)  # type: ignore[arg-type]
        assert [found[passage_id] for passage_id in ids] == stances, side
    # Without sentences it is on the first passage.
    found = yesno_stances([two_passages(Reading(0.9, 0.9, 0.0, 0.1))], "yes")
    assert list(found.values()) == ["support", "neutral"]


def test_first_sentence_lists_contradicting_citations() -> None:
    citations = [cite(), *(cite(n, **AGAINST) for n in range(2, 8))]
    stances = yesno_stances(citations, "yes")
    first, second = note_opposition(IDEAL, citations, stances)
    # The second sentence cites PMID 2 itself.
    assert (first.contradicted, second.contradicted) == ((3, 4, 5), ())
    assert note_opposition((), citations, stances) == ()
