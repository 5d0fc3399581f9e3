"""CiteRay: cited answers to biomedical questions from PubMed.

    from citeray import CiteRay

    with CiteRay("http://127.0.0.1:8000") as client:
        answer = client.answer("Does metformin activate AMPK?")

The client needs neither Ray nor torch. This package is installed under the name `citeray`; in the
wheel it contains all other packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cluster.answers import (
        Answer,
        Evidence,
        ExactAnswer,
        RankedCitation,
        SearchResult,
        Sentence,
    )
    from cluster.records import Citation, Passage
    from serve.client.call_endpoint import BadRequestError, EndpointError
    from serve.client.python_client import CiteRay, StyledReference
    from serve.contracts.answer_events import (
        Drafted,
        Event,
        Finished,
        Found,
        PartAnswered,
        StageDone,
    )

__all__ = [
    "Answer",
    "BadRequestError",
    "Citation",
    "CiteRay",
    "Drafted",
    "EndpointError",
    "Event",
    "Evidence",
    "ExactAnswer",
    "Finished",
    "Found",
    "PartAnswered",
    "Passage",
    "RankedCitation",
    "SearchResult",
    "Sentence",
    "StageDone",
    "StyledReference",
]


def __getattr__(name: str) -> Any:
    """Import a name of __all__ on first access; the command line does not need them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import cluster.answers as answers
    import cluster.records as records
    import serve.client.call_endpoint as endpoint
    import serve.client.python_client as client
    import serve.contracts.answer_events as events

    held = next(m for m in (client, endpoint, events, answers, records) if hasattr(m, name))
    return getattr(held, name)


def main() -> None:
    """Run the `citeray` command."""
    from commands.cli import main as run

    run()
