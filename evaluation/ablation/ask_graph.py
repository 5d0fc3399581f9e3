"""Ask questions for an ablation, through a running endpoint or a graph in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace

from pydantic import TypeAdapter
from rich.console import Console

from cluster.answers import Question, SearchResult
from cluster.settings.settings import Settings
from cluster.settings.system_settings import SystemSettings
from evaluation.ablation.oracle import ORACLES, GoldEvidence, material, rerank_only
from evaluation.bioasq.read_bioasq import Entry
from serve.answer.ask_model import asks_model
from serve.client.local_client import OwnLoop, local_client
from serve.client.open_client import (
    Client,
    as_answer,
    endpoint_url,
    running_client,
)
from serve.contracts.backend import Backend
from serve.contracts.request import Request
from serve.llm.model_roles import NO_MODELS
from serve.pipeline.answer_question import QuestionAnswerer
from serve.search.choose_snippets import whole_passages

_SEARCH = TypeAdapter(SearchResult)


@dataclass(frozen=True, slots=True)
class Plan:
    """One run of a system. `oracle` is a stage replaced by gold, `evidence` a number of passages.

    `k` citations are ranked. Without `answers`, only documents and snippets are requested. `own`
    marks a system that is not one of the shipped presets.
    """

    system: SystemSettings
    k: int
    answers: bool
    oracle: str | None = None
    evidence: int | None = None
    own: bool = False

    @property
    def name(self) -> str:
        """Return the system's name, with evidence and oracle if set: "citeray.evidence-5"."""
        parts = [self.system.name]
        parts += [f"evidence-{self.evidence}"] if self.evidence else []
        parts += [f"oracle-{self.oracle}"] if self.oracle else []
        return ".".join(parts)

    @property
    def is_plain(self) -> bool:
        """Whether the system runs without changes."""
        return self.oracle is None and self.evidence is None

    @property
    def has_a_name(self) -> bool:
        """Whether an endpoint can run it; endpoints know presets only by name."""
        return self.is_plain and not self.own


Found = SearchResult
Ask = Callable[[Question, Plan], Found]


def ask_client(client: Client, question: Question, plan: Plan) -> Found:
    """Ask `client` the question; the plan must be an unchanged preset."""
    request = {
        "id": question.id,
        "question": question.body,
        "type": question.type,
        "system": plan.system.name,
        "k": plan.k,
        "snippets": True,
    }
    if plan.answers:
        return as_answer(client.answer(request | {"guess": True}))
    return _SEARCH.validate_python(client.search(request))


async def ask_backend(
    backend: Backend,
    settings: Settings,
    gold: Mapping[str, Entry],
    question: Question,
    plan: Plan,
) -> Found:
    """Ask the graph over `backend` with any plan. `gold` maps question ids to gold entries."""
    system = plan.system
    if plan.evidence is not None:
        system = system.model_copy(update={"evidence": plan.evidence})
    oracle = None
    if plan.oracle is not None:
        known = material(gold[question.id])
        oracle = ORACLES[plan.oracle](backend, known)
    if plan.oracle == "rerank":
        system = rerank_only(system)
    answerer = QuestionAnswerer(oracle or backend, settings.serve, settings.llm.evidence_characters)
    asked = Request(question, system, plan.k, snippets=True)
    if plan.answers:
        # Answers are scored in BioASQ's form, which requires a choice.
        asked = replace(asked, question=replace(question, guess=True))
        found: Found = await answerer.answer(asked)
    else:
        found = await answerer.search(asked)
    if isinstance(oracle, GoldEvidence) and not system.snippet_sentences:
        # Whole passages become snippets without a stage call that the oracle could intercept.
        found = replace(found, snippets=tuple(whole_passages(await oracle.evidence())))
    return found


@contextmanager
def open_graph(
    settings: Settings,
    plans: Sequence[Plan],
    gold: Mapping[str, Entry],
    log: Console,
) -> Iterator[Ask]:
    """Connect to the running endpoint if there is one and all plans are unchanged presets.

    Otherwise start the graph in this process, with the settings' language models if they are used;
    raises the errors of `served_models`.
    """
    model = any(asks_model(settings, plan.system, answers=plan.answers) for plan in plans)
    if all(plan.has_a_name for plan in plans):
        client: Client | None = running_client(settings)
        if client is None:
            log.print(f"no endpoint at {endpoint_url(settings)}; loading the graph here")
            client = local_client(settings, log, model=model)
        with client:
            yield lambda question, plan: ask_client(client, question, plan)
        return
    log.print(
        "oracles, answers from k passages and presets of your own run in this process; loading "
        "the graph here"
    )
    from serve.client.run_graph import served_models
    from serve.graph.local_graph import local_backend

    with served_models(settings) if model else nullcontext(NO_MODELS) as models:
        backend = local_backend(settings, models)
        with closing(OwnLoop()) as loop:
            yield lambda question, plan: loop.run(
                ask_backend(backend, settings, gold, question, plan)
            )
