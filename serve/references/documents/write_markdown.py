"""Write an answer as a Markdown (CommonMark) document."""

from __future__ import annotations

from serve.references.documents.number_answer import AnswerDocument, Reference
from serve.references.marked_text import escape_markdown, markdown


def write_markdown(document: AnswerDocument) -> bytes:
    """Return the document in UTF-8. Markup in its texts is escaped."""
    d = document
    parts = [f"# {escape_markdown(d.question)}", f"**Verdict:** {escape_markdown(d.verdict)}"]
    for heading, texts, listed in d.sections():
        mark = "- " if listed else ""
        parts += [f"## {heading}", "\n".join(mark + escape_markdown(text) for text in texts)]
    if d.references:
        parts += [f"## {d.listed}", *map(_reference, d.references)]
    parts += ["---", *map(escape_markdown, d.notes), f"*{d.disclaimer}*"]
    return ("\n\n".join(parts) + "\n").encode()


def _reference(reference: Reference) -> str:
    links = " ".join(f"[{name}](<{address}>)" for name, address in reference.links)
    basis = f"\\\n{escape_markdown(reference.basis)}" if reference.basis else ""
    return f"\\[{reference.number}\\] {markdown(reference.runs)} {links}{basis}"
