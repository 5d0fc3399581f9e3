"""Read the facts (YAML) of the sample corpus into citations. README.md explains the fields."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cluster.errors import InputError
from cluster.records import (
    Author,
    Chemical,
    Citation,
    Link,
    MeshHeading,
    OtherAbstract,
    Section,
)
from pipelines.sample.invent_byline import invent_authors, invent_pages
from pipelines.sample.render_citation import strip_inline

JOURNAL = "CiteRay Illustrative Reports"
ABBREVIATION = "CiteRay Illus Rep"
KEYWORD = "illustrative record"

_TOPIC_FIELDS = {"topic", "mesh", "chemicals", "citations"}
_FIELDS = {
    *("title", "date", "types", "version", "keywords", "mesh", "abstract"),
    *("other_abstracts", "language", "links", "pmcid", "references"),
}
_DATE = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
_REVIEWS = {"Review", "Systematic Review", "Meta-Analysis"}
# NLM uses these types alone, and every other type together with Journal Article.
_LONE_TYPES = {"Editorial", "Letter", "Published Erratum", "Retraction of Publication"}
# Notices by the journal, which have no byline.
_NOTICES = {"Published Erratum", "Retraction of Publication"}
_TRIAL = "Randomized Controlled Trial"
# Year before volume 1 of the invented journal.
_VOLUME_0 = 1990


@dataclass(frozen=True, slots=True)
class Fact:
    """A citation; `inline` maps each plain text that has inline markup to its marked-up form."""

    citation: Citation
    inline: Mapping[str, str]


def load_yaml(path: Path) -> Any:
    """Parse one YAML file. Raises InputError, with the line, if it is not valid YAML."""
    try:
        # The C loader is ten times faster, but not available on every platform.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except yaml.YAMLError as error:
        raise InputError(f"{path.name}: not YAML ({error}); fix that line") from error


def read_mesh(path: Path) -> dict[str, str]:
    """Map headings to MeSH unique IDs, from a table with the columns `ui` and `heading`."""
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["heading"]: row["ui"] for row in csv.DictReader(lines, delimiter="\t")}


def read_topics(topics: Any, where: str, mesh: Mapping[str, str]) -> Iterator[Fact]:
    """Yield the facts of a list of topics in order; `where` names the file in errors.

    Raises InputError for an unknown field, a bad date or a heading that `mesh` lacks.
    """
    for topic in topics:
        _check_fields(topic, _TOPIC_FIELDS, f"{where}, topic {topic.get('topic')!r}")
        for pmid, fields in topic["citations"].items():
            here = f"{where}, PMID {pmid}"
            _check_fields(fields, _FIELDS, here)
            yield _fact(pmid, fields, topic, _Headings(mesh, here), here)


def _check_fields(found: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(found) - known)
    if unknown:
        raise InputError(
            f"{where}: unknown field {unknown[0]!r}; the fields are {', '.join(sorted(known))}"
        )


@dataclass(frozen=True, slots=True)
class _Headings:
    """Looks up headings; an asterisk at the end marks a major topic, as on PubMed's pages."""

    mesh: Mapping[str, str]
    place: str

    def headings(self, names: list[str]) -> tuple[MeshHeading, ...]:
        return tuple(
            MeshHeading(self._ui(bare), bare, major=bare != name)
            for name in names
            for bare in (name.removesuffix("*"),)
        )

    def chemicals(self, names: list[str]) -> tuple[Chemical, ...]:
        return tuple(Chemical(self._ui(name), name) for name in names)

    def _ui(self, name: str) -> str:
        if name not in self.mesh:
            raise InputError(f"{self.place}: heading {name!r} is not in mesh.tsv; add it there")
        return self.mesh[name]


def _fact(
    pmid: int, fields: Mapping[str, Any], topic: Mapping[str, Any], look: _Headings, where: str
) -> Fact:
    inline: dict[str, str] = {}
    year, month = _date(fields.get("date"), where)
    types = tuple(fields.get("types", ()))
    # Seeded by PMID, so that a byline stays the same when records or later versions are added.
    rng = random.Random(f"byline {pmid}")
    citation = Citation(
        pmid=pmid,
        version=fields.get("version", 1),
        title=_plain(_with_stop(fields["title"]), inline),
        sections=_sections(fields.get("abstract"), inline),
        other_abstracts=tuple(
            OtherAbstract(language, "Publisher", _sections(text, inline))
            for language, text in fields.get("other_abstracts", {}).items()
        ),
        authors=_authors(rng, topic["topic"], types),
        journal=JOURNAL,
        journal_abbreviation=ABBREVIATION,
        volume=str(year - _VOLUME_0),
        issue=str(month),
        pages=invent_pages(rng),
        year=year,
        month=month,
        languages=(fields.get("language", "eng"),),
        publication_types=types if _LONE_TYPES & set(types) else ("Journal Article", *types),
        mesh=look.headings(topic.get("mesh", []) + fields.get("mesh", [])),
        chemicals=look.chemicals(topic.get("chemicals", [])),
        keywords=(*fields.get("keywords", ()), KEYWORD),
        # Crossref reserves the prefix 10.5555 for examples that resolve to no publication.
        doi=f"10.5555/citeray.{pmid}",
        pmcid=fields.get("pmcid", ""),
        links=tuple(Link(kind, to, JOURNAL) for kind, to in fields.get("links", {}).items()),
        references=tuple(fields.get("references", _reviewed(fields, topic))),
    )
    return Fact(citation, inline)


def _reviewed(fields: Mapping[str, Any], topic: Mapping[str, Any]) -> list[int]:
    """Return the PMIDs that a review cites: the earlier citations of its topic."""
    if not _REVIEWS & set(fields.get("types", ())):
        return []
    own = str(fields["date"])
    return [pmid for pmid, facts in topic["citations"].items() if str(facts["date"]) < own]


def _authors(rng: random.Random, topic: str, types: tuple[str, ...]) -> tuple[Author, ...]:
    if _NOTICES & set(types):
        return ()
    people = invent_authors(rng, rng.randint(1, 8))
    return (*people, Author(collective=f"{topic} Study Group")) if _TRIAL in types else people


def _date(text: Any, where: str) -> tuple[int, int]:
    match = _DATE.fullmatch(str(text))
    if match is None:
        raise InputError(f"{where}: date {text!r} is not YEAR-MONTH, such as 2019-04")
    return int(match[1]), int(match[2])


def _with_stop(title: str) -> str:
    """End the title with a full stop, as PubMed does, unless it ends with a punctuation mark."""
    return title if title[-1] in ".?!" else title + "."


def _sections(abstract: Any, inline: dict[str, str]) -> tuple[Section, ...]:
    """Return the sections of an abstract: a plain text, or a mapping of labels to texts."""
    if not abstract:
        return ()
    parts = abstract if isinstance(abstract, dict) else {"": abstract}
    return tuple(Section(label, _plain(text, inline)) for label, text in parts.items())


def _plain(marked: str, inline: dict[str, str]) -> str:
    marked = marked.strip()
    plain = strip_inline(marked)
    if plain != marked:
        inline[plain] = marked
    return plain
