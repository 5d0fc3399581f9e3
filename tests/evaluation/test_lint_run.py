from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from cluster.errors import InputError
from cluster.settings import load_settings
from evaluation.find_citations import CitationLookup
from evaluation.lint.check_bioasq import check_bioasq
from evaluation.lint.check_biogen import check_biogen_a, check_biogen_b
from evaluation.lint.lint_run import read_asked, read_run_file, write_run_file
from evaluation.lint.note_problems import Asked, Checked, read_pmid
from tests.small_index import citation, make_index

URL = "http://www.ncbi.nlm.nih.gov/pubmed/"
ABSTRACT = "Insulin lowers glucose. Iron is stored in ferritin. Iron is stored."
Row = dict[str, Any]


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> CitationLookup:
    index = tmp_path_factory.mktemp("lint") / "index"
    retracted = citation(9, "Withdrawn.", publication_types=("Retracted Publication",))
    make_index(
        index, [citation(7, ABSTRACT, "Of iron."), citation(12, "ATATAT."), retracted], shards=1
    )
    return CitationLookup(load_settings(None, [f"index.path={index}"]))


def question(**fields: Any) -> Row:
    return {"id": "q", "type": "summary", **fields}


def snippet(text: str = "Insulin lowers", begin: Any = 0, end: Any = 14, **fields: Any) -> Row:
    return {
        "document": f"{URL}7",
        "beginSection": "abstract",
        "endSection": "abstract",
        "offsetInBeginSection": begin,
        "offsetInEndSection": end,
        "text": text,
        **fields,
    }


def messages(checked: Checked, *, mendable: bool | None = None) -> list[str]:
    return [p.message for p in checked.problems if mendable is None or p.mendable == mendable]


def exact(kind: str, value: Any) -> tuple[Any, Checked]:
    checked = check_bioasq([question(type=kind, exact_answer=value)])
    return checked.rows[0].get("exact_answer"), checked


def ideal(value: Any) -> tuple[Any, Checked]:
    checked = check_bioasq([question(ideal_answer=value)])
    return checked.rows[0]["ideal_answer"], checked


# BioASQ: documents and snippets


def test_a_run_at_every_limit_is_clean() -> None:
    rows = [
        question(
            type="list",
            documents=[f"{URL}{n}" for n in range(1, 11)],
            snippets=[snippet(begin=n, end=n + 14) for n in range(10)],
            exact_answer=[[f"{n:0100d}"] for n in range(100)],
            ideal_answer=" ".join(["word"] * 200),
        )
    ]
    before = copy.deepcopy(rows)
    checked = check_bioasq(rows, {"q": Asked("list")})
    assert checked.problems == ()
    assert checked.rows == rows == before


def test_an_eleventh_document_or_snippet_is_cut_off() -> None:
    documents = [f"{URL}{n}" for n in range(7, 18)]
    snippets = [snippet(begin=n, end=n + 14) for n in range(11)]
    checked = check_bioasq([question(documents=documents, snippets=snippets)])
    assert messages(checked) == ["11 items, at most 10"] * 2
    assert checked.rows[0]["documents"] == documents[:10]
    assert checked.rows[0]["snippets"] == snippets[:10]
    assert checked.done[0] == (
        "question 0 (id q), documents: 11 items, at most 10: keeps the first 10"
    )


def test_repeats_make_room_before_the_cut() -> None:
    documents = [f"{URL}1", f"{URL}1", *(f"{URL}{n}" for n in range(2, 11))]
    checked = check_bioasq([question(documents=documents)])
    assert messages(checked) == ["comes twice"]
    assert len(checked.rows[0]["documents"]) == 10


@pytest.mark.parametrize(
    "written",
    [
        "https://pubmed.ncbi.nlm.nih.gov/7/",
        "https://www.ncbi.nlm.nih.gov/pubmed/7",
        "ncbi.nlm.nih.gov/pubmed/7",
        "PMID: 7",
        " 7 ",
        7,
    ],
)
def test_other_spellings_of_an_address_are_made_the_gold_files_one(written: Any) -> None:
    checked = check_bioasq([question(documents=[written])])
    assert checked.rows[0]["documents"] == [f"{URL}7"]
    assert [p.mend for p in checked.problems] == [f"writes {URL}7"]


@pytest.mark.parametrize(
    "other", ["https://www.ncbi.nlm.nih.gov/pmc/articles/PMC7/", "x", None, True, "0", "123456789"]
)
def test_what_is_not_of_pubmed_is_named_and_kept(other: Any) -> None:
    checked = check_bioasq([question(documents=[other])])
    assert "is no article of PubMed" in messages(checked, mendable=False)[0]
    assert checked.rows[0]["documents"] == [other]
    assert read_pmid(other) is None


def test_a_snippet_is_of_a_returned_document() -> None:
    checked = check_bioasq([question(documents=[f"{URL}8"], snippets=[snippet()])])
    assert messages(checked, mendable=False) == [f"'{URL}7' is not among the question's documents"]
    assert check_bioasq([question(snippets=[snippet()])]).problems == ()


def test_an_old_section_name_is_made_the_new_one() -> None:
    old = snippet(beginSection="sections.0", endSection="Abstract")
    checked = check_bioasq([question(snippets=[old])])
    assert checked.rows[0]["snippets"] == [snippet()]
    assert messages(checked, mendable=True) == ["sections 'sections.0' and 'Abstract'"]


@pytest.mark.parametrize("sections", [("title", "abstract"), ("body", "body"), (None, 3)])
def test_a_snippet_is_in_one_section(sections: tuple[Any, Any]) -> None:
    odd = snippet(beginSection=sections[0], endSection=sections[1])
    checked = check_bioasq([question(snippets=[odd])])
    assert "both title or both abstract" in messages(checked, mendable=False)[0]


@pytest.mark.parametrize(
    ("odd", "message"),
    [
        (snippet(begin=14, end=14), "offsets 14 to 14: 0 or more, end after begin"),
        (snippet(begin=-1), "offsets -1 to 14: 0 or more, end after begin"),
        (snippet(begin="0"), "offsets '0' to 14: 0 or more, end after begin"),
        (snippet(end=True), "offsets 0 to True: 0 or more, end after begin"),
        # The old files' end is inside: 13 for 14 characters from 0.
        (snippet(end=13), "offsets 0 to 13 hold 13 characters, text 14"),
        (snippet(text=""), "text must be a string that is not empty, not ''"),
    ],
)
def test_without_an_index_offsets_must_fit_the_text(odd: Row, message: str) -> None:
    assert messages(check_bioasq([question(snippets=[odd])]), mendable=False) == [message]


# BioASQ against the index


@pytest.mark.parametrize(
    ("begin", "end"), [(0, 6), (24, 49), ("24", "50"), (None, None), (24, 5000), (-43, 50)]
)
def test_a_text_found_once_in_its_section_gets_its_offsets(
    lookup: CitationLookup, begin: Any, end: Any
) -> None:
    text = "Iron is stored in ferritin"
    assert ABSTRACT[24:50] == text
    checked = check_bioasq([question(snippets=[snippet(text, begin, end)])], lookup=lookup)
    assert checked.rows[0]["snippets"] == [snippet(text, 24, 50)]
    assert [p.mend for p in checked.problems] == ["moves the offsets to 24 and 50"]


def test_a_text_where_its_offsets_say_is_clean(lookup: CitationLookup) -> None:
    in_title = snippet("Of iron", 0, 7, beginSection="title", endSection="title")
    checked = check_bioasq([question(snippets=[snippet(), in_title])], lookup=lookup)
    assert checked.problems == ()


def test_a_text_may_overlap_with_itself(lookup: CitationLookup) -> None:
    """ATAT stands at 0 and at 2 of ATATAT."""
    second = snippet("ATAT", 2, 6, document=f"{URL}12")
    assert check_bioasq([question(snippets=[second])], lookup=lookup).problems == ()


def test_a_text_found_twice_moves_only_its_end(lookup: CitationLookup) -> None:
    """It stands at 24 and at 52, so that a begin of 52 is one of them and of 20 is neither."""
    text = "Iron is stored"
    wrong_end = check_bioasq([question(snippets=[snippet(text, 52, 65)])], lookup=lookup)
    assert wrong_end.rows[0]["snippets"] == [snippet(text, 52, 66)]
    astray = check_bioasq([question(snippets=[snippet(text, 20, 34)])], lookup=lookup)
    assert messages(astray, mendable=False) == [
        "text is not at 20 to 34 of PMID 7's abstract; it is 2 times elsewhere"
    ]


@pytest.mark.parametrize(
    ("text", "where"), [("Of iron", "nowhere in it, but in the title"), ("Zinc", "nowhere in it")]
)
def test_a_text_that_is_not_in_its_section_is_left(
    lookup: CitationLookup, text: str, where: str
) -> None:
    odd = snippet(text, 0, len(text))
    checked = check_bioasq([question(snippets=[odd])], lookup=lookup)
    assert messages(checked, mendable=False)[0].endswith(f"abstract; it is {where}")
    assert checked.rows[0]["snippets"] == [odd]


def test_a_snippet_without_a_text_is_named(lookup: CitationLookup) -> None:
    checked = check_bioasq([question(snippets=[snippet(text="")])], lookup=lookup)
    assert messages(checked) == ["text must be a string that is not empty, not ''"]


def test_pmids_that_are_not_live_are_dropped_only_if_told(lookup: CitationLookup) -> None:
    row = question(
        documents=[f"{URL}{n}" for n in (8, 7, 9)], snippets=[snippet(document=f"{URL}8")]
    )
    said = check_bioasq([row], lookup=lookup)
    assert messages(said, mendable=False) == [
        "PMID 8 is not there, or was deleted, in index version v000001",
        "PMID 9 is retracted in index version v000001",
        "PMID 8 is not there, or was deleted, in index version v000001",
    ]
    assert said.rows == [row]
    told = check_bioasq([row], lookup=lookup, drop_unknown=True)
    assert told.rows == [question(documents=[f"{URL}7"], snippets=[])]
    assert messages(told, mendable=False) == []


# BioASQ: answers


@pytest.mark.parametrize("written", [" Yes", "YES\n"])
def test_yes_is_written_plainly(written: str) -> None:
    value, checked = exact("yesno", written)
    assert value == "yes"
    assert [p.mend for p in checked.problems] == ["writes yes"]


@pytest.mark.parametrize("value", ["maybe", "Yes, it does", ["yes"], 1])
def test_another_word_than_yes_or_no_is_left(value: Any) -> None:
    found, checked = exact("yesno", value)
    assert found == value
    assert len(messages(checked, mendable=False)) == 1


@pytest.mark.parametrize(("kind", "limit"), [("factoid", 5), ("list", 100)])
def test_entities_are_cut_to_the_limit_of_the_type(kind: str, limit: int) -> None:
    value, checked = exact(kind, [[str(n)] for n in range(limit + 1)])
    assert value == [[str(n)] for n in range(limit)]
    assert messages(checked) == [f"{limit + 1} items, at most {limit}"]


def test_of_synonyms_the_first_stays() -> None:
    value, checked = exact("factoid", [["JC virus", "JCV"], ["", "HIV"]])
    assert value == [["JC virus"], ["HIV"]]
    assert messages(checked) == ["2 synonyms, of which only the first counts"] * 2


def test_an_entity_of_101_characters_is_dropped_from_a_list_only() -> None:
    assert exact("list", [["a" * 101], ["b" * 100]])[0] == [["b" * 100]]
    assert exact("factoid", [["a" * 101]])[0] == [["a" * 101]]


def test_empty_and_repeated_entities_are_dropped() -> None:
    value, checked = exact("list", [["Iron"], [" "], ["iron"], []])
    assert value == [["Iron"]]
    assert messages(checked) == ["is empty", "is empty", "'iron' comes twice"]


@pytest.mark.parametrize(("written", "wanted"), [("a", [["a"]]), (["a", ["b"]], [["a"], ["b"]])])
def test_a_flat_answer_becomes_a_list_of_lists(written: Any, wanted: Any) -> None:
    value, checked = exact("factoid", written)
    assert value == wanted
    assert messages(checked) == ["must be a list of lists"]


@pytest.mark.parametrize("value", [5, {"a": 1}, [[5]], [["a"], None]])
def test_an_exact_answer_of_no_known_form_is_left(value: Any) -> None:
    found, checked = exact("list", value)
    assert found == value
    assert "must be a list of lists of strings" in messages(checked, mendable=False)[0]


def test_a_summary_question_has_no_exact_answer() -> None:
    value, checked = exact("summary", "yes")
    assert value is None
    assert [p.mend for p in checked.problems] == ["removes it"]


def test_an_ideal_answer_ends_with_the_last_whole_sentence_of_200_words() -> None:
    sentence = "Word " * 49 + "word."
    value, checked = ideal(" ".join([sentence] * 5))
    assert value == " ".join([sentence] * 4)
    assert messages(checked, mendable=True) == ["250 words, at most 200"]


def test_a_first_sentence_of_201_words_is_left() -> None:
    text = "Word " * 200 + "word."
    value, checked = ideal(text)
    assert value == text
    assert messages(checked, mendable=False) == ["201 words, at most 200"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Iron [12345678]. Zinc (PMID 123; 456).", "Iron. Zinc."),
        ("Iron [12345678, 23456789].", "Iron."),
        ("Iron [PMID: 1, PMID: 2] binds [3].", "Iron binds."),
        ("Iron (PMIDs: 1, 2).", "Iron."),
        ("[12345678] Iron.", "Iron."),
        # What is left when the inner one goes is a citation itself.
        ("Iron [1(PMID 2)3].", "Iron."),
    ],
)
def test_citations_are_taken_out_of_texts(text: str, wanted: str) -> None:
    value, checked = ideal(text)
    assert value == wanted
    assert len(messages(checked, mendable=True)) == 1


@pytest.mark.parametrize(
    "text", ["[18F]FDG in [1989]", "95% CI [12, 45]", "benzo[3]annulene", "[2+2] (n = 12345)"]
)
def test_what_only_looks_like_a_citation_stays(text: str) -> None:
    value, checked = ideal(text)
    assert (value, checked.problems) == (text, ())


def test_of_several_ideal_answers_the_first_stays() -> None:
    value, checked = ideal(["One.", "Two."])
    assert value == ["One."]
    assert messages(checked) == ["2 texts, one is wanted"]
    assert ideal(["One."])[1].problems == ()
    assert messages(ideal(5)[1], mendable=False) == ["must be a string, not 5"]


@pytest.mark.parametrize("nothing", [None, "", " ", [], [""], [[]], [[""]]])
def test_an_answer_that_other_questions_have_is_missed(nothing: Any) -> None:
    full = question(id="a", type="yesno", exact_answer="no", ideal_answer="No.")
    empty = question(id="b", type="yesno", exact_answer=nothing, ideal_answer=nothing)
    checked = check_bioasq([full, empty])
    assert [p.place for p in checked.problems] == [
        "question 1 (id b), exact_answer",
        "question 1 (id b), ideal_answer",
    ]
    assert not any(p.mendable for p in checked.problems)
    assert check_bioasq([empty]).problems == ()


def test_a_summary_question_misses_only_the_ideal_answer() -> None:
    full = question(id="a", type="yesno", exact_answer="no", ideal_answer="No.")
    checked = check_bioasq([full, question(id="b")])
    assert [p.place for p in checked.problems] == ["question 1 (id b), ideal_answer"]


# BioASQ: questions


def test_ids_are_held_against_the_questions_file() -> None:
    asked = {str(n): Asked("summary") for n in range(8)}
    rows = [question(id="0"), question(id="0"), question(id="x")]
    checked = check_bioasq(rows, asked)
    assert [(p.place, p.message) for p in checked.problems] == [
        ("id 0", "has 2 answers; keep one"),
        ("id x", "is not in the questions file"),
        ("run", "7 of 8 questions have no answer: 1, 2, 3, 4, 5, ..."),
    ]


def test_the_type_of_the_questions_file_counts() -> None:
    checked = check_bioasq([question(type="list", exact_answer="YES")], {"q": Asked("yesno")})
    assert messages(checked) == [
        "is list, the questions file says yesno",
        "must be yes or no, not 'YES'",
    ]
    untyped = check_bioasq([{"id": "q", "exact_answer": "yes"}], {"q": Asked("yesno")})
    assert untyped.problems == ()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (5, "must be an object, not 5"),
        ({"type": "list"}, "id must be a string that is not empty, not None"),
        ({"id": "q"}, "is missing, and no questions file tells it"),
        (
            question(type="essay", exact_answer=[5]),
            "'essay' is none of yesno, factoid, list, summary",
        ),
        (question(type=["list"]), "['list'] is none of yesno, factoid, list, summary"),
        (question(documents="d"), "must be a list, not 'd'"),
        (question(snippets={}), "must be a list, not {}"),
        (question(snippets=[5]), "must be an object, not 5"),
    ],
)
def test_a_wrong_form_is_named_and_left(row: Any, message: str) -> None:
    checked = check_bioasq([row])
    assert messages(checked) == [message]
    assert not checked.problems[0].mendable
    assert checked.rows == [row]


# Synergy


def test_synergy_wants_answers_for_ready_questions_and_for_no_others() -> None:
    answers = {"exact_answer": "yes", "ideal_answer": "Yes."}
    rows = [
        question(id="ready", type="yesno"),
        question(id="early", type="yesno", **answers),
        question(id="unsaid", type="yesno", **answers),
    ]
    asked = {
        "ready": Asked("yesno", answer_ready=True),
        "early": Asked("yesno", answer_ready=False),
        "unsaid": Asked("yesno"),
    }
    checked = check_bioasq(rows, asked, synergy=True)
    assert [(p.place, p.mendable) for p in checked.problems] == [
        ("question 0 (id ready), exact_answer", False),
        ("question 0 (id ready), ideal_answer", False),
        ("question 1 (id early), exact_answer", True),
        ("question 1 (id early), ideal_answer", True),
    ]
    assert checked.rows[1:] == [question(id="early", type="yesno"), rows[2]]


def test_the_runs_own_flag_counts_where_the_questions_file_has_none() -> None:
    row = question(answer_ready=False, ideal_answer="Early.")
    assert check_bioasq([row], synergy=True).rows == [question(answer_ready=False)]
    assert check_bioasq([row]).problems == ()


# BioGen

METADATA = {"team_id": "t", "run_id": "r", "qa_id": "116", "topic_id": 181}


def grounded(**fields: Any) -> Row:
    sentence = {
        "text": "Iron is stored.",
        "existing_supported_citations": ["1"],
        "supported_citations": [2, 3, 4],
        "contradicted_citations": [5, 6, 8],
    }
    return {"metadata": METADATA, "answer": [{**sentence, **fields}]}


def cited(*sentences: Row) -> Row:
    return {"metadata": METADATA, "responses": list(sentences)}


def sentence(text: str = "Iron is stored.", *citations: Any) -> Row:
    return {"text": text, "citations": list(citations or ("7",))}


def test_a_biogen_run_at_its_limits_is_clean() -> None:
    words = "Word " * 124 + "word."
    assert check_biogen_a([grounded()], {"116": Asked()}).problems == ()
    assert check_biogen_a([grounded(existing_supported_citations=None)]).problems == ()
    full = cited(sentence(words, 1, 2, 3), sentence(words))
    assert check_biogen_b([full], {"181": Asked()}).problems == ()


def test_task_a_keeps_three_new_pmids_of_each_kind() -> None:
    row = grounded(supported_citations=[1, "2", 2, 3, 4, 5], contradicted_citations=[9, 6, 7, 8])
    checked = check_biogen_a([row])
    new = checked.rows[0]["answer"][0]
    assert (new["supported_citations"], new["contradicted_citations"]) == (["2", 3, 4], [9, 6, 7])
    assert messages(checked) == [
        "2 comes twice",
        "1 of them in existing_supported_citations",
        "4 items, at most 3",
        "4 items, at most 3",
    ]
    assert messages(checked, mendable=False) == []


def test_task_a_a_pmid_cannot_both_support_and_contradict() -> None:
    checked = check_biogen_a([grounded(contradicted_citations=[1, 2])])
    assert messages(checked, mendable=False) == [
        "PMID 1 supports the sentence as well",
        "PMID 2 supports the sentence as well",
    ]


def test_task_a_a_missing_list_is_empty_and_another_name_the_fields_own() -> None:
    item = grounded()["answer"][0]
    del item["supported_citations"]
    item["contradicting_citations"] = item.pop("contradicted_citations")
    checked = check_biogen_a([{"metadata": METADATA, "answer": [item]}])
    new = checked.rows[0]["answer"][0]
    assert (new["supported_citations"], new["contradicted_citations"]) == ([], [5, 6, 8])
    assert "contradicting_citations" not in new
    assert messages(checked, mendable=False) == []


def test_task_a_leaves_the_texts_that_it_was_given() -> None:
    assert check_biogen_a([grounded(text="Iron [1]. Zinc [12345].")]).problems == ()


def test_pmids_are_a_number_or_its_digits() -> None:
    checked = check_biogen_b([cited(sentence("Iron.", "PMID: 7", f"{URL}8", "x"))])
    assert checked.rows[0]["responses"][0]["citations"] == ["7", "8", "x"]
    assert messages(checked, mendable=False) == ["'x' is no PMID"]
    assert [p.mend for p in checked.problems if p.mendable] == ["writes 7", "writes 8"]


def test_citations_in_an_object_become_a_list() -> None:
    checked = check_biogen_b([cited({"text": "Iron.", "citations": {"7": "why", "8": "how"}})])
    assert checked.rows[0]["responses"][0]["citations"] == ["7", "8"]
    assert messages(checked, mendable=False) == []


def test_task_b_a_fourth_citation_is_dropped_and_none_is_named() -> None:
    checked = check_biogen_b(
        [cited(sentence("Iron.", 1, 2, 3, 4), {"text": "Zn.", "citations": []})]
    )
    assert checked.rows[0]["responses"][0]["citations"] == [1, 2, 3]
    assert messages(checked) == ["4 items, at most 3", "none; 1 to 3 are wanted"]


def test_task_b_has_one_sentence_to_an_item() -> None:
    checked = check_biogen_b([cited(sentence("Iron is stored. Zinc is not."))])
    assert messages(checked, mendable=False) == ["2 sentences; one to an item is wanted"]


def test_task_b_citations_are_taken_out_of_texts() -> None:
    checked = check_biogen_b([cited(sentence("Iron is stored [12345678]."))])
    assert checked.rows[0]["responses"] == [sentence("Iron is stored.")]


def test_task_b_sentences_beyond_250_words_are_dropped() -> None:
    words = "Word " * 124 + "word."
    checked = check_biogen_b([cited(sentence(words), sentence(words), sentence(words))])
    assert len(checked.rows[0]["responses"]) == 2
    assert messages(checked, mendable=True) == ["375 words, at most 250"]
    one = check_biogen_b([cited(sentence("Word " * 250 + "word."))])
    assert messages(one, mendable=False) == ["251 words, at most 250"]


def test_biogen_pmids_are_held_against_the_index(lookup: CitationLookup) -> None:
    row = cited(sentence("Iron.", 7, 8, 9))
    assert len(messages(check_biogen_b([row], lookup=lookup), mendable=False)) == 2
    told = check_biogen_b([row], lookup=lookup, drop_unknown=True)
    assert told.rows[0]["responses"][0]["citations"] == [7]


@pytest.mark.parametrize(
    ("row", "places"),
    [
        (5, ["record 1"]),
        ({"responses": [sentence()]}, ["record 1, metadata"]),
        ({"metadata": {}, "responses": [sentence()]}, ["record 1, metadata"] * 3),
        ({"metadata": METADATA}, ["record 1 (topic_id 181), responses"]),
        (cited(), ["record 1 (topic_id 181), responses"]),
        ({"metadata": METADATA, "responses": "x"}, ["record 1 (topic_id 181), responses"]),
        (cited(5), ["record 1 (topic_id 181), responses 1"]),  # type: ignore[arg-type]
        (cited(sentence(" ")), ["record 1 (topic_id 181), responses 1, text"]),
        (
            cited({"text": "Iron.", "citations": "7"}),
            ["record 1 (topic_id 181), responses 1, citations"] * 2,
        ),
    ],
)
def test_a_wrong_biogen_form_is_named_and_left(row: Any, places: list[str]) -> None:
    checked = check_biogen_b([row])
    assert [p.place for p in checked.problems] == places
    assert not any(p.mendable for p in checked.problems)
    assert checked.rows == [row]


def test_biogen_ids_are_held_against_the_topics() -> None:
    checked = check_biogen_b([cited(sentence()), cited(sentence())], {"182": Asked()})
    assert [p.place for p in checked.problems] == ["id 181", "id 181", "run"]


# Mending is complete and final

WORDS = ["Iron.", "iron", "[12345]", "(PMID 7)", "Is it stored?", "[1[2]3]", "a " * 120, ""]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
ODD = st.one_of(st.none(), st.integers(-3, 20), TEXTS, st.booleans(), st.just([]), st.just({}))
PMIDS = st.sampled_from(
    [7, "7", "8", "PMID: 9", f"{URL}7", f"{URL}8", "https://pubmed.ncbi.nlm.nih.gov/7", "x", None]
)
OFFSETS = st.one_of(st.integers(-2, 80), st.none())
SNIPPETS = st.builds(
    snippet,
    st.sampled_from(["Iron is stored", "Iron is stored in ferritin", "Of iron", "x", ""]),
    OFFSETS,
    OFFSETS,
    document=PMIDS,
    beginSection=st.sampled_from(["abstract", "title", "sections.0", "x"]),
)
NAMES = st.sampled_from(["a", "A", "b", "c", "d", "e", "f", "", "x" * 101, 5])
EXACT = st.one_of(
    st.sampled_from(["yes", " No", "maybe"]),
    st.lists(st.one_of(NAMES, st.lists(NAMES, max_size=3)), max_size=9),
)
QUESTIONS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["q", "r", ""]),
        "type": st.sampled_from(["yesno", "factoid", "list", "summary", "essay"]),
        "documents": st.one_of(ODD, st.lists(PMIDS, max_size=14)),
        "snippets": st.one_of(ODD, st.lists(st.one_of(ODD, SNIPPETS), max_size=14)),
        "exact_answer": st.one_of(ODD, EXACT),
        "ideal_answer": st.one_of(ODD, TEXTS, st.lists(TEXTS, max_size=3)),
        "answerReady": st.booleans(),
    },
)
CITATIONS = st.one_of(
    ODD, st.lists(PMIDS, max_size=6), st.dictionaries(st.sampled_from("78x"), ODD)
)
SENTENCES = st.fixed_dictionaries(
    {},
    optional={
        "text": st.one_of(ODD, TEXTS),
        "citations": CITATIONS,
        "existing_supported_citations": CITATIONS,
        "supported_citations": CITATIONS,
        "contradicted_citations": CITATIONS,
        "contradicting_citations": CITATIONS,
    },
)
ITEMS = st.one_of(ODD, st.lists(st.one_of(ODD, SENTENCES), max_size=5))
RECORDS = st.fixed_dictionaries(
    {"metadata": st.one_of(ODD, st.just(METADATA))}, optional={"answer": ITEMS, "responses": ITEMS}
)
Check = Callable[..., Checked]


def synergy(*args: Any, **options: Any) -> Checked:
    return check_bioasq(*args, **options, synergy=True)


@pytest.mark.parametrize(
    ("check", "rows"),
    [
        (check_bioasq, QUESTIONS),
        (synergy, QUESTIONS),
        (check_biogen_a, RECORDS),
        (check_biogen_b, RECORDS),
    ],
)
@pytest.mark.parametrize("with_index", [False, True])
def test_a_mended_run_has_nothing_left_to_mend(
    check: Check, rows: Any, with_index: bool, lookup: CitationLookup
) -> None:
    asked = {"q": Asked("list", answer_ready=True), "181": Asked()}

    @hypothesis_settings(max_examples=120, deadline=None)
    @drawn(st.lists(st.one_of(ODD, rows), max_size=4), st.booleans(), st.booleans())
    def mend_twice(run: list[Any], drop: bool, against: bool) -> None:
        before = copy.deepcopy(run)

        def mend(rows: list[Any]) -> Checked:
            return check(
                rows,
                asked if against else None,
                lookup if with_index else None,
                drop_unknown=drop,
            )

        once = mend(run)
        again = mend(once.rows)
        assert run == before
        assert messages(again, mendable=True) == []
        assert again.rows == once.rows

    mend_twice()


# Files


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('{"questions": [{"id": "q"}]}', "bioasq"),
        ('{"questions": []}', "bioasq"),
        ('{"questions": [{"id": "q", "answerReady": true}]}', "synergy"),
        ('[{"metadata": {}, "answer": []}]', "biogen-a"),
        ('{"metadata": {}, "responses": []}', "biogen-b"),
        ('{"metadata": {}, "answer": []}\n\n{"metadata": {}, "answer": []}\n', "biogen-a"),
    ],
)
def test_the_format_is_guessed_from_the_form(tmp_path: Path, text: str, wanted: str) -> None:
    (tmp_path / "run").write_text(text)
    assert read_run_file(tmp_path / "run").format == wanted


@pytest.mark.parametrize(
    ("text", "run_format", "message"),
    [
        ("", None, "not the form of a known run format"),
        ("[5]", None, "not the form of a known run format"),
        ("[]", "bioasq", "not the form of bioasq"),
        ('{"questions": []}', "biogen-a", "not the form of biogen-a"),
        ('{"questions": 5}', None, "not the form of a known run format"),
        ('{"questions": [', None, "line 1: not JSON"),
        ('{"answer": []}\n{"ans', None, "line 2: not JSON"),
        ("[" * 100_000, None, "nested too deep"),
        ("[]", "trec", "--format trec: unknown"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, text: str, run_format: str | None, message: str
) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(InputError, match=message):
        read_run_file(tmp_path / "run", run_format)


@pytest.mark.parametrize(
    "text",
    [
        '{"username": "u", "questions": [{"id": "\\ud800", "type": "\u03b2"}]}',
        '[{"answer": []}]',
        '{"answer": []}\n{"answer": [1]}',
    ],
)
def test_a_run_is_written_in_its_own_form(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").write_text(text, encoding="utf-8")
    run = read_run_file(tmp_path / "run")
    write_run_file(tmp_path / "out", run)
    assert read_run_file(tmp_path / "out") == run
    written = (tmp_path / "out").read_text(encoding="utf-8")
    if run.form == "lines":
        assert written.splitlines() == text.splitlines()
    else:
        assert json.loads(written) == json.loads(text)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "run"]


def test_a_run_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").write_text('{"questions": []}')
    with pytest.raises(InputError, match="cannot be written"):
        write_run_file(tmp_path / "run" / "out", read_run_file(tmp_path / "run"))


def test_questions_are_read_from_any_form(tmp_path: Path) -> None:
    path = tmp_path / "asked"
    path.write_text(
        '{"questions": [{"id": "q", "type": "list", "answerReady": true}, {"id": "r"}]}'
    )
    assert read_asked(path) == {"q": Asked("list", True), "r": Asked()}
    path.write_text('{"metadata": {"qa_id": 116}}\n{"topic_id": "181", "type": "unknown"}')
    assert read_asked(path) == {"116": Asked(), "181": Asked()}
    path.write_text('[{"id": "q"}, {"id": " "}]')
    with pytest.raises(InputError, match="record 1: no id"):
        read_asked(path)


def test_the_gold_offsets_stand_where_they_say() -> None:
    """The gold files' spans are as long as their texts, by CiteRay's convention."""
    path = Path(__file__).resolve().parents[2].parent / "shared/data/bioasq/questions-dev.json"
    if not path.is_file():
        pytest.skip("the BioASQ questions are not here")
    rows = [
        {"id": row["id"], "type": row["type"], "snippets": row["snippets"]}
        for row in read_run_file(path).rows
    ]
    assert not any("offsets" in message for message in messages(check_bioasq(rows)))
