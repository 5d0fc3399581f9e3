"""Print answers and search results on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from cluster.answers import Answer, Sentence
from cluster.study_design.design_classifier import design_words
from serve.client.open_client import as_answer
from serve.wording.appraisal_words import notice_lines, weight_lines
from serve.wording.interpretation_words import understood_words
from serve.wording.verdict_words import (
    CLOSEST,
    NEAREST,
    UNSUPPORTED,
    closest_words,
    nearest_words,
    side_words,
    verdict_words,
)

Reply = Mapping[str, Any]


def _exact(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "; ".join(" / ".join(names) for names in value)


def _timings(reply: Reply) -> str:
    return ", ".join(f"{stage} {ms:.0f} ms" for stage, ms in reply["timings_ms"].items())


def _print_steps(console: Console, reply: Reply) -> None:
    """Print the names recognised in the question, and the number of citations after each step."""
    if reply["entities"]:
        named = "; ".join(dict.fromkeys(entity["text"] for entity in reply["entities"]))
        console.print(f"recognised: {named}", style="dim", soft_wrap=True)
    # Older stored answers lack this field.
    if candidates := reply.get("candidates"):
        steps = ", ".join(f"{step} {count}" for step, count in candidates.items())
        console.print(f"citations by step: {steps}", style="dim", soft_wrap=True)


def _print_understood(console: Console, reply: Reply) -> None:
    """Print how the question was interpreted, if that differs from its text."""
    for line in understood_words(reply.get("understood"), reply.get("did_you_mean")):
        console.print(line, style="yellow", soft_wrap=True)


def _footer(console: Console, reply: Reply) -> None:
    if reply["degraded"]:
        console.print(f"degraded: {'; '.join(reply['degraded'])}", style="yellow")
    _print_steps(console, reply)
    console.print(
        f"index {reply['index_version']} to {reply['last_source']}, "
        f"coverage {reply['coverage']}, "
        f"system {reply['system']}; {_timings(reply)}",
        style="dim",
        soft_wrap=True,
    )


def print_answer(console: Console, reply: Reply) -> None:
    """Print the exact answer, each sentence with its PMIDs, and the evidence.

    A verdict other than `answered` is printed first.
    """
    answer = as_answer(reply)
    if verdict := verdict_words(answer):
        console.print(verdict, style="bold yellow", soft_wrap=True)
    question = reply["question"]
    title = Text.assemble((question["body"], "bold"), f" ({question['type']})")
    console.print(title, soft_wrap=True)
    _print_understood(console, reply)
    if reply["exact"] and not (verdict and isinstance(reply["exact"], str)):
        console.print(f"  exact: {_exact(reply['exact'])}", soft_wrap=True)
    for sentence in answer.ideal:
        console.print(_sentence("  ", sentence), soft_wrap=True)
    for sentence in answer.supported:
        console.print(_sentence("  because: ", sentence), soft_wrap=True)
    for line in [*answer.caveats, *notice_lines(answer)]:
        console.print(f"  {line}", style="yellow", soft_wrap=True)
    if closest := closest_words(answer):
        console.print(f"  {CLOSEST}")
    for line in closest:
        console.print(f"  {line}", soft_wrap=True)
    if nearest := nearest_words(answer):
        console.print(f"  {NEAREST}")
    for line in [*nearest, *side_words(answer)]:
        console.print(f"  {line}", soft_wrap=True)
    _print_evidence(console, answer)
    for line in weight_lines(answer):
        console.print(f"  {line}", style="dim", soft_wrap=True)
    if reply["ideal"]:
        console.print(f"  written by: {reply['origin']}", style="dim")
    if answer.shown is not None and len(answer.shown) < len(answer.evidence):
        counts = f"{len(answer.shown)} of {len(answer.evidence)}"
        console.print(f"  the model was shown {counts} passages", style="dim")
    _footer(console, reply)


def _sentence(prefix: str, sentence: Sentence) -> Text:
    """Return the sentence with the PMIDs for and against it, or marked as unsupported."""
    line = Text(prefix + sentence.text)
    if sentence.unsupported:
        line.append(f" ({UNSUPPORTED})", style="red")
    if sentence.pmids:
        line.append(f" [{', '.join(map(str, sentence.pmids))}]", style="cyan")
    if sentence.contradicted:
        against = ", ".join(map(str, sentence.contradicted))
        line.append(f" contradicted by [{against}]", style="red")
    return line


def _print_evidence(console: Console, answer: Answer) -> None:
    """Print the passages that the answer cites, and those that contradict it."""
    cited = {pmid for sentence in answer.ideal for pmid in sentence.pmids}
    against = {pmid for sentence in answer.ideal for pmid in sentence.contradicted}
    for item in answer.evidence:
        passage = item.passage
        if passage.pmid in cited | against:
            sign = "" if passage.pmid in cited else "against: "
            place = f"PMID {passage.pmid} {passage.section} {passage.begin}-{passage.end}"
            design = design_words(item.design, item.subjects)
            about = f" ({design})" if design else ""
            line = f"    {sign}{place}{about}: {passage.text[:160]}..."
            console.print(line, style="dim", soft_wrap=True)


def print_search(console: Console, reply: Reply) -> None:
    """Print ranked citations, each with its best passage."""
    _print_understood(console, reply)
    if reply.get("filtered_out"):
        console.print(reply["filtered_out"], style="bold yellow", soft_wrap=True)
    passages = {e["passage"]["pmid"]: e["passage"] for e in reply["evidence"]}
    for rank, citation in enumerate(reply["citations"], 1):
        design = design_words(citation["design"], tuple(citation["subjects"]))
        known = [str(citation["year"] or ""), design]
        about = f" ({', '.join(filter(None, known))})" if any(known) else ""
        line = Text.assemble(
            f"{rank:3}. ",
            (str(citation["pmid"]), "cyan"),
            f" {citation['score']:.3f} {citation['title'] or 'no title'}{about}",
        )
        if citation["retracted"]:
            line.append(" RETRACTED", style="red")
        console.print(line, soft_wrap=True)
        if citation["notice"]:
            console.print(f"     {citation['notice']}", style="red", soft_wrap=True)
        if citation["pmid"] in passages:
            text = passages[citation["pmid"]]["text"][:200]
            console.print(f"     {text}", style="dim", soft_wrap=True)
    _footer(console, reply)
