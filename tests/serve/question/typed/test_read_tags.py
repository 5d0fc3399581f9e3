"""Field tags of PubMed become filters, and what filters cannot hold is refused in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.errors import InputError
from cluster.index.filters.filters import Filters
from serve.question.typed.identifiers import Identifiers, read_identifiers
from serve.question.typed.parse_tags import heading_candidates
from serve.question.typed.read_tags import joined_filters, read_tags

DIABETES, METFORMIN = "D003920", "D008687"
HEADINGS = {"diabetes mellitus": DIABETES, "metformin": METFORMIN}
READ: list[tuple[str, str, dict[str, Any]]] = [
    (
        "metformin AND Smith J[au] AND 2015:2024[dp]",
        "metformin",
        {"authors": ("Smith J",), "year_from": 2015, "year_to": 2024},
    ),
    (
        "Does metformin lower HbA1c? humans[mh] AND randomized controlled trial[pt]",
        "Does metformin lower HbA1c?",
        {"humans": True, "publication_types": ("Randomized Controlled Trial",)},
    ),
    ("metformin smith j[AU]", "metformin", {"authors": ("smith j",)}),
    ("diabetes van der Berg A[Author]", "diabetes", {"authors": ("van der Berg A",)}),
    (
        "Smith J[au] AND Doe A[au] AND malaria",
        "malaria",
        {"authors": ("Smith J", "Doe A"), "all_of": ("authors",)},
    ),
    (
        "diabetes mellitus[MeSH Terms] AND metformin[mh:noexp]",
        "diabetes mellitus metformin",
        {"mesh": (DIABETES, METFORMIN), "all_of": ("mesh",)},
    ),
    (
        "(review[pt] OR meta-analysis[pt]) AND asthma",
        "asthma",
        {"publication_types": ("Review", "Meta-Analysis")},
    ),
    (
        "asthma review[Publication Type] english[la]",
        "asthma",
        {"publication_types": ("Review",), "languages": ("eng",)},
    ),
    (
        "\u201cN Engl J Med\u201d[ta] AND \u201cheart failure\u201d[tiab]",
        "heart failure",
        {"journals": ("N Engl J Med",)},
    ),
    (
        'statins "2015"[Date - Publication] : "2024/05"[Date - Publication]',
        "statins",
        {"year_from": 2015, "until": "2024-05-31"},
    ),
    ("statins 2020:3000[dp]", "statins", {"year_from": 2020}),
    ("statins 2020/01/01:2021/12[dp]", "statins", {"year_from": 2020, "year_to": 2021}),
    (
        "(gold [18F]FDG (p53)) 2020[dp]?",
        "(gold [18F]FDG (p53))?",
        {"year_from": 2020, "year_to": 2020},
    ),
    (
        "asthma humans[Filter] AND hasabstract[text]",
        "asthma",
        {"humans": True, "has_abstract": True},
    ),
]


@pytest.mark.parametrize(("body", "words", "filters"), READ, ids=[body for body, *_ in READ])
def test_tags_become_filters_and_the_rest_is_the_question(
    body: str, words: str, filters: dict[str, Any]
) -> None:
    read = read_tags(body, HEADINGS)
    assert read is not None
    assert (read.words, read.filters) == (words, Filters(**filters))


@pytest.mark.parametrize(
    "body",
    [
        "Does metformin activate AMPK?",
        "What is [Au] nanoparticle toxicity?",
        "[au]",
        "Is the [4Fe-4S] cluster of NDUFS1 stable?",
        "Which drugs do NOT cross the blood brain barrier, ADME OR not?",
    ],
)
def test_a_question_without_tags_is_left_alone(body: str) -> None:
    assert read_tags(body, {}) is None
    assert not heading_candidates(body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("asthma NOT children[mh]", "NOT cannot be applied"),
        ("metformin[tiab] OR 2020[dp]", "OR between different fields"),
        ("asthma AND review[pt] OR guideline[pt]", "AND within OR"),
        ("(review[pt] OR guideline[pt]) AND letter[pt] AND asthma", "both AND and OR"),
        ("statins 2020/05[dp]", "a range must begin with a year; write it as in"),
        ("statins 2020[dp] AND 2021[dp]", "give one range"),
        ("statins 20[dp]", "not a date"),
        ("statins 2020:2021/13[dp]", "not a date"),
        ("asthma AND nonsense[pt]", "not a publication type of PubMed"),
        ("nonsense[mh]", "not a MeSH heading that this index knows"),
        ("asthma AND klingon[la]", "not a language"),
        ("Smith J[au]", "only field tags; add words"),
        ("12[pmid] AND cancer", "give them alone"),
        ("cancer AND Boston[ad]", "the tags that can are au, ta"),
        ("does it work in the new smith trial[au]", "where does the name begin"),
        ("(" * 12 + "a AND 2020[dp]" + ")" * 12, "over 10 deep"),
        ("a[tiab] " * 51, "give at most 50"),
    ],
)
def test_what_filters_cannot_hold_is_refused_with_the_fix(body: str, said: str) -> None:
    with pytest.raises(InputError, match=r"^question") as refused:
        read_tags(body, HEADINGS)
    assert said in str(refused.value)


def test_what_words_lose_is_told() -> None:
    read = read_tags("(metformin OR phenformin) AND 2020[dp]", {})
    assert read is not None
    assert read.words == "metformin phenformin"
    assert [note for note in read.notes if "OR between words is not applied" in note]


def test_tags_and_the_filters_of_a_request_hold_together() -> None:
    given, read = Filters(year_from=2000, humans=True), Filters(year_from=2010, journals=("BMJ",))
    both = joined_filters(given, read)
    assert both == Filters(year_from=2010, humans=True, journals=("BMJ",))
    with pytest.raises(InputError, match=r"filters\.journals: .* give it in one place"):
        joined_filters(Filters(journals=("Lancet",)), read)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("12345678", Identifiers((12345678,))),
        ("PMID: 123", Identifiers((123,))),
        ("PMID 1, PMID:2 3", Identifiers((1, 2, 3))),
        ("1[pmid] OR 2[uid]", Identifiers((1, 2))),
        ("https://pubmed.ncbi.nlm.nih.gov/31393839/", Identifiers((31393839,))),
        ("doi:10.1038/Nature12373.", Identifiers(dois=("10.1038/nature12373",))),
        (
            "https://doi.org/10.1016/S0140-6736(98)11131-9; 10.1/x",
            Identifiers(),
        ),
        (
            "https://doi.org/10.1016/S0140-6736(98)11131-9, 7",
            Identifiers((7,), ("10.1016/s0140-6736(98)11131-9",)),
        ),
        ("metformin 123", Identifiers()),
        ("What is 2?", Identifiers()),
        ("1234567890", Identifiers()),
        ("1" + " " * 1900 + "x", Identifiers()),
    ],
)
def test_pmids_and_dois_alone_are_read(text: str, found: Identifiers) -> None:
    assert read_identifiers(text) == found
