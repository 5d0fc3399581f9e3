"""Write an answer as a Markdown (CommonMark) document."""

from __future__ import annotations

from serve.references.documents.number_answer import AnswerDocument, Reference
from serve.references.marked_text import escape_markdown, markdown


def write_markdown(document: AnswerDocument) -> bytes:
    """Return the document in UTF-8. Markup in its texts is escaped."""
    d = document
    parts = [f"# {escape_markdown(d.question)}", f"**Verdict:** {escape_markdown(d.verdict)}"]
    if d.exact:
        parts += ["## Exact answer", "\n".join(f"- {escape_markdown(item)}" for item in d.exact)]
    if d.paragraph:
        parts += ["## Answer", " ".join(map(escape_markdown, d.paragraph))]
    if d.sides:
        parts += ["## Both sides", "\n".join(f"- {escape_markdown(side)}" for side in d.sides)]
    if d.references:
        parts += [f"## {d.listed}", *map(_reference, d.references)]
    parts += ["---", *map(escape_markdown, d.notes), f"*{d.disclaimer}*"]
    return ("\n\n".join(parts) + "\n").encode()


def _reference(reference: Reference) -> str:
    links = " ".join(f"[{name}](<{address}>)" for name, address in reference.links)
    return f"\\[{reference.number}\\] {markdown(reference.runs)} {links}"
