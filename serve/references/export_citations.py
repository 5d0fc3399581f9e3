"""Export formats for citations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cluster.records import Citation
from serve.references.write_bibtex import write_bibtex
from serve.references.write_csl_json import write_csl_items
from serve.references.write_csv import CSV_HEADER, write_csv_rows
from serve.references.write_nbib import write_nbib
from serve.references.write_ris import write_ris

FormatName = Literal["ris", "bibtex", "csl-json", "nbib", "csv"]


@dataclass(frozen=True, slots=True)
class Format:
    """Export format. `title` is its name in menus, and `ending` the file name extension.

    `media_type` is the registered media type, or else the usual one. A file consists of `start`,
    the texts of `write_part` with `separator` between them, and `end`. Each call of `write_part`
    gets the next citations of the file.
    """

    title: str
    ending: str
    media_type: str
    write_part: Callable[[Sequence[Citation]], str]
    start: str = ""
    separator: str = ""
    end: str = ""


FORMATS: Mapping[FormatName, Format] = {
    "ris": Format("RIS", "ris", "application/x-research-info-systems", write_ris),
    "bibtex": Format("BibTeX", "bib", "application/x-bibtex", write_bibtex),
    "csl-json": Format(
        "CSL-JSON",
        "json",
        "application/vnd.citationstyles.csl+json",
        write_csl_items,
        start="[",
        separator=",",
        end="\n]\n",
    ),
    "nbib": Format("NBIB (PubMed)", "nbib", "application/nbib", write_nbib, separator="\n"),
    "csv": Format("CSV", "csv", "text/csv; charset=utf-8", write_csv_rows, start=CSV_HEADER),
}


def format_of(path: Path | None) -> FormatName:
    """Return the format that has the extension of `path`; RIS for other files."""
    suffix = path.suffix.lower() if path else ""
    return next((name for name, form in FORMATS.items() if suffix == f".{form.ending}"), "ris")


def export_citations(citations: Sequence[Citation], form: FormatName) -> str:
    """Return the text of a file with `citations`, in their order."""
    writer = PartWriter(form)
    return (writer.write(citations) if citations else "") + writer.end()


class PartWriter:
    """Writes citations in parts that, joined in order and followed by `end`, are one file."""

    def __init__(self, form: FormatName) -> None:
        self._format = FORMATS[form]
        self._begun = False

    def write(self, citations: Sequence[Citation]) -> str:
        """Return the next part, which must have at least one citation."""
        before = self._format.separator if self._begun else self._format.start
        self._begun = True
        return before + self._format.write_part(citations)

    def end(self) -> str:
        """Return the end of the file."""
        return ("" if self._begun else self._format.start) + self._format.end
