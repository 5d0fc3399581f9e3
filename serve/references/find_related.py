"""Search for citations related to a given one."""

from __future__ import annotations

from cluster.answers import Question
from cluster.errors import InputError
from cluster.records import Citation
from cluster.settings.system_settings import SystemSettings
from serve.contracts.request import Request
from serve.references.describe_citation import one_line, title_text

# Length of the abstract in a search. Its beginning states the topic; longer text is slower.
ABSTRACT_CHARACTERS = 500
QUESTION_CHARACTERS = 2000


def related_request(citation: Citation, system: SystemSettings, limit: int) -> Request:
    """Return a search by the title and the beginning of the abstract that excludes the citation.

    Raises InputError if the citation has neither title nor abstract.
    """
    abstract = one_line(citation.abstract)
    if len(abstract) > ABSTRACT_CHARACTERS:
        abstract = abstract[:ABSTRACT_CHARACTERS].rsplit(" ", 1)[0]
    words = " ".join(part for part in (title_text(citation), abstract) if part)
    if not words:
        raise InputError(
            f"PMID {citation.pmid} has neither title nor abstract; choose another article"
        )
    question = Question("", words[:QUESTION_CHARACTERS], "summary", exclude=(citation.pmid,))
    return Request(question, system, limit)
