"""Prepare CSL items so that citeproc-py renders them correctly.

Workarounds for errors of citeproc-py, applied to its input:

- It shortens page ranges of unequal length wrongly (1-10 as 1-0). Ranges are passed in the form of
  the style, with a marker instead of the hyphen, so that citeproc-py does not change them.
- It separates groups from people by a comma where NLM and AMA use a semicolon. Markers before and
  after the group's name allow replacing the comma.
- It cannot end a list of authors with "et al." that is shorter than the limit of the style. A
  marker is passed as the last author.
- It does not put the supplement in "42 Suppl 2" in parentheses, as APA and AMA require.
- It prints the title instead of missing authors and then again as the title, although NLM's file
  does not ask for that.
- It adds a full stop to a title that ends with a question mark. A marker allows removing it.
- It omits the space between year and month in NLM's style, and prints a semicolon even without a
  volume and an issue. The date is passed as literal text.
- It treats a given name without a capital letter as a particle. The initials are passed as a part
  of the family name instead.

The markers are characters of Unicode's private use area, which are first removed from a citation.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cluster.records import MORE_AUTHORS, Author, Citation
from serve.references.describe_citation import publication_date, spaced_initials
from serve.references.page_ranges import expand_pages, is_article_number, shorten_pages
from serve.references.write_csl_json import csl_item

StyleName = Literal["vancouver", "apa", "ama"]

PAGE_MARK, GROUP_MARK = "\ue000", "\ue001"
TITLE_MARK, GROUP_END, MORE_MARK = "\ue005", "\ue006", "\ue007"
ITALIC, BOLD, END = "\ue002", "\ue003", "\ue004"
_PRIVATE = re.compile(r"[\ue000-\uf8ff]")
_SUPPLEMENT = re.compile(r"\bSuppl\b\.?")
# PubMed distinguishes journals of the same name by the place of publication; other journals have a
# subtitle there.
_QUALIFIER = re.compile(r" (?:\([^()]*\)|: .*)$")
_RENDERED = (
    "id", "type", "title", "author", "container-title", "container-title-short", "issued",
    "volume", "issue", "page", "DOI", "PMID", "PMCID",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StyleRules:
    """Rules of a style that its CSL file leaves to the processor.

    `before_group` separates a group from the authors before and after it, `dash` the pages of a
    range. `given` is between the family name and the initials, `article` before an article number.
    `supplement` is the word for a supplement, "" to keep PubMed's form. `suffix_end` is added to
    Jr and Sr. `numbered` is True if the CSL file numbers references, `language` if a reference ends
    with the name of its language unless it is English.
    """

    file: str
    pages: Callable[[str], str]
    dash: str
    before_group: str
    given: str
    article: str
    supplement: str
    suffix_end: str
    numbered: bool
    language: bool


RULES: dict[StyleName, StyleRules] = {
    "vancouver": StyleRules(
        "nlm-citation-sequence", shorten_pages, "-", "; ", " ", "", "", "",
        numbered=True, language=True,
    ),
    "apa": StyleRules(
        "apa", expand_pages, "\u2013", ", ", ", ", "Article ", "Suppl.", ".",
        numbered=False, language=False,
    ),
    "ama": StyleRules(
        "american-medical-association", expand_pages, "-", "; ", " ", "", "suppl", "",
        numbered=True, language=False,
    ),
}  # fmt: skip


def style_item(citation: Citation, rules: StyleRules) -> dict[str, Any]:
    """Return the citation as a CSL item for a style, with markers that the caller replaces."""
    item = _without_private(csl_item(citation))
    item = {name: item[name] for name in _RENDERED if name in item}
    item["title"] = _title(item.get("title", ""))
    if "author" in item:
        names = zip(item["author"], citation.authors, strict=True)
        item["author"] = [_name(name, author, rules) for name, author in names]
    if "page" in item:
        article = rules.article if is_article_number(item["page"]) else ""
        item["page"] = article + rules.pages(item["page"]).replace("-", PAGE_MARK)
    if "container-title" in item:
        item["container-title"] = _QUALIFIER.sub("", item["container-title"])
    return _by_nlm(item, citation) if rules.language else _by_others(item, rules.supplement)


def _title(title: str) -> str:
    if not title:
        return "[Title not available]"
    return f"{title}{TITLE_MARK}" if title[-1] in "?!" else title


def _by_nlm(item: dict[str, Any], citation: Citation) -> dict[str, Any]:
    date = publication_date(citation)
    if not item.get("volume") and not item.get("issue") and "page" in item:
        date = ":".join(part for part in (date, item.pop("page")) if part)
    doi = f" {item['DOI']}." if "DOI" in item else ""
    mended = {"issued": {"literal": date} if date else None, "DOI": doi}
    return {name: value for name, value in {**item, **mended}.items() if value}


def _by_others(item: dict[str, Any], supplement: str) -> dict[str, Any]:
    if not item.get("author"):
        item = {**item, "author": [{"literal": item["title"]}]}
        del item["title"]
    return {**item, **_supplement(item, supplement)}


def _without_private(value: Any) -> Any:
    if isinstance(value, str):
        return _PRIVATE.sub("", value)
    if isinstance(value, list):
        return [_without_private(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_private(each) for name, each in value.items()}
    return value


def _name(name: dict[str, str], author: Author, rules: StyleRules) -> dict[str, str]:
    if author == MORE_AUTHORS:
        return {"literal": MORE_MARK}
    if "literal" in name:
        return {"literal": GROUP_MARK + name["literal"] + GROUP_END}
    family, given = name.get("family", ""), name.get("given", "")
    if not all(word[0].isupper() for word in re.findall("[^ -]+", given)):
        initials = _PRIVATE.sub("", spaced_initials(author))
        initials = initials or " ".join(f"{word[0]}." for word in given.split())
        if rules.given == " ":
            initials = re.sub("[. ]", "", initials)
        family, given = f"{family}{rules.given}{initials}", ""
    suffix = name.get("suffix", "")
    ended = suffix + rules.suffix_end if suffix in ("Jr", "Sr") else suffix
    parts = {"family": family, "given": given, "suffix": ended}
    return {part: text for part, text in parts.items() if text}


def _supplement(item: dict[str, Any], word: str) -> dict[str, str]:
    """Move a supplement in the volume to the issue, or reword it in the issue.

    Returns the changed fields.
    """
    if found := _SUPPLEMENT.search(volume := item.get("volume", "")):
        number, which = volume[: found.start()].strip(), volume[found.end() :].strip()
        return {"volume": number, "issue": f"{word} {which}".strip()}
    if found := _SUPPLEMENT.search(issue := item.get("issue", "")):
        number, which = issue[: found.start()].strip(), issue[found.end() :].strip()
        return {"issue": f"{number} {word} {which}".strip()}
    return {}
