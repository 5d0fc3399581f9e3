"""Write an answer as a DOCX document, with python-docx."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from docx import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Cm, RGBColor

from serve.references.documents.number_answer import AnswerDocument, Reference
from serve.references.marked_text import Run

_INDENT = Cm(1)
_LINK_COLOUR = RGBColor(0x05, 0x63, 0xC1)
# Maximum length of a core property (ECMA-376 part 2).
_PROPERTY_CHARACTERS = 255


def write_docx(document: AnswerDocument) -> bytes:
    """Return the content of the DOCX file."""
    return write_docx_of([document], document.question)


def write_docx_of(documents: Sequence[AnswerDocument], title: str) -> bytes:
    """Return the content of a DOCX file with one or more answers, which end with one disclaimer."""
    file = Document()
    file.core_properties.title = title[:_PROPERTY_CHARACTERS]
    file.core_properties.author = "CiteRay"
    file.core_properties.comments = ""
    for document in documents:
        _add_answer(file, document)
    file.add_paragraph().add_run(documents[-1].disclaimer).italic = True
    out = io.BytesIO()
    file.save(out)
    return out.getvalue()


def _add_answer(file: Any, d: AnswerDocument) -> None:
    file.add_heading(d.question, level=1)
    verdict = file.add_paragraph()
    verdict.add_run("Verdict: ").bold = True
    verdict.add_run(d.verdict)
    for heading, texts, listed in d.sections():
        file.add_heading(heading, level=2)
        for text in texts:
            file.add_paragraph(text, style="List Bullet" if listed else None)
    if d.references:
        file.add_heading(d.listed, level=2)
    for reference in d.references:
        _add_reference(file, reference)
    for note in d.notes:
        file.add_paragraph(note)


def _add_reference(file: Any, reference: Reference) -> None:
    paragraph = file.add_paragraph()
    paragraph.paragraph_format.left_indent = _INDENT
    paragraph.paragraph_format.first_line_indent = -_INDENT
    paragraph.paragraph_format.tab_stops.add_tab_stop(_INDENT)
    paragraph.add_run(f"[{reference.number}]\t")
    for run in reference.runs:
        _add_run(paragraph, run)
    for name, address in reference.links:
        paragraph.add_run(" ")
        _add_link(paragraph, name, address)
    if reference.basis:
        paragraph.add_run().add_break()
        paragraph.add_run(reference.basis)


def _add_run(paragraph: Any, run: Run) -> None:
    added = paragraph.add_run(run.text)
    added.italic, added.bold = run.italic or None, run.bold or None


def _add_link(paragraph: Any, name: str, address: str) -> None:
    """Append a hyperlink, for which python-docx has no method."""
    related = paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    link = OxmlElement("w:hyperlink")
    link.set(qn("r:id"), related)
    run = paragraph.add_run(name)
    run.font.color.rgb, run.font.underline = _LINK_COLOUR, True
    link.append(run._r)
    paragraph._p.append(link)
