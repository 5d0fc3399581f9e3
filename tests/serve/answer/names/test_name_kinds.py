"""Which kind of thing a question asks for, and which names cannot be of it."""

from __future__ import annotations

import pytest

from serve.answer.names.name_kinds import Kind, asked_kind, asked_words, fits, stands_beside


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("Which gene is mutated in Alport syndrome?", "gene"),
        ("What is the safest oral drug?", "drug"),
        ("List diseases that ticks transmit.", "disease"),
        ("List side effects of amiodarone.", "effect"),
        ("What are 3 symptoms of Waardenburg syndrome?", "effect"),
        ("Which company makes a drug for gout?", "other"),
        ("Where is titin expressed?", None),
    ],
)
def test_the_kind_is_told_by_the_noun_that_is_asked_for(body: str, kind: Kind | None) -> None:
    assert asked_kind(body) == kind


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("gene", "Alport syndrome"),
        ("gene", "bevacizumab"),
        ("disease", "COL4A5"),
        ("disease", "imatinib"),
        ("drug", "glomerulonephritis"),
        ("drug", "patients"),
        ("effect", "bleomycin"),
        (None, "the patients"),
    ],
)
def test_a_name_that_looks_like_another_kind_or_like_nothing_does_not_fit(
    kind: Kind | None, name: str
) -> None:
    assert not fits(kind, name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("gene", "COL4A5"),
        ("gene", "collagen"),
        ("drug", "PCSK9 inhibitors"),
        ("disease", "gout"),
        ("effect", "thyroiditis"),
        ("effect", "hearing loss"),
        ("other", "head"),
        (None, "COL4A5"),
    ],
)
def test_a_name_whose_looks_do_not_tell_fits(kind: Kind | None, name: str) -> None:
    assert fits(kind, name)


@pytest.mark.parametrize(
    ("text", "name", "beside"),
    [
        ("Lungs are harmed by nitrofurantoin, amiodarone, and bleomycin.", "nitrofurantoin", True),
        ("Lungs are harmed by nitrofurantoin, amiodarone, and bleomycin.", "bleomycin", True),
        ("Lung toxicity comes with gold, amiodarone, and gases.", "Lung toxicity", False),
        ("On amiodarone, hypothyroidism and lung fibrosis were seen.", "hypothyroidism", False),
        ("Amiodarone causes photosensitivity, neuropathy and tremor.", "tremor", False),
        ("Tremor was seen.", "Tremor", False),
        ("Dose and tremor on road, amiodarone, and gold.", "tremor on", False),
    ],
)
def test_what_is_listed_beside_the_thing_asked_about_is_told(
    text: str, name: str, beside: bool
) -> None:
    asked = asked_words("What are the side effects of amiodarone?")

    begin = text.index(name)

    assert stands_beside(text, begin, begin + len(name), asked) is beside
