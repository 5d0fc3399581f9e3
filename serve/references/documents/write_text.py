"""Write an answer as Markdown, as plain text for the clipboard, and as JSON for the page."""

from __future__ import annotations

from pydantic import TypeAdapter

from serve.references.documents.number_answer import AnswerDocument, Reference
from serve.references.marked_text import escape_markdown, markdown, plain

_DOCUMENT = TypeAdapter(AnswerDocument)


def write_markdown(document: AnswerDocument) -> bytes:
    """Return the document as CommonMark in UTF-8. Markup in its texts is escaped."""
    d = document
    parts = [f"# {escape_markdown(d.question)}", f"**Verdict:** {escape_markdown(d.verdict)}"]
    for heading, texts, listed in d.sections():
        mark = "- " if listed else ""
        parts += [f"## {heading}", "\n".join(mark + escape_markdown(text) for text in texts)]
    if d.references:
        parts += [f"## {d.listed}", *map(_markdown_reference, d.references)]
    parts += ["---", *map(escape_markdown, d.notes), f"*{d.disclaimer}*"]
    return ("\n\n".join(parts) + "\n").encode()


def _markdown_reference(reference: Reference) -> str:
    links = " ".join(f"[{name}](<{address}>)" for name, address in reference.links)
    basis = f"\\\n{escape_markdown(reference.basis)}" if reference.basis else ""
    return f"\\[{reference.number}\\] {markdown(reference.runs)} {links}{basis}"


def write_text(document: AnswerDocument) -> bytes:
    """Return the document as plain text in UTF-8."""
    d = document
    parts = [d.question, f"Verdict: {d.verdict}"]
    for heading, texts, listed in d.sections():
        mark = "- " if listed else ""
        parts.append("\n".join([heading, *(mark + text for text in texts)]))
    if d.references:
        parts.append("\n".join([d.listed, *map(_plain_reference, d.references)]))
    parts.append("\n".join([*d.notes, d.disclaimer]))
    return "\n\n".join(parts).encode()


def _plain_reference(reference: Reference) -> str:
    links = " ".join(address for _, address in reference.links)
    basis = f"\n    {reference.basis}" if reference.basis else ""
    return f"[{reference.number}] {plain(reference.runs)} {links}{basis}"


def write_json(document: AnswerDocument) -> bytes:
    """Return the fields of the document as JSON in UTF-8."""
    return _DOCUMENT.dump_json(document)
