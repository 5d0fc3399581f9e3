"""Write an answer as a PDF document, with fpdf2 and the DejaVu fonts of matplotlib."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fpdf import FPDF

from serve.references.documents.number_answer import AnswerDocument
from serve.references.marked_text import Run

FONT = "DejaVu"
FACES = {"": "DejaVuSans", "B": "DejaVuSans-Bold", "I": "DejaVuSans-Oblique"}
FACES["BI"] = "DejaVuSans-BoldOblique"
UNPRINTABLE = (
    "Some characters have no glyph in this file's font and are left out; the Markdown and DOCX "
    "forms have them."
)
_MARGIN, _INDENT = 20.0, 10.0
_LINK_COLOUR = (5, 99, 193)
# fpdf2 logs each character without a glyph; the document has a note about them instead.
logging.getLogger("fpdf").setLevel(logging.ERROR)


def write_pdf(document: AnswerDocument) -> bytes:
    """Return A4 pages with selectable text and links."""
    d = document
    pdf = _open(d.question)
    _heading(pdf, d.question, 15)
    _line(pdf, (Run("Verdict: ", bold=True), Run(d.verdict)))
    for heading, texts, listed in d.sections():
        _heading(pdf, heading, 12)
        for text in texts:
            _hanging(pdf, "\u2022", (Run(text),)) if listed else _line(pdf, (Run(text),))
    if d.references:
        _heading(pdf, d.listed, 12)
    for reference in d.references:
        _hanging(pdf, f"[{reference.number}]", reference.runs, reference.links)
        if reference.basis:
            _hanging(pdf, "", (Run(reference.basis),))
    pdf.ln(3)
    unprintable = [UNPRINTABLE] if _lacks_glyphs(pdf, d) else []
    for note in (*d.notes, *unprintable):
        _line(pdf, (Run(note),))
    _line(pdf, (Run(d.disclaimer, italic=True),))
    return bytes(pdf.output())


def _open(title: str) -> Any:
    from matplotlib import get_data_path

    fonts = Path(get_data_path()) / "fonts" / "ttf"
    pdf = FPDF(format="A4")
    for style, name in FACES.items():
        pdf.add_font(FONT, style, fonts / f"{name}.ttf")
    pdf.set_title(title)
    pdf.set_author("CiteRay")
    pdf.set_lang("en")
    pdf.set_margins(_MARGIN, _MARGIN, _MARGIN)
    pdf.set_auto_page_break(True, _MARGIN)
    pdf.add_page()
    return pdf


def _lacks_glyphs(pdf: Any, document: AnswerDocument) -> bool:
    d = document
    runs = [run.text for reference in d.references for run in reference.runs]
    quotes = (*d.sides, *d.closest, *(reference.quote for reference in d.references))
    texts = (d.question, d.verdict, *d.exact, *d.paragraph, *quotes, *runs, *d.notes)
    known = pdf.fonts[FONT.lower()].cmap
    return any(ord(c) not in known for text in texts for c in text)


def _heading(pdf: Any, text: str, size: int) -> None:
    pdf.ln(2)
    pdf.set_font(FONT, "B", size)
    pdf.multi_cell(0, size * 0.5, text, align="L", new_x="LMARGIN", new_y="NEXT")
    pdf.ln(1)


def _hanging(
    pdf: Any, mark: str, runs: tuple[Run, ...], links: tuple[tuple[str, str], ...] = ()
) -> None:
    """Write a hanging paragraph: `mark` at the left margin, and the text indented."""
    pdf.set_font(FONT, "", 10)
    pdf.write(5, mark)
    pdf.set_left_margin(_MARGIN + _INDENT)
    pdf.set_x(_MARGIN + _INDENT)
    _line(pdf, runs, links)
    pdf.set_left_margin(_MARGIN)
    pdf.set_x(_MARGIN)


def _line(pdf: Any, runs: tuple[Run, ...], links: tuple[tuple[str, str], ...] = ()) -> None:
    for run in runs:
        pdf.set_font(FONT, "B" * run.bold + "I" * run.italic, 10)
        pdf.write(5, run.text)
    for name, address in links:
        pdf.set_text_color(0)
        pdf.set_font(FONT, "", 10)
        pdf.write(5, " ")
        pdf.set_font(FONT, "U", 10)
        pdf.set_text_color(*_LINK_COLOUR)
        pdf.write(5, name, link=address)
    pdf.set_text_color(0)
    pdf.set_font(FONT, "", 10)
    pdf.ln(6)
