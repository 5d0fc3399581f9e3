from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from cluster.errors import InputError
from cluster.index.filters.filters import Filters
from serve.question.field_tags.parse_tags import heading_candidates
from serve.question.field_tags.read_tags import UnknownHeadingError, joined_filters, read_tags
from serve.question.understand_question import Heading

DIABETES, METFORMIN = "D003920", "D008687"
HEADINGS = {
    "diabetes mellitus": Heading(DIABETES, "Diabetes Mellitus"),
    "metformin": Heading(METFORMIN, "Metformin"),
    "glucophage": Heading(METFORMIN, "Metformin"),
}
# Questions with their words and their filters.
READ: dict[str, tuple[str, dict[str, Any]]] = {
    "metformin AND Smith J[au] AND 2015:2024[dp]":
        ("metformin", {"authors": ("Smith J",), "year_from": 2015, "year_to": 2024}),
    "Does metformin lower HbA1c? humans[mh] AND randomized controlled trial[pt]": (
        "Does metformin lower HbA1c?",
        {"humans": True, "publication_types": ("Randomized Controlled Trial",)},
    ),
    "metformin smith j[AU]": ("metformin", {"authors": ("smith j",)}),
    "diabetes van der Berg A[Author]": ("diabetes", {"authors": ("van der Berg A",)}),
    "Smith J[au] AND Doe A[au] AND malaria":
        ("malaria", {"authors": ("Smith J", "Doe A"), "all_of": ("authors",)}),
    "diabetes mellitus[MeSH Terms] AND metformin[mh:noexp]":
        ("diabetes mellitus metformin", {"mesh": (DIABETES, METFORMIN), "all_of": ("mesh",)}),
    "(review[pt] OR meta-analysis[pt]) AND asthma":
        ("asthma", {"publication_types": ("Review", "Meta-Analysis")}),
    "asthma review[Publication Type] english[la]":
        ("asthma", {"publication_types": ("Review",), "languages": ("eng",)}),
    "\u201cN Engl J Med\u201d[ta] AND \u201cheart failure\u201d[tiab]":
        ("heart failure", {"journals": ("N Engl J Med",)}),
    'statins "2015"[Date - Publication] : "2024/05"[Date - Publication]':
        ("statins", {"year_from": 2015, "until": "2024-05-31"}),
    "statins 2020:3000[dp]": ("statins", {"year_from": 2020}),
    "statins 2020/01/01:2021/12[dp]": ("statins", {"year_from": 2020, "year_to": 2021}),
    "(gold [18F]FDG (p53)) 2020[dp]?":
        ("(gold [18F]FDG (p53))?", {"year_from": 2020, "year_to": 2020}),
    "asthma humans[Filter] AND hasabstract[text]":
        ("asthma", {"humans": True, "has_abstract": True}),
}  # fmt: skip


def test_read_tags_returns_filters_and_remaining_words() -> None:
    expected = {body: (words, Filters(**filters)) for body, (words, filters) in READ.items()}
    expected |= {body: ("aspirin", Filters(**filters)) for body, filters in APPLIED.items()}
    read = {body: read_tags(body, HEADINGS, date(2024, 5, 31)) for body in expected}
    found = {body: one and (one.question, one.filters) for body, one in read.items()}
    assert found == expected


REFUSED = [
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
    ("cancer AND Boston[ad]", "the supported tags are [au], [ta]"),
    ("does it work in the new smith trial[au]", "where does the name begin"),
    ("asthma AND (y_5[filter] OR review[filter])", "OR between different filters"),
    ("asthma AND adult[filter]", "adult[filter]: not a filter here"),
    ("(" * 12 + "a AND 2020[dp]" + ")" * 12, "over 10 deep"),
    ("a[tiab] " * 51, "give at most 50"),
    ("losartan NOT mice", "NOT cannot be applied"),
    ("(losartan OR valsartan) NOT mice?", "NOT cannot be applied"),
    ("HIV NOT AIDS", "NOT cannot be applied"),
    ("HEPATITIS A NOT HEPATITIS B", "NOT cannot be applied"),
    ("OR losartan AND review[pt]", "OR has no term before it"),
    ("losartan review[pt] AND", "AND has no term after it"),
    ("losartan AND OR review[pt]", "OR has no term before it"),
    ("(losartan OR) AND review[pt]", "OR has no term after it"),
    ("AND OR", "only AND and OR; add the words"),
]


def test_conditions_that_filters_cannot_express_are_rejected() -> None:
    assert {body: refused(body) for body, said in REFUSED if said not in refused(body)} == {}
    assert all(refused(body).startswith("question") for body, _ in REFUSED)


def test_joined_filters_apply_both_or_reject_a_conflict() -> None:
    given, read = Filters(year_from=2000, humans=True), Filters(year_from=2010, journals=("BMJ",))
    both = joined_filters(given, read)
    assert both == Filters(year_from=2010, humans=True, journals=("BMJ",))
    with pytest.raises(InputError, match=r"filters\.journals: .* give it in one place"):
        joined_filters(Filters(journals=("Lancet",)), read)


def refused(body: str) -> str:
    """Return the error for `body`; "" if it is accepted."""
    try:
        read_tags(body, HEADINGS)
    except InputError as error:
        return str(error)
    return ""


APPLIED: dict[str, dict[str, Any]] = {
    'aspirin AND "metformin"[Mesh]': {"mesh": (METFORMIN,)},
    "aspirin AND metformin[MeSH Terms:NoExp]": {"mesh": (METFORMIN,)},
    '"aspirin"[Tiab]': {},
    "aspirin[Title / Abstract]AND 2020[Pdat]": {"year_from": 2020, "year_to": 2020},
    "aspirin AND 2020[Date-Publication]": {"year_from": 2020, "year_to": 2020},
    "aspirin AND 2020[Date \u2013 Publication]": {"year_from": 2020, "year_to": 2020},
    'aspirin[All Fields] AND ("2015"[PDAT] : "2024"[PDAT])': {"year_from": 2015, "year_to": 2024},
    "aspirin AND english[Lang]": {"languages": ("eng",)},
    "aspirin AND Smith J [Au]": {"authors": ("Smith J",)},
    "aspirin AND Clinical Trial[Publication Type:noexp]": {
        "publication_types": ("Clinical Trial",)
    },
    "aspirin AND (randomizedcontrolledtrial[Filter])": {
        "publication_types": ("Randomized Controlled Trial",)
    },
    "aspirin AND (clinicaltrial[Filter] OR meta-analysis[filter])": {
        "publication_types": ("Clinical Trial", "Meta-Analysis")
    },
    "aspirin AND y_5[Filter]": {"year_from": 2019},
    'aspirin AND "last 10 years"[dp]': {"year_from": 2014},
    "aspirin AND fha[Filter]": {"has_abstract": True},
}


def test_entry_terms_are_noted_and_unknown_headings_named() -> None:
    read = read_tags("glucose AND glucophage[mh]", HEADINGS)
    assert read is not None
    assert read.filters == Filters(mesh=(METFORMIN,))
    assert '"glucophage" is searched as the MeSH heading "Metformin"' in read.notes
    with pytest.raises(UnknownHeadingError, match="not a MeSH heading") as refused:
        read_tags("glucose AND metfromin[mh]", HEADINGS)
    assert refused.value.value == "metfromin"


def test_last_years_are_whole_years_and_noted() -> None:
    read = read_tags("aspirin AND y_5[filter]", {}, date(2024, 5, 31))
    assert read is not None
    assert read.notes == (
        "dates begin with a year, so the last years (5) were read as 2019 and later",
    )


def test_unsupported_tag_is_rejected_by_its_name() -> None:
    for tag in [
        *("[Majr]", "[MeSH Major Topic]", "[majr:noexp]", "[nm]", "[Supplementary Concept]"),
        *("[si]", "[Secondary Source ID]", "[sh]", "[MeSH Subheading]", "[rn]", "[EC/RN Number]"),
        *("[1au]", "[First Author Name]", "[lastau]", "[ir]", "[Full Investigator Name]", "[ad]"),
        *("[Edat]", "[Date - Entry]", "[crdt]", "[Date - Completion]", "[dcom]", "[MHDA]", "[lr]"),
        *("[vi]", "[ip]", "[pg]", "[pl]", "[jid]", "[gr]", "[cois]", "[ISBN]", "[pubn]", "[tt]"),
        *("[tiab:~2]", "[Title/Abstract:~10]", "[ti:~0]", "[mesh:exp]", "[au:noexp]"),
    ]:
        assert tag in refused(f"losartan{tag}")


def test_unknown_tag_is_rejected_after_quotes_or_beside_other_tags() -> None:
    for tag in ("[foo]", "[Titel]", "[FOO]", "[Mesh Trems]", "[ti/ab]", "[foo:noexp]"):
        for body in (f'"losartan" {tag}', f"aspirin AND losartan{tag} AND 2020[dp]"):
            assert tag in refused(body)
        assert read_tags(f"losartan{tag}", {}) is None


def test_tag_without_a_value_is_rejected_by_its_name() -> None:
    for tag in ("[pdat]", "[au]", "[Mesh]", "[Majr]", "[tiab:~2]"):
        said = [refused(body) for body in (tag, f"aspirin AND {tag}", f"{tag} AND aspirin")]
        assert [sentence for sentence in said if tag not in sentence] == []


def test_brackets_and_operators_in_ordinary_text_are_not_tags() -> None:
    bodies = [
        "Does metformin activate AMPK?",
        "What is [Au] nanoparticle toxicity?",
        "[Au]",
        "ethics of DO NOT RESUSCITATE orders",
        "Metformin does NOT cause lactic acidosis",
        "WHY DOES LOSARTAN NOT WORK IN MICE",
        "AND-1/Ctf4 in DNA replication",
        "AND/OR logic",
        '"losartan NOT mice"',
        'NOT ("*"~^:[]{}+-)',
        "What does the OR gate do in a cell?",
        "Is the [4Fe-4S] cluster of NDUFS1 stable?",
        "Which drugs do NOT cross the blood brain barrier, ADME OR not?",
        "benzo[a]pyrene",
        "toxicity of dibenz[a,h]anthracene and benzo[ghi]perylene",
        "dibenzo[la]pyrene in soot",
        "[18F]FDG PET",
        "[3H]thymidine uptake",
        "[Au] nanoparticles",
        "silicon [Si] chips",
        "Cr[VI] and chromium[VI] toxicity",
        "C[max] and AUC[inf] of losartan",
        "K[ATP] channels",
        "poly[HEMA]",
        "spiro[indoline]",
        "pentacyclo[foo]",
        "cyclo[RGDfK]",
        "[Ca2+]i in neurons",
        "drug[s] for asthma",
        "glucose [mg/dl]",
        "tumor necrosis factor [TNF] inhibitors",
        "emergency department [ED] visits",
        "Effects of aspirin on platelets in rats [corrected]",
        "What is the role of amyloid in Alzheimer's disease [AD]?",
        "Is the EQ-5D [a widely used instrument] a questionnaire?",
    ]
    assert [body for body in bodies if read_tags(body, {}) or heading_candidates(body)] == []


def test_brackets_in_ordinary_text_are_kept_beside_tags() -> None:
    read = read_tags("benzo[a]pyrene AND K[ATP] channels AND review[pt]", {})
    assert read is not None
    assert read.question == "benzo[a]pyrene K[ATP] channels"


def test_and_and_or_between_words_are_not_applied_and_noted() -> None:
    for body, words, operator in [
        ("(losartan OR valsartan) AND 2020[dp]", "losartan valsartan", "OR"),
        ("losartan OR valsartan", "losartan OR valsartan", "OR"),
        ("losartan AND hypertension", "losartan AND hypertension", "AND"),
        ("odds ratio (OR) of stroke", "odds ratio (OR) of stroke", "OR"),
    ]:
        read = read_tags(body, {})
        assert read is not None
        assert read.question == words
        assert [note for note in read.notes if f"{operator} between words is not applied" in note]


def test_operators_in_a_question_before_a_tag_are_words() -> None:
    read = read_tags("Which drugs do NOT help, A AND B OR C? review[pt]", {})
    assert read is not None
    assert read.question == "Which drugs do NOT help, A AND B OR C?"
