"""The search for citations like a given one."""

from __future__ import annotations

from cluster.answers import Question
from cluster.errors import InputError
from cluster.records import Citation
from cluster.settings.system_settings import SystemSettings
from serve.references.describe_citation import one_line, title_text
from serve.request import Request

# Of an abstract, whose first sentences tell what it is about; a longer question is slower.
ABSTRACT_CHARACTERS = 500
QUESTION_CHARACTERS = 2000


def related_request(citation: Citation, system: SystemSettings, limit: int) -> Request:
    """The search by title and the beginning of the abstract, without the citation itself.

    Raises InputError where it has neither.
    """
    abstract = one_line(citation.abstract)
    if len(abstract) > ABSTRACT_CHARACTERS:
        abstract = abstract[:ABSTRACT_CHARACTERS].rsplit(" ", 1)[0]
    words = " ".join(part for part in (title_text(citation), abstract) if part)
    if not words:
        raise InputError(
            f"PMID {citation.pmid} has neither title nor abstract; ask for one that has"
        )
    question = Question("", words[:QUESTION_CHARACTERS], "summary", exclude=(citation.pmid,))
    return Request(question, system, limit)
