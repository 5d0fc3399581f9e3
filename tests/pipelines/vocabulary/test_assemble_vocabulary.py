"""Each rule of vocabulary assembly, and a comparison with a reference implementation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.text.vocabulary import Concept, concept_of, normalise
from pipelines.vocabulary.assemble_vocabulary import assemble_concepts
from pipelines.vocabulary.mine_vocabulary import COUNTS_SCHEMA, TermCounts, merge_counts
from pipelines.vocabulary.name_headings import SOURCES, GivenName, natural_order

# A row of the counts: kind, form, ui (concept id), short form, number of citations.
Count = tuple[str, str, str, str, int]
Heading = tuple[str, str]


def keyword(name: str, citations: int = 1) -> Count:
    return "keyword", name, "", "", citations


def counted(rows: Sequence[Count]) -> TermCounts:
    parts = [COUNTS_SCHEMA.empty_table()]
    for kind, form, ui, short, citations in rows:
        row = (kind, normalise(form), ui, form, short, citations)
        one = dict(zip(COUNTS_SCHEMA.names, row, strict=True))
        parts.append(parts[0].from_pylist([one], schema=COUNTS_SCHEMA))
    return merge_counts(map(TermCounts, parts))


def as_given(headings: Sequence[Heading]) -> list[GivenName]:
    """Return names in the given order, the first of each concept preferred; ids default to MeSH."""
    seen: set[str] = set()
    names = []
    for ui, name in headings:
        names.append(GivenName(ui if ":" in ui else f"mesh:{ui}", name, ui not in seen))
        seen.add(ui)
    return names


def assembled(rows: Sequence[Count], headings: Sequence[Heading] = ()) -> list[Concept]:
    concepts, keys = assemble_concepts(counted(rows), as_given(headings))
    found = [concept_of(row) for row in concepts.to_pylist()]
    assert keys.to_pylist() == [normalise(name) for c in found for name in c.names]
    return found


def test_long_form_does_not_join_a_heading_by_a_synonym() -> None:
    release = [("D1", "Amyotrophic Lateral Sclerosis"), ("D1", "ALS")]
    found = assembled([("abbreviation", "advanced life support", "", "ALS", 5)], release)
    assert [c.id for c in found] == ["abbr:advanced life support", "mesh:D1"]


def test_umls_concepts_follow_headings_and_take_matching_keywords() -> None:
    release = [("umls:C0000001", "Red Ear Syndrome"), ("umls:C0000001", "Lance's erythromelalgia")]
    found = assembled([keyword("red ear syndrome", 3), ("mesh", "Ear", "D1", "", 1)], release)
    assert [(c.id, c.kind, c.citations) for c in found] == [
        ("mesh:D1", "mesh", 1),
        ("umls:C0000001", "umls", 3),
    ]
    assert found[1].names == ("Red Ear Syndrome", "Lance's erythromelalgia")


def test_keys_sort_by_code_point() -> None:
    found = assembled([keyword(name) for name in ("\U00020000 x", "\uffee y", "é z")])
    assert [c.id for c in found] == ["kw:é z", "kw:\u25cb y", "kw:\U00020000 x"]


def test_keyword_prefers_a_heading_over_an_entry_term() -> None:
    release = [("D1", "Common Cold"), ("D1", "Cold"), ("D2", "Cold")]
    found = assembled([keyword("cold", 4)], release)
    assert [(c.id, c.uses) for c in found] == [("mesh:D1", (0, 0)), ("mesh:D2", (4,))]


class Draft:
    """Concept of the reference: uses of each form of each key, and citations by source."""

    def __init__(self) -> None:
        self.name = ""
        self.uses: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.citations: Counter[str] = Counter()
        self.sources: defaultdict[str, set[str]] = defaultdict(set)

    def add(self, source: str, form: str, citations: int) -> None:
        self.uses[normalise(form)][form] += citations
        self.citations[source] += citations
        self.sources[normalise(form)].add(source)
        if source in ("mesh", "synonym") and ", " in form:
            turned = natural_order(form)
            self.uses[normalise(turned)][turned] += citations
            self.sources[normalise(turned)].add("turned" if source == "mesh" else source)

    def concept(self, ident: str, kind: str, own: str = "") -> Concept:
        best = {k: min(forms, key=lambda f: (-forms[f], f)) for k, forms in self.uses.items()}
        used = {key: forms.total() for key, forms in self.uses.items()}
        if self.name:
            own = normalise(self.name)
            best[own] = self.name
        keys = sorted(best, key=lambda k: (k != own, -used[k], k))
        names = tuple(best[k] for k in keys)
        uses = tuple(used[k] for k in keys)
        return Concept(ident, kind, names[0], names, uses, max(self.citations.values()))


def reference(rows: Sequence[Count], headings: Sequence[Heading]) -> list[Concept]:
    drafts: defaultdict[str, Draft] = defaultdict(Draft)
    for ident, name, is_own in as_given(headings):
        drafts[ident].name = drafts[ident].name or name
        is_umls = ident.startswith("umls:")
        drafts[ident].add("umls" if is_umls else "mesh" if is_own else "synonym", name, 0)
    for kind, form, ui, _, n in sorted(rows, key=lambda row: row[0] != "mesh"):
        heads = kind == "mesh" or f"mesh:{ui}" in drafts
        if kind in ("mesh", "chemical"):
            ident = f"mesh:{ui}" if heads else f"chem:{ui or normalise(form)}"
            drafts[ident].add(kind, form, n)
    owners: dict[str, Draft] = {}
    named: set[str] = set()
    for source in SOURCES:
        for ident in sorted(drafts):
            for key in (k for k, found in drafts[ident].sources.items() if source in found):
                owners.setdefault(key, drafts[ident])
                named |= {key} if source in ("mesh", "turned", "chemical") else set()
    pairs: Counter[tuple[str, str]] = Counter()
    totals: Counter[str] = Counter()
    for _, form, _, short, n in (row for row in rows if row[0] == "abbreviation"):
        pairs[normalise(form), short] += n
        totals[short] += n
    pairs = Counter({p: n for p, n in pairs.items() if n >= 2 and n / totals[p[1]] >= 0.3})
    longs, shorts = {long for long, _ in pairs}, {normalise(short) for _, short in pairs}
    own: defaultdict[str, Draft] = defaultdict(Draft)
    for kind, form, _, _, n in rows:
        if kind == "keyword" or (kind == "abbreviation" and normalise(form) in longs):
            own[normalise(form)].add("keyword" if kind == "keyword" else "long", form, n)
    for (long, short), n in pairs.items():
        own[long].add("short", short, n)
    made = []
    for key, draft in sorted(own.items()):
        ranked = sorted(draft.uses, key=lambda k: (k != key, -draft.uses[k].total(), k))
        gives = [k for k in ranked if k in owners and (k == key or k in named)]
        if owner := next((owners[k] for k in gives), None):
            for other, forms in draft.uses.items():
                owner.uses[other].update(forms)
            owner.citations.update(draft.citations)
        elif key in longs or key not in shorts:
            kind, prefix = (
                ("keyword", "kw") if draft.citations["keyword"] else ("abbreviation", "abbr")
            )
            made.append(draft.concept(f"{prefix}:{key}", kind, key))
    for ident, draft in sorted(drafts.items()):
        kind = {"chem": "chemical"}.get(ident[:4], ident[:4])
        made.append(draft.concept(ident, kind))
    return made


FORMS = st.sampled_from(
    ["MS", "M-S", "TF", "T F", "T-F 1", "asthma", "Asthmas", "a, b", "b a", "ä x", "x y", "X-y"]
)
UIS = st.sampled_from(["D1", "D10", "D2", ""])
GIVEN = st.sampled_from(["D1", "D10", "umls:C1", "umls:C2"])
COUNTS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["mesh", "chemical"]), FORMS, UIS, st.just(""), st.integers(1, 3)
        ),
        st.tuples(st.just("keyword"), FORMS, st.just(""), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("abbreviation"), FORMS, st.just(""), FORMS, st.integers(1, 3)),
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=100)
@given(COUNTS, st.lists(st.tuples(GIVEN, FORMS), max_size=6))
def test_assembled_concepts_match_the_reference_implementation(
    rows: list[Count], headings: list[Heading]
) -> None:
    assert assembled(rows, headings) == reference(rows, headings)
