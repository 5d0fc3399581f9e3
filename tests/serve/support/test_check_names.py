from __future__ import annotations

import pytest

from cluster.answers import Sentence
from serve.support.check_names import borrowed_names, invented_names
from tests.serve.answering import evidence

MALARIA = "Drugs against malaria cause haemolysis in people with G6PD deficiency."
RENAL = "Daprodustat raised haemoglobin in renal anaemia."


MTOR = "Temsirolimus inhibits mTOR."
SIROLIMUS = "The mammalian target of rapamycin (mTOR) binds sirolimus."
LONG = "mammalian target of rapamycin"
BLOOD = (MALARIA, RENAL, "Iron is given by mouth.")
MTORS = (MTOR, SIROLIMUS)
# Sentence that cites the first passage, passages, name, and whether the name is borrowed.
BORROWED = {
    "a name of an uncited passage": (
        "Drugs against malaria, such as daprodustat, cause haemolysis.", BLOOD, "daprodustat", True
    ),
    "a name of the cited passage": ("Drugs against malaria do.", BLOOD, "malaria", False),
    "a name of the question": ("Zelomab is no cause.", (MALARIA, "Zelomab."), "Zelomab", False),
    "a name of no passage": ("Rasburicase causes it.", BLOOD, "rasburicase", False),
    "a name of many passages": ("Renal haemolysis.", (MALARIA, *[RENAL] * 3), "renal", False),
    "a long form of a cited abbreviation": (f"Temsirolimus inhibits {LONG}.", MTORS, LONG, False),
    "another name beside a long form": (f"Sirolimus and {LONG}.", MTORS, "sirolimus", True),
    "a part of a hyphenated word": (
        "Prestin moves outer hair cells.",
        ("Prestin moves outer-hair cells.", "Hair is lost in alopecia."), "hair", False,
    ),
    "a part of a long form": ("Rapamycin inhibits mTOR.", MTORS, "Rapamycin", True),
    "an abbreviation of an uncited long form": (
        MTOR, ("Temsirolimus inhibits growth.", SIROLIMUS), "mTOR", True
    ),
}  # fmt: skip


def test_names_of_uncited_passages_are_borrowed(subtests: pytest.Subtests) -> None:
    for why, (text, passages, name, is_borrowed) in BORROWED.items():
        with subtests.test(why):
            said = Sentence(text, (1,), 0.8)
            found = borrowed_names(said, evidence(*passages), [name], "What about zelomab?")
            assert found == [name] * is_borrowed


def invented(text: str, *names: str, body: str = "What causes haemolysis?") -> list[str]:
    return invented_names(text, evidence(MALARIA, RENAL), names, body)


def test_names_of_no_passage_are_invented() -> None:
    assert invented("It is rasburicase that causes haemolysis.", "rasburicase") == ["rasburicase"]
    for text in (
        "Curevit causes haemolysis.",
        "Yes, Curevit causes haemolysis.",
        "Haemolysis is caused by Curevit.",
    ):
        assert invented(text) == ["Curevit"], text
    # A name of the question only.
    said = "Daprodustat and Zelomab cause haemolysis."
    assert invented(said, "daprodustat", body="Does zelomab cause haemolysis?") == ["Zelomab"]


def test_known_names_and_words_that_open_a_sentence_are_not_invented() -> None:
    said = "Daprodustat and Zelomab cause haemolysis."
    passages = evidence("Daprodustat and zelomab cause haemolysis.")
    assert invented_names(said, passages, ["daprodustat"], "Are they safe?") == []
    for text in (
        "Interestingly, haemolysis was seen.",
        "Therefore haemolysis was seen.",
        "No. However, haemolysis was seen.",
    ):
        assert invented(text) == [], text


def test_name_of_the_question_with_its_abbreviation_in_a_passage_is_known() -> None:
    body = "Does benralizumab help in Chronic Spontaneous Urticaria?"
    said = "It helps in Chronic Spontaneous Urticaria."
    assert invented_names(said, evidence("It helps in CSU."), [], body) == []
    body = "Is there a role for CADM1 in Myelodysplastic syndrome (MDS)?"
    said = "CADM1 plays a role in Myelodysplastic syndrome."
    passages = evidence("CADM1 is important in del(11q) MDS.")
    assert invented_names(said, passages, ["Myelodysplastic syndrome"], body) == []
    assert invented_names(said, evidence("CADM1 is important."), [], body) == ["Myelodysplastic"]
