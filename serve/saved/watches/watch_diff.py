"""Changes in the answer to a saved question, as data and in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from cluster.answers import Answer
from cluster.errors import cut
from cluster.study_design.designs import Design
from serve.saved.compare_answers import AnswerDiff, Change, Cited, diff_answers
from serve.saved.watches.source_records import CITES_DOUBT, ChangeKind, SourceChange

MOST_NAMED = 10
# Number of articles at the top of the list whose changes a reader would notice.
TOP = 5
NEW_EVIDENCE: Mapping[Design, str] = {
    "guideline": "guideline",
    "meta_analysis": "review",
    "systematic_review": "review",
    "review": "review",
    "randomised_trial": "trial",
    "clinical_trial": "trial",
}
SOURCE_CHANGES: Mapping[ChangeKind, str] = {
    "retracted": "retraction",
    "expression of concern": "expression of concern",
    "corrected": "correction",
    "deleted": "deletion",
    "revised": "revision",
    CITES_DOUBT: "source that cites an article in doubt",
}
PLURALS = {
    "new study": "new studies",
    "expression of concern": "expressions of concern",
    "source that cites an article in doubt": "sources that cite an article in doubt",
}
VERDICTS = {
    "answered": "answered",
    "mixed": "mixed evidence",
    "not_enough_evidence": "not enough evidence",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchDiff(AnswerDiff):
    """Differences from the previous answer. `sources` are records that have changed since then.

    `listed_added` are articles among the first `TOP` of the list that the list did not have, and
    that are not among the new evidence. `order` has the PMIDs of the first ones, if they changed.
    """

    sources: tuple[SourceChange, ...] = ()
    listed_added: tuple[Cited, ...] = ()
    order: Change | None = None

    @property
    def changed(self) -> bool:
        """Return True if anything differs."""
        return any(getattr(self, field.name) for field in fields(self))

    @property
    def notable(self) -> bool:
        """Return True if the change is worth a notification.

        A new wording or order alone is not notable, nor is a removed citation: `sources` lists
        those that were retracted or deleted.
        """
        return bool(
            self.verdict
            or self.exact
            or self.supporting_added
            or self.contradicting_added
            or self.listed_added
            or self.sources
        )


def watch_diff(before: Answer, now: Answer, sources: Sequence[SourceChange]) -> WatchDiff:
    """Return the differences between two answers, with the changes of their sources."""
    diff = diff_answers(before, now)
    same = {field.name: getattr(diff, field.name) for field in fields(diff)}
    named = {cited.pmid for cited in (*diff.supporting_added, *diff.contradicting_added)}
    known = named | {citation.pmid for citation in before.citations}
    top = now.citations[:TOP]
    listed = tuple(Cited(c.pmid, c.title, c.year, c.design) for c in top if c.pmid not in known)
    old, new = (", ".join(str(c.pmid) for c in a.citations[:TOP]) for a in (before, now))
    order = Change(old, new) if old != new else None
    return WatchDiff(**same, sources=tuple(sources), listed_added=listed, order=order)


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
    said += _listed("New among the first articles listed", diff.listed_added)
    said += _listed("No longer among the evidence against it", diff.contradicting_removed)
    said += _listed("No longer among the evidence for it", diff.supporting_removed)
    if diff.text:
        said.append("The text of the answer changed.")
    if diff.order and not (diff.supporting_added or diff.contradicting_added or diff.listed_added):
        said.append(f"The first articles listed are now PMID {diff.order.now or 'none'}.")
    return said or ["Nothing changed."]


def change_summary(diff: WatchDiff) -> str:
    """Return what changed in a few words, such as "2 new trials, 1 retraction"."""
    added = Counter(
        f"new {NEW_EVIDENCE.get(cited.design, 'study')}"
        for cited in (*diff.supporting_added, *diff.contradicting_added, *diff.listed_added)
    )
    said = ["verdict changed"] if diff.verdict else ["answer changed"] if diff.exact else []
    said += [_counted(count, name) for name, count in added.items()]
    return ", ".join([*said, *filter(None, [source_summary(diff.sources)])])


def source_summary(changes: Sequence[SourceChange]) -> str:
    """Return how many records changed in which way, such as "1 retraction, 2 corrections"."""
    counts = Counter(SOURCE_CHANGES[change.kind] for change in changes)
    return ", ".join(_counted(count, name) for name, count in counts.items())


def _counted(count: int, name: str) -> str:
    return f"{count} {name if count == 1 else PLURALS.get(name, f'{name}s')}"


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
