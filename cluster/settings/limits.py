"""Limits of the service that depend on each other, in one place.

They follow the path of a question: the gateways admit enough questions to keep the writer's
language model busy, each deployment's autoscaling target is a number of requests that it can get,
and a replica that is stopped finishes the questions that it has. An explicit setting has
precedence over the derived value; `limit_problems` reports explicit settings that contradict the
others.
"""

from __future__ import annotations

import math

from cluster.settings.settings import Settings
from cluster.settings.stages.serving import StageSettings

# The stages of a question, by their names in `ServeSettings`.
STAGES = ("gateway", "expander", "encoder", "shard", "reranker", "writer", "llm")


def model_slots(settings: Settings) -> tuple[int, int]:
    """Return the concurrent requests of the language model with the fewest and most replicas."""
    llm, stage = settings.llm, settings.serve.llm
    replicas = (stage.min_replicas, stage.max_replicas) if llm.kind == "vllm" else (1, 1)
    return llm.max_concurrent * replicas[0], llm.max_concurrent * replicas[1]


def questions_at_once(settings: Settings) -> int:
    """Return the number of questions that a gateway processes at a time.

    By default the gateways together process as many as the language model has slots.
    """
    chosen = settings.serve.http.at_once
    if chosen != "auto":
        return chosen
    few, most = model_slots(settings)
    gateway = settings.serve.gateway
    return math.ceil(max(few / gateway.min_replicas, most / gateway.max_replicas))


def most_questions(settings: Settings) -> int:
    """Return the number of questions that all gateways process at a time."""
    return settings.serve.gateway.max_replicas * questions_at_once(settings)


def target_ongoing(settings: Settings, name: str) -> int:
    """Return the ongoing requests per replica from which the stage `name` gets more replicas.

    By default three quarters of a gateway's questions, so that the next gateway starts before
    questions wait; the language model's slots; and half of the requests of another stage, but at
    most its share of all questions, so that all of its replicas can be reached.
    """
    stage: StageSettings = getattr(settings.serve, name)
    if stage.target_ongoing is not None:
        return stage.target_ongoing
    if name == "gateway":
        return math.ceil(0.75 * questions_at_once(settings))
    if name == "llm":
        return settings.llm.max_concurrent
    share = most_questions(settings) // stage.max_replicas
    return max(min(stage.max_ongoing // 2, share), 1)


def longest_request_s(settings: Settings) -> float:
    """Return the seconds after which every request has ended, including its wait for admission."""
    serve = settings.serve
    deadlines: list[float] = [getattr(serve, name).deadline_s for name in STAGES]
    deadlines += [role.stage.deadline_s for role in settings.models.roles().values() if role.stage]
    return serve.http.wait_s + max(serve.request_deadline_s, *deadlines)


def shutdown_s(settings: Settings) -> float:
    """Return the seconds that a stopping replica, and the whole service, wait for questions."""
    chosen = settings.serve.drain_s
    return longest_request_s(settings) if chosen == "auto" else chosen


def limit_problems(settings: Settings) -> list[str]:
    """Return a sentence for each limit that does not fit the others."""
    serve, llm = settings.serve, settings.llm
    each, gateway = questions_at_once(settings), serve.gateway
    admitted = each + serve.http.waiting
    found = []
    for bound, slots in zip(("min", "max"), model_slots(settings), strict=True):
        gateways, writers = (getattr(s, f"{bound}_replicas") for s in (gateway, serve.writer))
        what = f"the language model answers {slots} requests at a time ({bound}_replicas)"
        if gateways * each < slots:
            found.append(
                f"{what}, but {gateways} gateways process {gateways * each} questions: raise "
                "serve.http.at_once or serve.gateway"
            )
        if writers * serve.writer.max_ongoing < slots:
            found.append(
                f"{what}, but {writers} writers process {writers * serve.writer.max_ongoing}: "
                "raise serve.writer.max_ongoing"
            )
    if admitted > gateway.max_ongoing:
        found.append(
            f"serve.gateway.max_ongoing {gateway.max_ongoing} is less than the {admitted} "
            "questions that a gateway admits (serve.http.at_once + waiting)"
        )
    if llm.kind == "vllm" and serve.llm.max_ongoing < llm.max_concurrent:
        found.append(
            f"serve.llm.max_ongoing {serve.llm.max_ongoing} is less than llm.max_concurrent "
            f"{llm.max_concurrent}"
        )
    found += _target_problems(settings, admitted)
    if shutdown_s(settings) < (longest := longest_request_s(settings)):
        found.append(
            f"serve.drain_s {shutdown_s(settings):g}: a stopping replica would cut off questions, "
            f"which take up to {longest:g} s (the longest deadline + serve.http.wait_s)"
        )
    return found


def _target_problems(settings: Settings, admitted: int) -> list[str]:
    """Return a sentence for each autoscaled stage whose last replica is never added."""
    found = []
    for name in STAGES:
        stage: StageSettings = getattr(settings.serve, name)
        if stage.max_replicas <= stage.min_replicas:
            continue
        target = target_ongoing(settings, name)
        # The last replica is added once the others have more requests than their targets.
        others = stage.max_replicas - 1
        most = admitted if name == "gateway" else most_questions(settings) / others
        if target >= most:
            found.append(
                f"serve.{name}: its autoscaling target of {target} requests per replica is never "
                f"exceeded by {others} replicas, because the gateways admit at most {most:g} for "
                "each"
            )
    return found
