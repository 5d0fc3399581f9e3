from cluster.records import Question, Sentence
from serve.decide_verdict import Decision, decide_verdict
from tests.serve.answering import evidence

QUESTION = Question("q", "Does it help?", "yesno")
SAID = (Sentence("It helps.", (1,), 0.7), Sentence("It is cheap.", (2,), 0.9))


def test_an_answer_without_sentences_has_not_enough_evidence() -> None:
    decided = decide_verdict(QUESTION, evidence("It helped."), (), "no", {})
    assert decided == Decision("not_enough_evidence", 0.0, "")


def test_a_yes_or_no_is_what_stances_are_towards() -> None:
    decided = decide_verdict(QUESTION, evidence("It helped."), SAID, "yes", {})
    assert decided == Decision("answered", 0.7, "yes")


def test_without_a_yes_or_no_stances_are_towards_the_first_sentence() -> None:
    decided = decide_verdict(QUESTION, evidence("It helped."), SAID, [["aspirin"]], {})
    assert decided.stance_on == "It helps."
