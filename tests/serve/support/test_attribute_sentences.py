from __future__ import annotations

from collections.abc import Sequence

from cluster.records import Sentence
from serve.support.attribute_sentences import (
    SimilaritySupport,
    Support,
    attribute,
    borrowed_names,
    invented_names,
)
from tests.serve.answering import encode, evidence

LOSARTAN = "Losartan was not effective in reducing brain atrophy in 12 months."
METFORMIN = "Metformin lowers blood glucose by 30% in type 2 diabetes."


class Fixed:
    """Scores each premise by a table, whatever the hypothesis."""

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores = scores

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        return [Support(self.scores[premise], "support") for premise, _ in pairs]


def cite(sentence: str, *texts: str) -> tuple[int, ...]:
    (found,) = attribute([sentence], evidence(*texts), SimilaritySupport(encode), threshold=0.5)
    return found.pmids if found else ()


def test_sentence_cites_the_passage_that_says_it() -> None:
    assert cite("Metformin lowers blood glucose.", LOSARTAN, METFORMIN) == (2,)


def test_sentence_on_something_else_is_dropped() -> None:
    assert cite("Aspirin prevents colorectal cancer.", LOSARTAN, METFORMIN) == ()


def test_changed_number_is_dropped() -> None:
    assert cite("Metformin lowers blood glucose by 40% in type 2 diabetes.", METFORMIN) == ()


def test_lost_negation_is_dropped() -> None:
    assert cite("Losartan was effective in reducing brain atrophy in 12 months.", LOSARTAN) == ()


def test_number_of_another_sentence_is_no_support() -> None:
    text = "Drug A lowers mortality by 12%. Headache came in 30%."
    assert cite("Drug A lowers mortality by 30%.", text) == ()


def test_best_sentence_of_a_long_passage_counts() -> None:
    text = f"We asked a question. {METFORMIN} More work is needed on many other matters."
    assert cite(METFORMIN, text) == (1,)


def test_at_most_three_pmids_by_support_then_rank() -> None:
    texts = dict(zip("abcde", (0.7, 0.9, 0.9, 0.8, 0.75), strict=True))
    found = attribute(["S."], evidence(*texts), Fixed(texts), threshold=0.5)
    assert found[0] is not None
    assert found[0].pmids == (2, 3, 4)


def test_much_weaker_support_is_not_cited_beside_strong() -> None:
    scorer = Fixed({"a": 1.0, "b": 0.6})
    found = attribute(["S."], evidence("a", "b"), scorer, threshold=0.5)
    assert found[0] is not None
    assert found[0].pmids == (1,)


def test_support_is_that_of_the_best_passage() -> None:
    found = attribute(["S."], evidence("a", "b"), Fixed({"a": 0.6, "b": 0.9}), threshold=0.5)
    assert found[0] is not None
    assert found[0].support == 0.9


def test_support_at_the_threshold_is_enough() -> None:
    assert attribute(["S."], evidence("a"), Fixed({"a": 0.5}), threshold=0.5) != [None]


def test_each_sentence_gets_its_own_answer_in_order() -> None:
    said = ["Metformin lowers blood glucose.", "Cats sleep."]
    found = attribute(said, evidence(METFORMIN), SimilaritySupport(encode), threshold=0.5)
    assert [f.text if f else None for f in found] == ["Metformin lowers blood glucose.", None]


def test_no_evidence_supports_nothing() -> None:
    assert attribute(["S."], [], SimilaritySupport(encode), threshold=0.5) == [None]


def test_no_sentences_give_no_answers() -> None:
    assert attribute([], evidence("a"), SimilaritySupport(encode), threshold=0.5) == []


def test_opposite_statement_is_a_contradiction() -> None:
    said = "Losartan was effective in reducing brain atrophy."
    (support,) = SimilaritySupport(encode).score([(LOSARTAN, said)])
    assert support == Support(0.0, "contradict", 1.0)


def test_unrelated_premise_is_neutral() -> None:
    (support,) = SimilaritySupport(encode).score([(LOSARTAN, "Cats sleep all day.")])
    assert support.stance == "neutral"


MALARIA = "Drugs against malaria cause haemolysis in people with G6PD deficiency."
RENAL = "Daprodustat raised haemoglobin in renal anaemia."


def borrowed(text: str, *names: str, body: str = "What causes haemolysis?") -> list[str]:
    texts = (MALARIA, RENAL, "Iron is given by mouth.")
    return borrowed_names(Sentence(text, (1,), 0.8), evidence(*texts), names, body)


def test_a_drug_from_a_passage_that_is_not_cited_is_borrowed() -> None:
    said = "Drugs against malaria, such as daprodustat, cause haemolysis."
    assert borrowed(said, "malaria", "daprodustat") == ["daprodustat"]


def test_a_name_of_the_question_is_not_borrowed() -> None:
    assert borrowed("Daprodustat is no cause.", "daprodustat", body="Does daprodustat?") == []


def test_a_name_that_no_passage_has_is_not_borrowed() -> None:
    assert borrowed("Rasburicase causes haemolysis.", "rasburicase") == []


def test_wording_that_many_passages_share_is_not_borrowed() -> None:
    texts = (MALARIA, RENAL, RENAL, RENAL)
    said = Sentence("Renal haemolysis.", (1,), 0.8)
    assert borrowed_names(said, evidence(*texts), ["renal"], "What?") == []


def invented(text: str, *names: str, body: str = "What causes haemolysis?") -> list[str]:
    return invented_names(text, evidence(MALARIA, RENAL), names, body)


def test_a_name_that_no_passage_has_is_invented() -> None:
    assert invented("It is rasburicase that causes haemolysis.", "rasburicase") == ["rasburicase"]


def test_a_capitalised_word_that_no_passage_has_is_an_invented_name() -> None:
    assert invented("Curevit causes haemolysis.") == ["Curevit"]
    assert invented("Yes, Curevit causes haemolysis.") == ["Curevit"]
    assert invented("Haemolysis is caused by Curevit.") == ["Curevit"]


def test_names_of_passages_are_not_invented() -> None:
    said = "Daprodustat and Zelomab cause haemolysis."
    passages = evidence("Daprodustat and zelomab cause haemolysis.")
    assert invented_names(said, passages, ["daprodustat"], "Are they safe?") == []


def test_a_name_that_only_the_question_has_is_invented() -> None:
    said = "Daprodustat and Zelomab cause haemolysis."
    assert invented(said, "daprodustat", body="Does zelomab cause haemolysis?") == ["Zelomab"]


def test_a_name_of_the_question_whose_initials_a_passage_has_is_not_invented() -> None:
    body = "Does benralizumab help in Chronic Spontaneous Urticaria?"
    said = "It helps in Chronic Spontaneous Urticaria."
    assert invented_names(said, evidence("It helps in CSU."), [], body) == []


def test_words_that_open_a_sentence_are_no_invented_names() -> None:
    assert invented("Interestingly, haemolysis was seen.") == []
    assert invented("Therefore haemolysis was seen.") == []
    assert invented("No. However, haemolysis was seen.") == []
