"""Which kind of thing a question asks for, and which names cannot be of it."""

from __future__ import annotations

import pytest

from serve.answer.names.name_kinds import (
    asked_kind,
    asked_nouns,
    asked_words,
    bears,
    fit_together,
    fits,
    stands_beside,
)
from serve.support.compare_wording import read_wording


def test_the_kind_is_told_by_the_noun_that_is_asked_for(subtests: pytest.Subtests) -> None:
    for body, kind in [
        ("Which gene is mutated in Alport syndrome?", "gene"),
        ("What is the safest oral drug?", "drug"),
        ("List diseases that ticks transmit.", "disease"),
        ("Which animal is the reservoir of zelania?", "other"),
        ("List side effects of amiodarone.", "effect"),
        ("What are 3 symptoms of Waardenburg syndrome?", "effect"),
        ("Which company makes a drug for gout?", "other"),
        ("What is the mechanism of action of curevit?", "action"),
        ("What is the target of curevit?", "gene"),
        ("Which molecules are inhibited by curevit?", "gene"),
        ("What is curevit an inhibitor of?", "gene"),
        ("What does curevit treat?", "disease"),
        ("What is curevit approved for?", "disease"),
        ("What is the brand name of curevit?", "drug"),
        ("List two DMARDs that inhibit JAK.", "drug"),
        ("What does DMARD stand for?", None),
        ("List features of the zelania syndrome.", "effect"),
        ("Which antibodies are found in zelania?", None),
        ("Where is titin expressed?", None),
    ]:
        with subtests.test(body=body, kind=kind):
            assert asked_kind(body) == kind


def test_a_name_that_looks_like_another_kind_or_like_nothing_does_not_fit(
    subtests: pytest.Subtests,
) -> None:
    for kind, name in [
        ("gene", "Alport syndrome"),
        ("gene", "bevacizumab"),
        ("disease", "COL4A5"),
        ("disease", "imatinib"),
        *(
            ("disease", drug)
            for drug in (
                *("calicheamicin", "cefazolin", "etanercept", "midostaurin", "prednisolone"),
                *("rivaroxaban", "salmeterol", "tadalafil", "venetoclax", "vorinostat"),
            )
        ),
        ("drug", "glomerulonephritis"),
        ("drug", "patients"),
        ("drug", "migraine"),
        ("gene", "X chromosome"),
        ("drug", "PD-L1"),
        ("drug", "Death receptor 1"),
        ("effect", "bleomycin"),
        ("effect", "immunosuppressants"),
        ("effect", "antibiotics"),
        ("action", "clopidogrel"),
        (None, "the patients"),
    ]:
        with subtests.test(kind=kind, name=name):
            assert not fits(kind, name)


def test_a_name_whose_looks_do_not_tell_fits(subtests: pytest.Subtests) -> None:
    for kind, name in [
        ("gene", "COL4A5"),
        ("gene", "collagen"),
        ("gene", "tumor necrosis factor"),
        ("gene", "tumour suppressor p53"),
        ("gene", "formin"),
        ("gene", "ghrelin"),
        ("gene", "preproghrelin"),
        ("effect", "raised cholesterol"),
        ("disease", "loss of homeostasis"),
        ("drug", "PCSK9 inhibitors"),
        ("disease", "gout"),
        ("effect", "thyroiditis"),
        ("effect", "hearing loss"),
        ("other", "head"),
        (None, "COL4A5"),
    ]:
        with subtests.test(kind=kind, name=name):
            assert fits(kind, name)


def test_what_is_listed_beside_the_thing_asked_about_is_told(subtests: pytest.Subtests) -> None:
    for text, name, beside in [
        ("Lungs are harmed by nitrofurantoin, amiodarone, and bleomycin.", "nitrofurantoin", True),
        ("Lungs are harmed by nitrofurantoin, amiodarone, and bleomycin.", "bleomycin", True),
        ("Lung toxicity comes with gold, amiodarone, and gases.", "Lung toxicity", False),
        ("On amiodarone, hypothyroidism and lung fibrosis were seen.", "hypothyroidism", False),
        ("Amiodarone causes photosensitivity, neuropathy and tremor.", "tremor", False),
        ("Tremor was seen.", "Tremor", False),
        ("Dose and tremor on road, amiodarone, and gold.", "tremor on", False),
    ]:
        with subtests.test(text=text, name=name):
            asked = asked_words("What are the side effects of amiodarone?")

            begin = text.index(name)

            assert stands_beside(text, begin, begin + len(name), asked) is beside


def test_a_thing_is_of_the_kind_that_one_of_its_names_tells() -> None:
    assert fit_together("gene", ["CRS", "IL6"])
    assert not fit_together("gene", ["CRS", "cytokine release syndrome"])
    assert fit_together("gene", ["COL4A5", "Alport syndrome"])
    assert fit_together(None, ["CRS", "cytokine release syndrome"])
    assert not fit_together("gene", ["patients"])


@pytest.mark.parametrize("name", ["P2Y12 inhibitor", "blockade of CD38", "binds C1s"])
def test_an_action_is_told_by_what_it_does(name: str) -> None:
    assert fits("action", name)


def test_the_nouns_that_are_asked_for_stand_behind_the_question_word(
    subtests: pytest.Subtests,
) -> None:
    for body, nouns in [
        ("What repeat is expanded in zelania?", "repeat"),
        ("Which are the variants in Bulgaria?", "variant"),
        ("Which is the usual vector of zelania?", "usual vector"),
        ("Does zelania have variants?", ""),
        ("What is zelania due to?", "zelania due"),
    ]:
        with subtests.test(body=body, nouns=nouns):
            assert asked_nouns(body) == read_wording(nouns).words.keys()


def test_a_name_bears_the_noun_in_itself_or_behind_it() -> None:
    text = "The GAA repeat of C57 mice grew in Norway."
    for name, noun, borne in [
        ("GAA repeat", "repeats", True),
        ("C57", "mouse", False),
        ("C57", "mice", True),
        ("Norway", "mice", False),
        ("Norway", "", False),
    ]:
        begin = text.index(name)
        nouns = read_wording(noun).words.keys()
        assert bears(nouns, text, begin, begin + len(name)) is borne
