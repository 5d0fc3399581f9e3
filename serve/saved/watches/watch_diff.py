"""Changes in the answer to a saved question, as data and in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from cluster.answers import Answer
from cluster.errors import cut
from serve.saved.compare_answers import AnswerDiff, Cited, diff_answers
from serve.saved.watches.source_records import SourceChange

MOST_NAMED = 10
VERDICTS = {
    "answered": "answered",
    "mixed": "mixed evidence",
    "not_enough_evidence": "not enough evidence",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchDiff(AnswerDiff):
    """Differences from the previous answer. `sources` are records that have changed since then."""

    sources: tuple[SourceChange, ...] = ()

    @property
    def changed(self) -> bool:
        """Return True if anything differs."""
        return any(getattr(self, field.name) for field in fields(self))

    @property
    def notable(self) -> bool:
        """Return True if the change is worth a notification.

        A new wording alone is not notable, nor is a removed citation: `sources` lists those that
        were retracted or deleted.
        """
        return bool(
            self.verdict
            or self.exact
            or self.supporting_added
            or self.contradicting_added
            or self.sources
        )


def watch_diff(before: Answer, now: Answer, sources: Sequence[SourceChange]) -> WatchDiff:
    """Return the differences between two answers, with the changes of their sources."""
    diff = diff_answers(before, now)
    same = {field.name: getattr(diff, field.name) for field in fields(diff)}
    return WatchDiff(**same, sources=tuple(sources))


def diff_words(diff: WatchDiff | None) -> list[str]:
    """Return a sentence for each change, the most important first; None means a first answer."""
    if diff is None:
        return ["The question was asked for the first time."]
    said = [f"{change.kind.capitalize()}: {_source(change)}." for change in diff.sources]
    if diff.verdict:
        before, now = (VERDICTS.get(v, v) for v in (diff.verdict.before, diff.verdict.now))
        said.append(f'The verdict was "{before}" and is now "{now}".')
    if diff.exact:
        before, now = (cut(text) or "none" for text in (diff.exact.before, diff.exact.now))
        said.append(f"The short answer was {before} and is now {now}.")
    said += _listed("New evidence against the answer", diff.contradicting_added)
    said += _listed("New evidence for the answer", diff.supporting_added)
    said += _listed("No longer among the evidence against it", diff.contradicting_removed)
    said += _listed("No longer among the evidence for it", diff.supporting_removed)
    if diff.text:
        said.append("The text of the answer changed.")
    return said or ["Nothing changed."]


def _source(change: SourceChange) -> str:
    named = _named(Cited(change.pmid, change.title))
    return f"{named} ({change.detail})" if change.detail else named


def _named(cited: Cited) -> str:
    year = f" ({cited.year})" if cited.year else ""
    title = f", {cut(cited.title).rstrip('.')}" if cited.title else ""
    return f"PMID {cited.pmid}{title}{year}"


def _listed(words: str, citations: Sequence[Cited]) -> list[str]:
    if not citations:
        return []
    named = [_named(cited) for cited in citations[:MOST_NAMED]]
    if more := len(citations) - MOST_NAMED:
        named += [f"and {more} more"] if more > 0 else []
    return [f"{words}: {'; '.join(named)}."]
