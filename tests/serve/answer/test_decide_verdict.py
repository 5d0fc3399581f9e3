from __future__ import annotations

from typing import Any

import pytest

from cluster.answers import Evidence, Question, QuestionType, Sentence
from cluster.models.readings import Reading
from serve.answer.decide_verdict import Decision, decide_verdict, note_opposition, yesno_stances
from serve.answer.guard_safety import denies_harm, speaks_of_harm
from serve.answer.read_evidence import ReadPassage
from tests.serve.answering import passage

NOTHING = Decision("not_enough_evidence", 0.0, "")
IDEAL = (Sentence("It helps.", (1,), 0.7), Sentence("It is cheap.", (2,), 0.9))


def read(text: str = "It helps.", pmid: int = 1, cosine: float = 0.8, **said: float) -> ReadPassage:
    figures = {"relevance": 0.99, "yes": 0.9, "no": 0.05, "silent": 0.05} | said
    item = Evidence(passage(text, pmid), {"dense": cosine})
    return ReadPassage(item, pmid - 1, Reading(**figures))


def asked(kind: QuestionType = "yesno", body: str = "Does it help?") -> Question:
    return Question("q", body, kind)


def decide(*passages: ReadPassage, exact: Any = "yes", **options: Any) -> Decision:
    return decide_verdict(asked(), passages, IDEAL, exact, **options)


def test_what_the_evidence_says_clearly_is_answered() -> None:
    decided = decide(read(), read(pmid=2))
    assert (decided.verdict, decided.stance_on) == ("answered", "yes")
    assert decided.confidence > 0.8


def test_an_answer_without_sentences_has_not_enough_evidence() -> None:
    assert decide_verdict(asked(), [read()], (), "yes") == NOTHING


def test_evidence_that_does_not_answer_is_not_enough(subtests: pytest.Subtests) -> None:
    for passages, options in [
        ([], {}),
        ([read(relevance=0.5)], {}),
        ([read(yes=0.1, silent=0.9)], {}),
        # Clear once, and not the most of what is said.
        ([read(yes=0.6, no=0.4, relevance=1.0)], {}),
        ([read(cosine=0.2)], {"min_cosine": 0.4}),
        ([read()], {"agrees": False}),
        ([read()], {"decision": "not stated"}),
    ]:
        with subtests.test(passages=passages, options=options):
            assert decide(*passages, **options) == NOTHING


def test_a_yes_is_decided_by_a_source_that_is_near_the_question() -> None:
    far, near = read(cosine=0.2), read(pmid=2, cosine=0.9)
    assert decide(far, near, deciding_cosine=0.4) == NOTHING
    assert decide(far, near, deciding_cosine=0.4, decision="yes").verdict == "answered"
    nearer = read(cosine=0.9), read(pmid=2, cosine=0.2)
    assert decide(*nearer, deciding_cosine=0.4).verdict == "answered"


def test_a_search_without_vectors_is_not_held_to_a_cosine() -> None:
    found = read()
    bare = ReadPassage(Evidence(found.item.passage), 0, found.reading)
    assert decide(bare, min_cosine=0.4).verdict == "answered"


@pytest.mark.parametrize("decision", [None, "yes", "no"])
def test_sources_that_disagree_are_mixed_whatever_a_model_decides(decision: Any) -> None:
    sources = read(), read(pmid=2, yes=0.05, no=0.9)
    assert decide(*sources, decision=decision).verdict == "mixed"


def test_a_models_yes_is_not_stated_over_evidence_against_it() -> None:
    against = read(yes=0.0, no=0.99, silent=0.01)
    assert decide(against, decision="yes").verdict == "mixed"
    unsure = read(yes=0.1, no=0.6, silent=0.3)
    assert decide(unsure, decision="yes").verdict == "answered"
    assert decide(unsure, decision="yes", opposed_by=IDEAL[0]).verdict == "mixed"
    assert decide(read(), decision="yes").verdict == "answered"
    assert decide(read(), decision="mixed").verdict == "mixed"


def test_a_quantity_that_was_not_found_is_not_answered() -> None:
    question = asked("factoid", "What is the dose of it?")
    assert decide_verdict(question, [read()], IDEAL, []) == NOTHING
    assert decide_verdict(question, [read()], IDEAL, [["5 mg"]]).verdict == "answered"


def test_other_answers_take_stances_towards_their_first_sentence() -> None:
    decided = decide_verdict(asked("list"), [read()], IDEAL, [["aspirin"]])
    assert (decided.verdict, decided.stance_on) == ("answered", "It helps.")


def test_passages_support_contradict_or_leave_alone_a_yes_or_no() -> None:
    passages = [read(), read(pmid=2, yes=0.0, no=0.9), read(pmid=3, yes=0.1, silent=0.9)]
    stances = yesno_stances(passages, "yes")
    assert list(stances.values()) == ["support", "contradict", "neutral"]
    first, second = note_opposition(IDEAL[:1] * 2, passages, stances)
    assert (first.contradicted, second.contradicted) == ((2,), ())


def test_a_yes_to_safety_is_withheld_over_a_warning(subtests: pytest.Subtests) -> None:
    for question, evidence, warns in [
        ("Is valproate safe in pregnancy?", "Valproate is contraindicated in pregnancy.", True),
        ("Can thalidomide be taken in pregnancy?", "It caused phocomelia in newborns.", True),
        ("Is smoking good for the lungs?", "Smoking is harmful to the lungs.", True),
        ("Can aspirin be given to children?", "They developed Reye's syndrome.", True),
        ("Is labetalol safe in pregnancy?", "No malformations were seen with labetalol.", False),
        ("Is labetalol safe in pregnancy?", "Labetalol is widely prescribed.", False),
        ("Does valproate bind sodium channels?", "Valproate is contraindicated.", False),
    ]:
        with subtests.test(question=question, evidence=evidence):
            assert speaks_of_harm(question, [read(evidence)]) is warns
            decided = decide_verdict(asked(body=question), [read(evidence)], IDEAL, "yes")
            assert (decided.verdict == "not_enough_evidence") is warns


def test_a_no_to_safety_is_withheld_over_a_denial_of_harm(subtests: pytest.Subtests) -> None:
    for question, evidence, denies in [
        ("Is labetalol safe in pregnancy?", "It was not linked to malformations.", True),
        ("Can statins be used after a stroke?", "Statins should not be withheld then.", True),
        ("Is labetalol safe in pregnancy?", "It did not lower blood pressure.", False),
        ("Is labetalol safe in pregnancy?", "It should not be used.", False),
        ("Should statins be used in sepsis?", "They did not reduce mortality.", False),
        ("Is aspirin recommended for all?", "It did not lower the risk of stroke.", False),
        ("Does labetalol lower mortality?", "It was not linked to malformations.", False),
    ]:
        with subtests.test(question=question, evidence=evidence):
            passages = [read(evidence)]
            assert denies_harm(question, passages) is denies
            decided = decide_verdict(asked(body=question), passages, IDEAL, "no")
            assert (decided.verdict == "not_enough_evidence") is denies
            warned = [*passages, read("Labetalol and statins are toxic.")]
            assert not denies_harm(question, warned)


def test_a_yes_is_withheld_above_a_sentence_that_says_the_opposite() -> None:
    question = asked(body="Is PIM1 a protein phosphatase?")
    opposite = (Sentence("PIM1 is a protein kinase of many substrates.", (1,), 0.9),)
    assert decide_verdict(question, [read()], opposite, "yes") == NOTHING
    same = (Sentence("PIM1 is a protein phosphatase of many substrates.", (1,), 0.9),)
    assert decide_verdict(question, [read()], same, "yes").verdict == "answered"


def test_a_warning_is_told_where_a_question_for_leave_is_not_answered() -> None:
    question = asked(body="Can I take curevit while I breastfeed?")
    warning = read("Mothers on curevit expose the infant to a risk of adverse events.", pmid=7)
    decided = decide_verdict(question, [read("It is often taken."), warning], IDEAL, "yes")
    assert decided.verdict == "not_enough_evidence"
    assert decided.warning.startswith("PMID 7 warns: ")
    assert "risk of adverse events" in decided.warning
    silent = decide_verdict(question, [read("It is often taken.", silent=0.9, yes=0.0)], (), "yes")
    assert silent == NOTHING


def test_which_answer_is_the_careful_one_hangs_on_the_question(subtests: pytest.Subtests) -> None:
    for question, evidence, side, verdict in [
        ("Should mothers with it stop nursing?", "It was not linked to harm.", "no", "answered"),
        ("Should mothers with it stop nursing?", "It was not linked to harm.", "yes", "withheld"),
        ("Should mothers with it stop nursing?", "Nursing is dangerous then.", "no", "withheld"),
        (
            "Is curevit used for lupus?",
            "It is used in people at risk of flares.",
            "yes",
            "answered",
        ),
        ("Can curevit be used in lupus?", "There is a risk of flares.", "yes", "withheld"),
        ("Does use of curevit cause ulcers?", "It causes bleeding.", "yes", "answered"),
        ("Is it safe to use curevit, which causes thirst?", "It is toxic.", "yes", "withheld"),
        ("Can I take curevit if it causes thirst?", "It is toxic.", "yes", "withheld"),
    ]:
        with subtests.test(question=question, evidence=evidence):
            said = {"yes": 0.9, "no": 0.05} if side == "yes" else {"yes": 0.05, "no": 0.9}
            decided = decide_verdict(asked(body=question), [read(evidence, **said)], IDEAL, side)
            assert (decided.verdict == "answered") is (verdict == "answered")


def test_a_list_and_a_question_for_a_kind_of_thing_need_a_name() -> None:
    for body in ("Which gene is at fault?", "Which hormone does it lower?", "Who found it?"):
        assert decide_verdict(asked("factoid", body), [read()], IDEAL, []) == NOTHING
    assert decide_verdict(asked("list"), [read()], IDEAL, []) == NOTHING
    assert decide_verdict(asked("factoid"), [read()], IDEAL, []).verdict == "answered"


def test_a_negated_question_is_not_withheld_for_the_opposite_of_its_words() -> None:
    question = asked(body="Is it true that PIM1 is not a protein phosphatase?")
    ideal = (Sentence("PIM1 is a protein kinase of many substrates.", (1,), 0.9),)
    assert decide_verdict(question, [read()], ideal, "yes").verdict == "answered"


@pytest.mark.parametrize("kind", ["list", "factoid"])
def test_what_a_model_wrote_may_name_it_in_words_that_are_no_name(kind: QuestionType) -> None:
    question = asked(kind, "Which mutation causes resistance?")
    assert decide_verdict(question, [read()], IDEAL, []) == NOTHING
    assert decide_verdict(question, [read()], IDEAL, [], generated=True).verdict == "answered"
