from __future__ import annotations

from cluster.answers import Sentence
from serve.support.check_names import borrowed_names, invented_names
from tests.serve.answering import evidence

MALARIA = "Drugs against malaria cause haemolysis in people with G6PD deficiency."
RENAL = "Daprodustat raised haemoglobin in renal anaemia."


def borrowed(text: str, *names: str, body: str = "What causes haemolysis?") -> list[str]:
    texts = (MALARIA, RENAL, "Iron is given by mouth.")
    return borrowed_names(Sentence(text, (1,), 0.8), evidence(*texts), names, body)


def test_name_of_an_uncited_passage_is_borrowed() -> None:
    said = "Drugs against malaria, such as daprodustat, cause haemolysis."
    assert borrowed(said, "malaria", "daprodustat") == ["daprodustat"]


def test_name_of_the_question_is_not_borrowed() -> None:
    assert borrowed("Daprodustat is no cause.", "daprodustat", body="Does daprodustat?") == []


def test_name_of_no_passage_is_not_borrowed() -> None:
    assert borrowed("Rasburicase causes haemolysis.", "rasburicase") == []


def test_name_of_many_passages_is_not_borrowed() -> None:
    texts = (MALARIA, RENAL, RENAL, RENAL)
    said = Sentence("Renal haemolysis.", (1,), 0.8)
    assert borrowed_names(said, evidence(*texts), ["renal"], "What?") == []


def invented(text: str, *names: str, body: str = "What causes haemolysis?") -> list[str]:
    return invented_names(text, evidence(MALARIA, RENAL), names, body)


def test_name_of_no_passage_is_invented() -> None:
    assert invented("It is rasburicase that causes haemolysis.", "rasburicase") == ["rasburicase"]


def test_capitalised_word_of_no_passage_is_invented() -> None:
    assert invented("Curevit causes haemolysis.") == ["Curevit"]
    assert invented("Yes, Curevit causes haemolysis.") == ["Curevit"]
    assert invented("Haemolysis is caused by Curevit.") == ["Curevit"]


def test_names_of_passages_are_not_invented() -> None:
    said = "Daprodustat and Zelomab cause haemolysis."
    passages = evidence("Daprodustat and zelomab cause haemolysis.")
    assert invented_names(said, passages, ["daprodustat"], "Are they safe?") == []


def test_name_of_the_question_only_is_invented() -> None:
    said = "Daprodustat and Zelomab cause haemolysis."
    assert invented(said, "daprodustat", body="Does zelomab cause haemolysis?") == ["Zelomab"]


def test_name_of_the_question_with_initials_in_a_passage_is_known() -> None:
    body = "Does benralizumab help in Chronic Spontaneous Urticaria?"
    said = "It helps in Chronic Spontaneous Urticaria."
    assert invented_names(said, evidence("It helps in CSU."), [], body) == []


def test_words_that_open_a_sentence_are_not_names() -> None:
    assert invented("Interestingly, haemolysis was seen.") == []
    assert invented("Therefore haemolysis was seen.") == []
    assert invented("No. However, haemolysis was seen.") == []


MTOR = "Temsirolimus inhibits mTOR."
SIROLIMUS = "The mammalian target of rapamycin (mTOR) binds sirolimus."


def test_long_form_of_a_cited_abbreviation_is_not_borrowed() -> None:
    said = Sentence("Temsirolimus inhibits the mammalian target of rapamycin (mTOR).", (1,), 0.8)
    texts = evidence(MTOR, SIROLIMUS)
    assert borrowed_names(said, texts, ["mammalian target of rapamycin"], "What is it?") == []
    assert borrowed_names(said, texts, ["sirolimus"], "What is it?") == ["sirolimus"]


def test_part_of_a_hyphenated_word_is_known() -> None:
    said = Sentence("Prestin moves outer hair cells.", (1,), 0.8)
    texts = evidence("Prestin moves outer-hair cells.", "Hair is lost in alopecia.")
    assert borrowed_names(said, texts, ["hair"], "What is prestin?") == []


def test_part_of_a_long_form_is_another_name() -> None:
    said = Sentence("Rapamycin inhibits mTOR.", (1,), 0.8)
    assert borrowed_names(said, evidence(MTOR, SIROLIMUS), ["Rapamycin"], "?") == ["Rapamycin"]


def test_abbreviation_of_an_uncited_long_form_is_borrowed() -> None:
    said = Sentence("Temsirolimus inhibits mTOR.", (1,), 0.8)
    texts = evidence("Temsirolimus inhibits growth.", SIROLIMUS)
    assert borrowed_names(said, texts, ["mTOR"], "What does it do?") == ["mTOR"]


def test_long_form_defined_in_the_question_is_not_invented() -> None:
    body = "Is there a role for CADM1 in Myelodysplastic syndrome (MDS)?"
    said = "CADM1 plays a role in Myelodysplastic syndrome."
    passages = evidence("CADM1 is important in del(11q) MDS.")
    assert invented_names(said, passages, ["Myelodysplastic syndrome"], body) == []
    assert invented_names(said, evidence("CADM1 is important."), [], body) == ["Myelodysplastic"]
