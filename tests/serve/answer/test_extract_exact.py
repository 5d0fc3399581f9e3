from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from cluster.answers import ExactAnswer, Question, QuestionType
from cluster.models.readings import Reading, ScoredSpan
from cluster.records import Entity
from serve.answer.decide_yesno import weigh
from serve.answer.extract_exact import extract_exact, rank_answers
from serve.answer.names.group_names import Recogniser, apart, group_names
from serve.answer.names.rank_names import rank_names
from serve.answer.read_evidence import ReadPassage
from tests.serve.answering import evidence

NAMES = {
    "epidermal growth factor receptor": "D1",
    "EGFR": "D1a",
    "BRCA1": "D2",
    "TP53": "D3",
    "cancer": "D4",
}


def recognise(text: str) -> list[Entity]:
    return [
        Entity(name, m.start(), m.end(), concept, "gene")
        for name, concept in NAMES.items()
        for m in re.finditer(re.escape(name), text)
    ]


def read(*texts: str, names: str = "|".join(NAMES), score: float = 0.8) -> list[ReadPassage]:
    """Passages of which a reader says that each of `names` answers with `score`."""
    found = []
    for rank, item in enumerate(evidence(*texts)):
        text = item.passage.text
        spans, whole = _spans(text, names, score), (ScoredSpan(0, len(text), 0.5),)
        found.append(ReadPassage(item, rank, Reading(0.9, 0.0, 0.0, 1.0, spans, whole)))
    return found


def _spans(text: str, names: str, score: float) -> tuple[ScoredSpan, ...]:
    found = re.finditer(names, text, re.IGNORECASE)
    return tuple(ScoredSpan(match.start(), match.end(), score) for match in found)


def asked(kind: QuestionType, body: str, guess: bool = False) -> Question:
    return Question("q", body, kind, guess=guess)


def sides(*said: tuple[float, float]) -> list[ReadPassage]:
    """Relevant passages that say yes and no with these probabilities."""
    items = evidence(*["x"] * len(said))
    return [
        ReadPassage(item, rank, Reading(1.0, yes, no, 1 - yes - no))
        for rank, (item, (yes, no)) in enumerate(zip(items, said, strict=True))
    ]


def exact_of(
    question: Question, passages: Sequence[ReadPassage], recognise: Recogniser
) -> ExactAnswer:
    return extract_exact(question, passages, rank_answers(question, passages, recognise))


def ranked(passages: Sequence[ReadPassage], body: str = "Which gene?") -> list[list[str]]:
    return [list(name.names) for name in rank_names(body, passages, recognise)]


def test_yes_or_no_is_what_the_evidence_says_more_of(subtests: pytest.Subtests) -> None:
    for said, answer in [
        ([(0.9, 0.0)], "yes"),
        ([(0.0, 0.9)], "no"),
        ([(0.9, 0.0), (0.0, 0.9), (0.0, 0.8)], "no"),
        ([(0.1, 0.0), (0.0, 0.9)], "no"),
        ([], "no"),
    ]:
        with subtests.test(said=said, answer=answer):
            assert exact_of(asked("yesno", "Is it so?"), sides(*said), recognise) == answer


def test_sources_that_disagree_are_told_from_one_stray_passage() -> None:
    assert weigh(sides((0.9, 0.0), (0.0, 0.9))).divided
    assert not weigh(sides((0.9, 0.0), (0.9, 0.0), (0.9, 0.0), (0.0, 0.6))).divided
    assert not weigh(sides((0.9, 0.0), (0.0, 0.3))).divided


def test_irrelevant_passages_say_nothing() -> None:
    [passage] = sides((0.9, 0.0))
    irrelevant = ReadPassage(passage.item, 0, Reading(0.01, 0.9, 0.0, 0.1))
    assert weigh([irrelevant]).said < 0.05


def test_name_of_more_passages_comes_first() -> None:
    assert ranked(read("TP53 is here.", "BRCA1 is here.", "BRCA1 is there.")) == [
        ["BRCA1"],
        ["TP53"],
    ]


def test_name_of_the_better_passage_comes_first() -> None:
    assert ranked(read("TP53 is here.", "BRCA1 is here.")) == [["TP53"], ["BRCA1"]]


def test_name_that_the_reader_is_surer_of_comes_first() -> None:
    sure = read("Cystic fibrosis is caused by BRCA1.", names="BRCA1", score=0.9)
    unsure = read("TP53 sits here.", names="TP53", score=0.3)
    assert ranked([*unsure, *sure])[0] == ["BRCA1"]


def test_name_in_the_sentence_that_answers_comes_first() -> None:
    text = "TP53 is here. It is caused by BRCA1."
    [item] = evidence(text)
    sentences = (ScoredSpan(0, 13, 0.1), ScoredSpan(13, len(text), 0.9))
    reading = Reading(0.9, 0.0, 0.0, 1.0, _spans(text, "TP53|BRCA1", 0.8), sentences)
    assert ranked([ReadPassage(item, 0, reading)]) == [["BRCA1"], ["TP53"]]


def test_name_in_the_question_is_no_answer() -> None:
    assert ranked(read("BRCA1 causes cancer."), "Which gene causes cancer?") == [["BRCA1"]]


def test_what_the_question_lets_choose_from_is_an_answer() -> None:
    found = read("It is BRCA1 that is lost, not TP53.", names="BRCA1")
    assert ranked(found, "Which gene is lost, TP53 or BRCA1?") == [["BRCA1"]]


def test_another_word_for_what_is_asked_about_is_no_answer() -> None:
    found = read("An IgG binds MOG4 here.", names="IgG|MOG4")
    assert ranked(found, "Which protein do the antibodies attack?") == [["MOG4"]]
    assert ranked(found, "What binds it?") == [["IgG"], ["MOG4"]]


def test_antibodies_are_named_by_what_they_are_against() -> None:
    found = read("Patients have MOG4 autoantibodies here.", names="MOG4 autoantibodies")
    assert ranked(found, "Which protein do the antibodies attack?") == [["MOG4"]]
    assert ranked(found, "What do patients have?") == [["MOG4 autoantibodies"]]


def test_short_form_joins_its_long_form() -> None:
    assert ranked(read("The epidermal growth factor receptor (EGFR) is mutated.")) == [
        ["epidermal growth factor receptor", "EGFR"]
    ]


def test_a_short_form_of_another_passage_joins_the_long_form_and_counts_with_it() -> None:
    found = read(
        "TP53 is here.",
        "The epidermal growth factor receptor (EGFR) is mutated.",
        "EGFR is mutated.",
    )
    assert ranked(found) == [["EGFR", "epidermal growth factor receptor"], ["TP53"]]


def test_a_thing_that_the_question_names_by_its_short_form_is_no_answer() -> None:
    found = read("The epidermal growth factor receptor (EGFR) binds BRCA1.")
    assert ranked(found, "What binds EGFR?") == [["BRCA1"]]


def test_another_name_of_what_is_asked_about_answers_a_question_for_names_alone() -> None:
    found = read("The epidermal growth factor receptor binds BRCA1.")
    same = {"EGFR": "D1", "epidermal growth factor receptor": "D1", "BRCA1": "D2"}

    def known(text: str) -> list[Entity]:
        return [
            Entity(name, text.index(name), text.index(name) + len(name), concept, "gene")
            for name, concept in same.items()
            if name in text
        ]

    def names(body: str) -> list[str]:
        return [name.names[0] for name in rank_names(body, found, known)]

    assert names("What binds EGFR?") == ["BRCA1"]
    assert "epidermal growth factor receptor" in names("What is another name of EGFR?")


def test_what_stands_in_brackets_is_no_synonym_unless_it_is_the_short_form() -> None:
    assert sorted(ranked(read("An epidermal growth factor receptor (BRCA1) is here."))) == [
        ["BRCA1"],
        ["epidermal growth factor receptor"],
    ]


def test_names_that_a_model_gives_are_grouped_by_what_the_evidence_defines() -> None:
    found = evidence("The epidermal growth factor receptor (EGFR) is here, TP53 too.")
    names = ["EGFR", "TP53", "epidermal growth factor receptor", "tp53"]
    assert group_names(names, found, recognise) == [
        ["EGFR", "epidermal growth factor receptor"],
        ["TP53", "tp53"],
    ]


def test_one_name_in_two_cases_is_listed_once() -> None:
    assert ranked(read("MYH7 is mutated and Myh7 too.", names="myh7")) == [["MYH7"]]


def test_article_and_unopened_bracket_are_no_part_of_a_name() -> None:
    assert ranked(read("It is the p53 (TP53) gene.", names=r"the p53 \(TP53")) == [["p53 (TP53)"]]
    assert ranked(read("It is the p53 (TP53 gene.", names=r"p53 \(TP53")) == [["p53"]]


def test_words_that_lead_to_a_name_or_on_from_it_are_no_part_of_it() -> None:
    assert ranked(read("It is caused by TP53 and", names="by TP53 and")) == [["TP53"]]
    found = read("It is the loss of BRCA1", names="loss of BRCA1")
    assert ranked(found, "What is the cause?") == [["loss of BRCA1"]]
    found = read("It is a late complication of BRCA1.", names="is a late complication")
    assert ranked(found, "What is it?") == [["late complication"]]
    found = read("Seen in multiple myeloma patients.", names="multiple myeloma patients")
    assert ranked(found, "Which disease is it?") == [["multiple myeloma"]]


def test_words_of_method_and_result_name_nothing() -> None:
    found = read("Using TP53 was examined.", names="using|TP53|examined")
    assert ranked(found, "What is it?") == [["TP53"]]


def test_a_part_of_a_known_name_is_the_whole_name_but_for_what_was_asked() -> None:
    text = "It is the epidermal growth factor receptor."
    assert ranked(read(text, names="growth factor")) == [["epidermal growth factor receptor"]]
    asked = "Which factor has this receptor?"
    assert ranked(read(text, names="growth factor"), asked) == [["growth factor"]]


def test_a_name_of_another_kind_than_was_asked_is_no_answer() -> None:
    found = read(
        "Alport syndrome comes of COL4A5 in patients.", names=r"Alport syndrome|COL4A5|patients"
    )
    assert ranked(found, "Which gene is at fault?") == [["COL4A5"]]
    assert ranked(found, "Which disease is it?") == [["Alport syndrome"]]
    assert ranked(found, "What is it?") == [["Alport syndrome"], ["COL4A5"]]


def test_overlong_name_is_left_out() -> None:
    assert ranked(read("x" * 101, names="x+")) == []


def test_nothing_plausible_gives_an_empty_list() -> None:
    found = read("Cats sleep most of the day.")
    assert exact_of(asked("factoid", "Which gene?"), found, recognise) == []


def test_factoid_gives_at_most_five() -> None:
    found = read("tic tac toe one two three four", names=r"\w+")
    exact = exact_of(asked("factoid", "Which word?", guess=True), found, no_one)
    assert isinstance(exact, list)
    assert len(exact) == 5


def test_unlikely_items_of_a_list_are_left_out() -> None:
    found = read(*["BRCA1 is here."] * 6, "TP53 is here.")
    assert exact_of(asked("list", "Which genes?"), found, recognise) == [["BRCA1"]]


@pytest.mark.parametrize(
    ("body", "exact"),
    [
        ("Which genes cause it?", [["BRCA1"]]),
        ("Which genes do not cause it?", [["BRCA1"], ["TP53"]]),
    ],
)
def test_what_a_sentence_denies_is_no_item_of_a_list(body: str, exact: ExactAnswer) -> None:
    found = read("BRCA1 causes it; TP53 does not.", names="BRCA1|TP53")
    assert exact_of(asked("list", body), found, recognise) == exact


def test_what_another_sentence_affirms_is_an_item_all_the_same() -> None:
    found = read("BRCA1 causes it; TP53 does not.", "TP53 causes it.", names="BRCA1|TP53")
    exact = exact_of(asked("list", "Which genes cause it?"), found, recognise)
    assert exact == [["BRCA1"], ["TP53"]]


def test_what_a_short_form_stands_for_is_the_first_answer_where_that_is_asked() -> None:
    says = "Epidermal growth factor receptor (EGFR) is mutated in cancer, as BRCA1 is."
    for body in ("What is EGFR?", "What does EGFR stand for?"):
        exact = exact_of(asked("factoid", body), read(says), recognise)
        assert isinstance(exact, list)
        assert exact == [["Epidermal growth factor receptor"]]


def test_people_are_shown_answers_close_to_the_best_alone() -> None:
    found = [*read("BRCA1 is it.", names="BRCA1"), *read("TP53 is too.", names="TP53", score=0.3)]
    assert exact_of(asked("factoid", "Which gene?"), found, recognise) == [["BRCA1"]]
    guesses = exact_of(asked("factoid", "Which gene?", guess=True), found, recognise)
    assert guesses == [["BRCA1"], ["TP53"]]


def test_a_quantity_is_answered_with_its_unit(subtests: pytest.Subtests) -> None:
    for body, says, answer in [
        ("What is the usual dose of it?", "In 1980 adults took 0.5 mg of it for 3 days.", "0.5 mg"),
        ("When was it approved?", "It was approved on 26 March 2021 for 40 mg.", "26 March 2021"),
        ("What percentage of cases is familial?", "Of 900, 5% to 10% are familial.", "5% to 10%"),
        ("What is the prevalence of it?", "It occurs in 1 in 2,500 births.", "1 in 2,500"),
        ("What is the mean age at onset?", "At onset 30 patients were 40 years old.", "40 years"),
        ("How many chromosomes has a dog?", "A dog has 78 chromosomes.", "78"),
    ]:
        with subtests.test(body=body, says=says):
            found = read(says, names="BRCA1")
            assert exact_of(asked("factoid", body), found, recognise) == [[answer]]


def test_a_quantity_that_no_passage_has_is_not_answered_with_a_name() -> None:
    found = read("BRCA1 is given by mouth.")
    assert exact_of(asked("factoid", "What dose is given?"), found, recognise) == []


def test_of_a_variant_the_gene_is_named_where_a_gene_is_asked_for() -> None:
    found = read("It is rs4149056 of SLCO1B1.", names="rs4149056 of SLCO1B1")
    assert ranked(found, "Which gene?") == [["SLCO1B1"]]
    assert ranked(found, "Which variant?") == [["rs4149056 of SLCO1B1"]]


def test_a_group_has_the_other_form_that_the_evidence_defines() -> None:
    items = evidence("Phosphodiesterase 4B (PDE4B) is blocked, as is TP53.")
    grouped = group_names(["PDE4B", "TP53"], items, no_one)
    assert grouped == [["PDE4B", "Phosphodiesterase 4B"], ["TP53"]]


def test_guesses_are_names_one_by_one() -> None:
    groups = [["PDE4B", "phosphodiesterase 4B"], ["TP53"]]
    guesses = apart(groups, "What does roflumilast block?")
    assert guesses == [["PDE4B"], ["phosphodiesterase 4B"], ["TP53"]]


@pytest.mark.parametrize(
    ("body", "name", "inner"),
    [
        ("What does the drug inhibit?", "PDE4B inhibitor", "PDE4B"),
        ("On which chromosome is it?", "chromosome 20p12", "20p12"),
        ("Which pathway is blocked?", "PI3K/AKT pathway", "PI3K/AKT"),
    ],
)
def test_a_guess_without_the_questions_words_follows_it(body: str, name: str, inner: str) -> None:
    assert apart([[name]], body) == [[name], [inner]]


def test_a_guess_that_is_the_questions_words_alone_is_made_once() -> None:
    assert apart([["kinase inhibitor"]], "Which kinase inhibitor?") == [["kinase inhibitor"]]


def test_summary_has_no_exact_answer() -> None:
    assert exact_of(asked("summary", "What is BRCA1?"), read("A gene."), recognise) is None


def no_one(text: str) -> list[Entity]:
    return []


def test_a_count_is_of_what_is_counted() -> None:
    body = "How many doses of curevit are needed?"
    found = read("Curevit was approved in 2017 for 50 sites. Curevit takes two oral doses.")
    assert exact_of(asked("factoid", body), found, recognise) == [["two"]]
    other = read("Curevit was approved in 2017.")
    assert exact_of(asked("factoid", body), other, recognise) == []
    assert exact_of(asked("factoid", body, guess=True), other, recognise) == [["2017"]]


def test_a_figure_of_those_without_what_was_asked_about_is_no_answer() -> None:
    found = read(
        "Patients not treated with curevit acid lived 6 months.",
        "Patients treated with curevit acid lived 13 months.",
    )
    body = "What is the median survival of patients treated with curevit acid?"
    assert exact_of(asked("factoid", body), found, recognise) == [["13 months"]]


def test_a_figure_of_a_passage_about_something_else_yields() -> None:
    found = read("Survival was 13.6 months.", "With curevit acid survival was 9.5 months.")
    body = "What is the median survival with curevit acid?"
    assert exact_of(asked("factoid", body), found, recognise) == [["9.5 months"]]


def test_the_short_form_of_what_the_question_spells_out_is_no_answer() -> None:
    text = "Hereditary curevit syndrome (HCS) comes of TP53."
    found = read(text, names="HCS|TP53")
    assert ranked(found, "Which gene is lost in hereditary curevit syndrome?") == [["TP53"]]


def test_a_gene_is_written_like_one() -> None:
    found = read("It is a disorder of copper metabolism by TP53.", names="copper|TP53")
    assert ranked(found, "Which gene is at fault?") == [["TP53"]]
    assert len(ranked(found, "Which thing is at fault?")) == 2
    found = read("DNA repair rose 700-fold by BRCA1.", names="DNA repair|700-fold|BRCA1")
    assert ranked(found, "Which gene is at fault?") == [["BRCA1"]]


def test_what_is_listed_side_by_side_is_not_one_thing() -> None:
    def linked(text: str) -> list[Entity]:
        found = re.finditer("Rotaone|Rotatwo", text)
        return [Entity(m[0], m.start(), m.end(), "D9", "vaccine") for m in found]

    listed = read("Rotaone (R1) and Rotatwo protect.", names="Rotaone|Rotatwo")
    body = "Which vaccines protect against it?"
    names = [list(name.names) for name in rank_names(body, listed, linked)]
    assert sorted(names) == [["Rotaone"], ["Rotatwo"]]
    apposed = read("Rotaone, Rotatwo protects.", names="Rotaone|Rotatwo")
    assert len(rank_names(body, apposed, linked)) == 1


def test_a_name_that_hardly_fits_is_shown_to_no_person() -> None:
    found = read("VTE was seen with curevit.", names="VTE", score=0.3)
    body = "Which medicines must never be combined with curevit in old age?"
    assert exact_of(asked("list", body), found, no_one) == []
    assert exact_of(asked("list", body, guess=True), found, no_one) == [["VTE"]]
