"""Format references in a citation style, with citeproc-py and the CSL files in `styles/`."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from citeproc import Citation as Cited
from citeproc import CitationItem, CitationStylesBibliography, CitationStylesStyle
from citeproc.source.json import CiteProcJSON

from cluster.pubmed.languages import language_name
from cluster.records import Citation
from serve.references.describe_citation import retraction_words
from serve.references.marked_text import Run, as_html, plain
from serve.references.prepare_for_style import (
    BOLD,
    END,
    GROUP_END,
    GROUP_MARK,
    ITALIC,
    MORE_MARK,
    PAGE_MARK,
    RULES,
    TITLE_MARK,
    StyleName,
    StyleRules,
    style_item,
)

STYLES = Path(__file__).parent / "styles"
LOCALE = "en-US"
_MARKS = re.compile(f"([{ITALIC}{BOLD}{END}])")
_REST = re.compile(f"[{GROUP_MARK}{GROUP_END}{TITLE_MARK}]")
_MORE = re.compile(rf"(?:& |\u2026 )?{MORE_MARK}\.?")
KEPT = 2048
_TYPE = "article-journal"
_CONDITIONS = {"variable", "is-numeric", "is-uncertain-date", "locator", "position"}
_STYLES: dict[str, Any] = {}
# citeproc-py stores the formatter and shortened names in the style, so it is not thread-safe.
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class StyledReference:
    """Reference without its number. `retracted` is the notice that ends the text, or ""."""

    pmid: int
    runs: tuple[Run, ...]
    retracted: str = ""

    @property
    def text(self) -> str:
        """Return the reference as plain text."""
        return plain(self.runs)

    @property
    def html(self) -> str:
        """Return the reference as HTML, with only the tags `i` and `b`."""
        return as_html(self.runs)


def style_references(citations: Sequence[Citation], style: StyleName) -> list[StyledReference]:
    """Return the references in the order of `citations`. Results are cached."""
    return [_reference(citation, style) for citation in citations]


@lru_cache(maxsize=KEPT)
def _reference(citation: Citation, style: StyleName) -> StyledReference:
    rules = RULES[style]
    item = style_item(citation, rules)
    with _LOCK:
        bibliography = CitationStylesBibliography(
            _load(rules.file), CiteProcJSON([item]), _MarkFaces
        )
        bibliography.register(Cited([CitationItem(item["id"])]))
        printed = "".join(map(str, bibliography.bibliography()))
    if rules.numbered:
        printed = printed.removeprefix("1.").lstrip()
    return _styled(citation, printed, rules)


def _load(file: str) -> Any:
    """Return the style, which is parsed once per process. Call it with the lock held."""
    if file not in _STYLES:
        style = CitationStylesStyle(str(STYLES / f"{file}.csl"), locale=LOCALE, validate=False)
        _leave_out_other_types(style.root)
        _STYLES[file] = style
    return _STYLES[file]


def _leave_out_other_types(style: Any) -> None:
    """Remove the branches for types other than journal articles, so that formatting is faster."""
    for branch in style.xpath("//cs:if[@type] | //cs:else-if[@type]", namespaces=style.nsmap):
        match = branch.get("match", "all")
        alone = not (_CONDITIONS & set(branch.keys()))
        fails = match == "all" or (match == "any" and alone)
        if fails and _TYPE not in branch.get("type").split():
            branch.getparent().remove(branch)


class _MarkFaces:
    """Formatter for citeproc-py that marks italic and bold text."""

    @staticmethod
    def preformat(text: Any) -> str:
        return str(text)

    @staticmethod
    def Italic(text: Any) -> str:  # noqa: N802
        return f"{ITALIC}{text}{END}"

    @staticmethod
    def Bold(text: Any) -> str:  # noqa: N802
        return f"{BOLD}{text}{END}"

    Oblique = Italic
    Light = Underline = Superscript = Subscript = SmallCaps = preformat


def _styled(citation: Citation, printed: str, rules: StyleRules) -> StyledReference:
    notice = retraction_words(citation)
    text = _MORE.sub("et al.", printed).replace(f"{GROUP_END}, et al.", ", et al.")
    text = re.sub(f", {GROUP_MARK}|{GROUP_END}, (?=[^& ])", rules.before_group, text)
    text = text.replace(f"{TITLE_MARK}.", "").replace(f".{GROUP_END}.", ".")
    text = _REST.sub("", text.replace(PAGE_MARK, rules.dash))
    names = [language_name(code) for code in citation.languages if code != "eng"]
    if rules.language and any(names):
        text += f" {', '.join(name for name in names if name)}."
    return StyledReference(citation.pmid, (*_read_marks(text), *_notice(notice)), notice)


def _notice(words: str) -> Iterator[Run]:
    if words:
        yield Run(" ")
        yield Run(f"[{words}]", bold=True)


def _read_marks(text: str) -> Iterator[Run]:
    faces: list[str] = []
    for part in _MARKS.split(text):
        if part == END:
            faces.pop()
        elif part in (ITALIC, BOLD):
            faces.append(part)
        elif part:
            yield Run(part, italic=ITALIC in faces, bold=BOLD in faces)
