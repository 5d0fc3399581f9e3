"""Compare two answers to the same question, as data and in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cluster.answers import Answer, Sentence
from cluster.problem_words import problem_words
from cluster.study_design.designs import Design
from serve.saved.saved_error import UnreadableAnswerError
from serve.wording.verdict_words import exact_words

ANSWER = TypeAdapter(Answer)


@dataclass(frozen=True, slots=True)
class Cited:
    """PMID, title, year and design of a citation; defaults if the answer does not have them."""

    pmid: int
    title: str = ""
    year: int | None = None
    design: Design = "other"


@dataclass(frozen=True, slots=True)
class Change:
    """Old and new value of a part of the answer."""

    before: str
    now: str


@dataclass(frozen=True, slots=True)
class AnswerDiff:
    """Differences between two answers; None and () for unchanged parts.

    A citation supports an answer if a sentence cites it or if its evidence has the stance
    "support". It contradicts the answer if a sentence lists it as contradicting or if its evidence
    has the stance "contradict". A citation that does both counts as contradicting.
    """

    verdict: Change | None = None
    exact: Change | None = None
    text: Change | None = None
    supporting_added: tuple[Cited, ...] = ()
    supporting_removed: tuple[Cited, ...] = ()
    contradicting_added: tuple[Cited, ...] = ()
    contradicting_removed: tuple[Cited, ...] = ()

    @property
    def citations_changed(self) -> bool:
        """Return True if a citation was added, removed or changed sides."""
        added = self.supporting_added or self.contradicting_added
        return bool(added or self.supporting_removed or self.contradicting_removed)


@dataclass(frozen=True, slots=True)
class Sides:
    """Supporting and contradicting citations of an answer, in the order of the answer."""

    supporting: tuple[Cited, ...] = ()
    contradicting: tuple[Cited, ...] = ()


def read_answer(value: Any) -> Answer:
    """Validate a stored answer. Raises UnreadableAnswerError if its format is not supported."""
    try:
        return ANSWER.validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        words = problem_words(problem)
        raise UnreadableAnswerError(
            f"the stored answer is from another version of CiteRay ({where}: {words}); "
            "ask the question again",
            409,
        ) from error


def sides_of(answer: Answer) -> Sides:
    """Return the supporting and contradicting citations, as `AnswerDiff` defines them.

    Unsupported sentences are ignored.
    """
    stated = [s for s in answer.ideal if not s.unsupported]
    stances = [(item.passage.pmid, item.stance) for item in answer.evidence]
    against = dict.fromkeys(
        [pmid for sentence in stated for pmid in sentence.contradicted]
        + [pmid for pmid, stance in stances if stance == "contradict"]
    )
    supporting = dict.fromkeys(
        [pmid for sentence in stated for pmid in sentence.pmids]
        + [pmid for pmid, stance in stances if stance == "support"]
    )
    known = _described(answer)
    return Sides(
        tuple(known.get(p, Cited(p)) for p in supporting if p not in against),
        tuple(known.get(p, Cited(p)) for p in against),
    )


def _described(answer: Answer) -> dict[int, Cited]:
    found = {c.pmid: Cited(c.pmid, c.title, c.year, c.design) for c in answer.citations}
    for item in answer.evidence:
        pmid = item.passage.pmid
        found[pmid] = Cited(pmid, item.title, item.year, item.design)
    return found


def diff_answers(before: Answer, now: Answer) -> AnswerDiff:
    """Return the differences. Citations are in the order of the answer that contains them."""
    old, new = sides_of(before), sides_of(now)
    return AnswerDiff(
        verdict=_change(before.verdict, now.verdict),
        exact=_change(exact_words(before.exact), exact_words(now.exact)),
        text=_change(ideal_words(before.ideal), ideal_words(now.ideal)),
        supporting_added=_beyond(new.supporting, old.supporting),
        supporting_removed=_beyond(old.supporting, new.supporting),
        contradicting_added=_beyond(new.contradicting, old.contradicting),
        contradicting_removed=_beyond(old.contradicting, new.contradicting),
    )


def _change(before: str, now: str) -> Change | None:
    return None if before == now else Change(before, now)


def _beyond(some: Iterable[Cited], others: Iterable[Cited]) -> tuple[Cited, ...]:
    known = {cited.pmid for cited in others}
    return tuple(cited for cited in some if cited.pmid not in known)


def ideal_words(ideal: Iterable[Sentence]) -> str:
    """Return the text of the ideal answer without its citations."""
    return " ".join(sentence.text for sentence in ideal)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a stored answer with a new answer to the same request.

    `reasons` are sentences that may explain the difference, empty if there is no difference.
    """

    same_index_version: bool
    same_preset: bool
    same_models: bool
    same_verdict: bool
    same_exact: bool
    same_text: bool
    same_citations: bool
    diff: AnswerDiff
    reasons: tuple[str, ...] = field(default=())


def compare(
    before: Answer, now: Answer, *, presets: tuple[Any, Any], models: tuple[Any, Any]
) -> Comparison:
    """Compare two answers. `presets` and `models` are pairs of (stored, current) settings."""
    diff = diff_answers(before, now)
    same = not (diff.verdict or diff.exact or diff.text or diff.citations_changed)
    return Comparison(
        same_index_version=before.index_version == now.index_version,
        same_preset=presets[0] == presets[1],
        same_models=models[0] == models[1],
        same_verdict=diff.verdict is None,
        same_exact=diff.exact is None,
        same_text=diff.text is None,
        same_citations=not diff.citations_changed,
        diff=diff,
        reasons=() if same else _reasons(before, now, presets, models),
    )


def _reasons(
    before: Answer, now: Answer, presets: tuple[Any, Any], models: tuple[Any, Any]
) -> tuple[str, ...]:
    reasons = []
    if before.index_version != now.index_version:
        reasons.append(
            f"The index was {before.index_version} ({before.last_source}) and is now "
            f"{now.index_version} ({now.last_source})."
        )
    if presets[0] != presets[1]:
        reasons.append(
            f"The preset {before.system} has changed since then; the new answer uses its old "
            "settings."
        )
    reasons += [
        f"The model of {use} was {models[0].get(use, 'none')} and is now "
        f"{models[1].get(use, 'none')}."
        for use in sorted(models[0].keys() | models[1].keys())
        if models[0].get(use) != models[1].get(use)
    ]
    for word, answer in (("stored", before), ("new", now)):
        if answer.coverage.partition("/")[0] != answer.coverage.partition("/")[2]:
            reasons.append(
                f"The {word} answer is based on only a part of the index: {answer.coverage}."
            )
    if before.degraded != now.degraded:
        lacked = [", ".join(a.degraded) or "nothing" for a in (before, now)]
        reasons.append(f"The stored answer lacked {lacked[0]}; the new answer lacked {lacked[1]}.")
    if now.model_calls or now.writing_calls or before.model_calls or before.writing_calls:
        reasons.append("A language model was used, and its wording may differ between two runs.")
    return tuple(reasons or ["The request is the same; no reason for the difference is known."])
