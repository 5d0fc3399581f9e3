"""Print answers and search results on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Any

from rich.console import Console
from rich.text import Text

from cluster.answers import NOT_ENOUGH, Answer, Evidence, Sentence
from cluster.study_design.design_classifier import design_words
from serve.client.open_client import as_answer
from serve.wording.appraisal_words import notice_lines, traced_words, weight_lines
from serve.wording.interpretation_words import understood_words
from serve.wording.verdict_words import (
    CLOSEST,
    NEAREST,
    UNSUPPORTED,
    about_words,
    closest_words,
    exact_words,
    nearest_words,
    origin_words,
    side_words,
    verdict_words,
)

Reply = Mapping[str, Any]
# A line break needs room for at least a few words.
MIN_WIDTH = 20
SHOWN_CHARACTERS = 200
LACKING = "Best guess, which the evidence does not support well enough:"
FURTHER = "Names that may be right:"


def _print(
    console: Console, line: str | Text, indent: int = 0, style: str = "", hang: int = 0
) -> None:
    """Print `line`, wrapped at words to the width of the console.

    Each line is indented by `indent` columns, and each but the first by `hang` more.
    """
    text = Text(line) if isinstance(line, str) else line
    text.stylize(style)
    for part in text.wrap(console, max(console.width - indent - hang, MIN_WIDTH)):
        part.rstrip()
        console.print(Text(" " * indent).append_text(part), soft_wrap=True)
        indent, hang = indent + hang, 0


def _timings(reply: Reply) -> str:
    return ", ".join(f"{stage} {ms:.0f} ms" for stage, ms in reply["timings_ms"].items())


def _print_details(console: Console, reply: Reply) -> None:
    """Print recognised names, citations after each step, versions and timings."""
    if reply["entities"]:
        named = "; ".join(dict.fromkeys(entity["text"] for entity in reply["entities"]))
        _print(console, f"recognised: {named}", style="dim")
    # Older stored answers lack this field.
    if candidates := reply.get("candidates"):
        steps = ", ".join(f"{step} {count}" for step, count in candidates.items())
        _print(console, f"citations by step: {steps}", style="dim")
    version = f"index {reply['index_version']} to {reply['last_source']}"
    where = f"coverage {reply['coverage']}, system {reply['system']}"
    _print(console, f"{version}, {where}; {_timings(reply)}", style="dim")


def _print_understood(console: Console, reply: Reply) -> None:
    """Print how the question was interpreted, if that differs from its text."""
    for line in understood_words(reply.get("understood"), reply.get("did_you_mean")):
        _print(console, line, style="yellow")


def _print_footer(console: Console, reply: Reply, *, details: bool) -> None:
    if reply["degraded"]:
        _print(console, f"degraded: {'; '.join(reply['degraded'])}", style="yellow")
    if details:
        _print_details(console, reply)


def print_answer(console: Console, reply: Reply, *, details: bool = False) -> None:
    """Print the exact answer, each sentence with its PMIDs, and the sources.

    A verdict other than `answered` is printed first. The parts of a question follow each other.
    With `details`, also print passages with their offsets, the steps of the search, versions and
    timings.
    """
    answer = as_answer(reply)
    if answer.parts:
        _print_understood(console, reply)
        for part in reply["parts"]:
            print_answer(console, part, details=details)
        _print_stored(console, answer)
        return
    verdict = verdict_words(answer)
    if verdict:
        _print(console, verdict, style="bold yellow")
    question = answer.question
    _print(console, Text.assemble((question.body, "bold"), f" ({question.type})"))
    _print_understood(console, reply)
    if answer.exact and not (verdict and isinstance(answer.exact, str)):
        _print(console, f"Answer: {exact_words(answer.exact)}", 2)
    _print_sentences(console, answer)
    for line in [*answer.caveats, *notice_lines(answer)]:
        _print(console, line, 2, "yellow")
    _print_without_answer(console, answer)
    _print_sources(console, answer, details=details)
    for line in weight_lines(answer):
        _print(console, line, 2, "dim")
    if answer.ideal and (origin := origin_words(answer)):
        _print(console, origin, 2, "dim")
    if details and answer.shown is not None and len(answer.shown) < len(answer.evidence):
        counts = f"{len(answer.shown)} of {len(answer.evidence)}"
        _print(console, f"the model was shown {counts} passages", 2, "dim")
    _print_stored(console, answer)
    _print_footer(console, reply, details=details)


def _print_stored(console: Console, answer: Answer) -> None:
    if answer.answer_id:
        _print(console, f"stored as {answer.answer_id}", 2)


def _print_sentences(console: Console, answer: Answer) -> None:
    for sentence in answer.ideal:
        _print(console, _sentence("", sentence), 2)
    for sentence in answer.supported:
        _print(console, _sentence("because: ", sentence), 2)


def _print_without_answer(console: Console, answer: Answer) -> None:
    """Print the best guess if there is one, the closest evidence, and both sides of a question."""
    stated = answer.verdict != NOT_ENOUGH
    guess = answer.guess
    if guess and (guess.exact or (guess.ideal and not stated)):
        _print(console, FURTHER if stated else LACKING, 2)
        if guess.exact:
            _print(console, exact_words(guess.exact), 4)
        for sentence in () if stated else guess.ideal:
            _print(console, _sentence("", sentence), 4)
    for title, lines in ((CLOSEST, closest_words(answer)), (NEAREST, nearest_words(answer))):
        if lines:
            _print(console, title, 2)
        for line in lines:
            _print(console, line, 2, hang=2)
    for line in side_words(answer):
        _print(console, line, 2, hang=2)


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


def _print_sources(console: Console, answer: Answer, *, details: bool) -> None:
    """Print the articles that the answer cites, and those that contradict it.

    With `details`, each article is followed by its passages.
    """
    cited = {pmid for sentence in answer.ideal for pmid in sentence.pmids}
    against = {pmid for sentence in answer.ideal for pmid in sentence.contradicted}
    passages: dict[int, list[Evidence]] = {}
    for item in answer.evidence:
        passages.setdefault(item.passage.pmid, []).append(item)
    sources = {pmid: found for pmid, found in passages.items() if pmid in cited | against}
    if sources:
        _print(console, "Sources:", 2)
    for pmid, found in sources.items():
        sign = "" if pmid in cited else "against: "
        title = " ".join(found[0].title.split()) or "no title"
        origin = f" [{words}]" if (words := traced_words(answer.ideal, pmid)) else ""
        _print(console, f"{sign}PMID {pmid}{about_words(found[0])}: {title}{origin}", 2, hang=2)
        for passage in (item.passage for item in found if details):
            where = f"{passage.section} {passage.begin}-{passage.end}"
            text = shorten(passage.text, SHOWN_CHARACTERS, placeholder="...")
            _print(console, f"{where}: {text}", 4, "dim")


def print_search(console: Console, reply: Reply, *, details: bool = False) -> None:
    """Print ranked citations, each with its best passage.

    With `details`, also print scores, the steps of the search, versions and timings.
    """
    _print_understood(console, reply)
    if reply.get("filtered_out"):
        _print(console, reply["filtered_out"], style="bold yellow")
    passages = {e["passage"]["pmid"]: e["passage"] for e in reply["evidence"]}
    for rank, citation in enumerate(reply["citations"], 1):
        _print(console, _ranked(rank, citation, details=details), hang=5)
        if citation["notice"]:
            _print(console, citation["notice"], 5, "red")
        if citation["pmid"] in passages:
            text = passages[citation["pmid"]]["text"]
            _print(console, shorten(text, SHOWN_CHARACTERS, placeholder="..."), 5, "dim")
    _print_footer(console, reply, details=details)


def print_boolean(console: Console, reply: Reply) -> None:
    """Print the number of citations that match a Boolean query, and the newest ones."""
    articles = "1 article matches" if reply["total"] == 1 else f"{reply['total']:,} articles match"
    _print(console, f"{articles} {reply['query']}", style="bold")
    for note in reply["notes"]:
        _print(console, f"Note: {note}.", style="yellow")
    for loss in reply["degraded"]:
        _print(console, f"Incomplete: {loss}", style="bold yellow")
    for rank, citation in enumerate(reply["citations"], reply["offset"] + 1):
        _print(console, _ranked(rank, citation, details=False), hang=5)
        if citation["notice"]:
            _print(console, citation["notice"], 5, "red")
    version = f"index {reply['index_version']} of {reply['index_date']} to {reply['last_source']}"
    _print(console, f"{version}, coverage {reply['coverage']}", style="dim")


def _ranked(rank: int, citation: Mapping[str, Any], *, details: bool) -> Text:
    """Return rank, PMID, title, journal, year and design of a citation in one line."""
    design = design_words(citation["design"], tuple(citation["subjects"]))
    # Endpoints of an earlier version do not send the journal.
    known = [citation.get("journal", ""), str(citation["year"] or ""), design]
    about = f" ({', '.join(filter(None, known))})" if any(known) else ""
    score = f" {citation['score']:.3f}" if details else ""
    line = Text.assemble(
        f"{rank:3}. ",
        (str(citation["pmid"]), "cyan"),
        f"{score} {citation['title'] or 'no title'}{about}",
    )
    if citation.get("retracted"):
        line.append(" RETRACTED", style="red")
    return line
