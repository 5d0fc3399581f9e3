"""Export formats for citations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cluster.records import Citation
from serve.references.write_bibtex import write_bibtex
from serve.references.write_csl_json import write_csl_json
from serve.references.write_csv import write_csv
from serve.references.write_nbib import write_nbib
from serve.references.write_ris import write_ris

FormatName = Literal["ris", "bibtex", "csl-json", "nbib", "csv"]


@dataclass(frozen=True, slots=True)
class Format:
    """Export format. `title` is its name in menus, and `ending` the file name extension.

    `media_type` is the registered media type, or else the usual one.
    """

    title: str
    ending: str
    media_type: str
    write: Callable[[Sequence[Citation]], str]


FORMATS: Mapping[FormatName, Format] = {
    "ris": Format("RIS", "ris", "application/x-research-info-systems", write_ris),
    "bibtex": Format("BibTeX", "bib", "application/x-bibtex", write_bibtex),
    "csl-json": Format(
        "CSL-JSON", "json", "application/vnd.citationstyles.csl+json", write_csl_json
    ),
    "nbib": Format("NBIB (PubMed)", "nbib", "application/nbib", write_nbib),
    "csv": Format("CSV", "csv", "text/csv; charset=utf-8", write_csv),
}


def export_citations(citations: Sequence[Citation], form: FormatName) -> str:
    """Return the text of a file with `citations`, in their order."""
    return FORMATS[form].write(citations)


class PartWriter:
    """Writes citations in parts that, joined in order and followed by `end`, are one file."""

    def __init__(self, form: FormatName) -> None:
        self._form = form
        self._begun = False

    def write(self, citations: Sequence[Citation]) -> str:
        """Return the next part, which must have at least one citation."""
        text, begun = FORMATS[self._form].write(citations), self._begun
        self._begun = True
        match self._form:
            case "csl-json":
                return ("," if begun else "[") + text.removeprefix("[").removesuffix("\n]\n")
            case "csv" if begun:
                return text.removeprefix(write_csv([]))
            case "nbib" if begun:
                return f"\n{text}"
        return text

    def end(self) -> str:
        """Return the end of the file."""
        if not self._begun:
            return FORMATS[self._form].write([])
        return "\n]\n" if self._form == "csl-json" else ""
