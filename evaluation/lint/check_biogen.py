"""Rules for TREC BioGen runs, tasks A and B (2025).

Source: the track's description (trec-biogen.github.io/docs) and its validation programs
(trec-biogen/starter-kit-2025). In task A a run adds to each given sentence up to 3 supporting and
up to 3 contradicting PMIDs, none of them already given. In task B it answers in at most 250 words,
and each sentence has 1 to 3 PMIDs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING, Any, Literal

from cluster.text.sentences import sentence_spans
from evaluation.lint.note_problems import Asked, Checked, Checker, count_words, read_pmid

if TYPE_CHECKING:
    from evaluation.find_citations import CitationLookup

MAX_CITATIONS = 3
MAX_WORDS = 250
GIVEN, SUPPORTED, CONTRADICTED = (
    "existing_supported_citations",
    "supported_citations",
    "contradicted_citations",
)
OTHER_NAME = "contradicting_citations"

Row = dict[str, Any]
Rule = Callable[[Checker, Row, str], Row]


def check_biogen(
    rows: Sequence[Any],
    questions: Mapping[str, Asked] | None = None,
    lookup: CitationLookup | None = None,
    *,
    drop_unknown: bool = False,
    task: Literal["A", "B"],
) -> Checked:
    """Check the records of a run and return repaired copies; `rows` are not changed."""
    checker = Checker(lookup, drop_unknown=drop_unknown)
    id_field, rule = ("qa_id", _check_a) if task == "A" else ("topic_id", _check_b)
    ids, mended = [], []
    for number, row in enumerate(rows, start=1):
        where = f"record {number}"
        if not isinstance(row, dict):
            checker.note(where, f"must be an object, not {row!r:.40}")
            mended.append(row)
            continue
        id_ = _metadata(checker, row, id_field, where)
        if id_:
            ids.append(id_)
            where = f"{where} ({id_field} {id_})"
        mended.append(rule(checker, row, where))
    checker.ids(ids, questions)
    return Checked(mended, tuple(checker.problems))


def _metadata(checker: Checker, row: Row, id_field: str, where: str) -> str:
    """Return the record's id as a string, or "" if it has none."""
    metadata = row.get("metadata")
    if not isinstance(metadata, dict):
        checker.note(f"{where}, metadata", f"must be an object, not {metadata!r:.40}")
        return ""
    for field in ("team_id", "run_id"):
        if not isinstance(metadata.get(field), str):
            value = metadata.get(field)
            checker.note(f"{where}, metadata", f"{field} must be a string, not {value!r:.40}")
    id_ = metadata.get(id_field)
    if type(id_) is int or (isinstance(id_, str) and id_.strip()):
        return str(id_).strip()
    checker.note(f"{where}, metadata", f"{id_field} must be a string or number, not {id_!r:.40}")
    return ""


def _check_a(checker: Checker, row: Row, where: str) -> Row:
    return _each(checker, row, "answer", _ground, where)


def _check_b(checker: Checker, row: Row, where: str) -> Row:
    row = _each(checker, row, "responses", _cite, where)
    if isinstance(row.get("responses"), list):
        row["responses"] = _fit(checker, row["responses"], f"{where}, responses")
    return row


def _each(checker: Checker, row: Row, field: str, rule: Rule, place: str) -> Row:
    """Return a copy of the record with `rule` applied to each object of the list in `field`."""
    items = checker.items(row, field, place)
    if not row.get(field):
        checker.note(f"{place}, {field}", "is missing or empty")
    if not items:
        return dict(row)
    mended = []
    for number, item in enumerate(items, start=1):
        where = f"{place}, {field} {number}"
        if isinstance(item, dict):
            item = rule(checker, item, where)
        else:
            checker.note(where, f"must be an object, not {item!r:.40}")
        mended.append(item)
    return {**row, field: mended}


def _ground(checker: Checker, item: Row, where: str) -> Row:
    """Check a sentence of task A. Its text comes from the track and is not changed."""
    item = dict(item)
    _text(checker, item, where)
    if OTHER_NAME in item and CONTRADICTED not in item:
        checker.note(
            where, f"{OTHER_NAME} is not a field of the format", f"names it {CONTRADICTED}"
        )
        item[CONTRADICTED] = item.pop(OTHER_NAME)
    given = {read_pmid(pmid) for pmid in checker.items(item, GIVEN, where) or ()} - {None}
    supported = _pmids(checker, item, SUPPORTED, where)
    new = [pmid for pmid in supported if read_pmid(pmid) not in given]
    if len(new) < len(supported):
        repeated = f"{len(supported) - len(new)} of them in {GIVEN}"
        checker.note(f"{where}, {SUPPORTED}", repeated, "drops the PMIDs that were given")
    contradicted = _pmids(checker, item, CONTRADICTED, where)
    new = checker.first(new, MAX_CITATIONS, f"{where}, {SUPPORTED}")
    contradicted = checker.first(contradicted, MAX_CITATIONS, f"{where}, {CONTRADICTED}")
    both = {read_pmid(pmid) for pmid in contradicted} & ({read_pmid(p) for p in new} | given)
    for pmid in sorted(both - {None}, key=str):
        checker.note(f"{where}, {CONTRADICTED}", f"PMID {pmid} supports the sentence as well")
    return item | _lists(item, {SUPPORTED: new, CONTRADICTED: contradicted})


def _cite(checker: Checker, item: Row, where: str) -> Row:
    """Check a sentence of task B."""
    item = dict(item)
    text = _text(checker, item, where)
    if text:
        item["text"] = text = checker.unmarked(text, where)
        sentences = len(sentence_spans(text))
        if sentences != 1:
            checker.note(f"{where}, text", f"{sentences} sentences; each item must have one")
    pmids = _pmids(checker, item, "citations", where)
    if not pmids:
        checker.note(f"{where}, citations", f"no citation; 1 to {MAX_CITATIONS} are required")
    pmids = checker.first(pmids, MAX_CITATIONS, f"{where}, citations")
    return item | _lists(item, {"citations": pmids})


def _text(checker: Checker, item: Row, where: str) -> str:
    """Return the item's text; if it has none, note a problem and return ""."""
    text = item.get("text")
    if isinstance(text, str) and text.strip():
        return text
    checker.note(f"{where}, text", f"must be a string that is not empty, not {text!r:.40}")
    return ""


def _pmids(checker: Checker, item: Row, field: str, place: str) -> list[Any]:
    """Return the distinct citations in `field` that are PMIDs, as a number or digits."""
    value, where = item.get(field), f"{place}, {field}"
    if isinstance(value, dict):
        checker.note(where, "is an object", "makes it the list of its PMIDs")
        value = list(value)
    if value is None:
        checker.note(where, "is missing", "writes an empty list")
    elif not isinstance(value, list):
        checker.note(where, f"must be a list of PMIDs, not {value!r:.40}")
        value = None
    pmids: list[Any] = []
    for citation in value or ():
        pmid = read_pmid(citation)
        if pmid is None:
            checker.note(where, f"{citation!r:.40} is not a PMID")
        elif str(citation) != str(pmid):
            checker.note(where, f"{citation!r:.40} is not the bare PMID", f"writes {pmid}")
            citation = str(pmid)
        if pmid is None or checker.live(pmid, where):
            pmids.append(citation)
    return checker.distinct(pmids, str, where)


def _lists(item: Row, mended: Mapping[str, list[Any]]) -> Row:
    """Return the repaired citation lists, except for fields whose value is not a list."""
    usable = (list, dict, type(None))
    return {field: new for field, new in mended.items() if isinstance(item.get(field), usable)}


def _fit(checker: Checker, items: list[Any], where: str) -> list[Any]:
    """Return the first items that together stay within the word limit."""
    texts = [item.get("text") if isinstance(item, dict) else "" for item in items]
    words = list(accumulate(count_words(t) if isinstance(t, str) else 0 for t in texts))
    if not words or words[-1] <= MAX_WORDS:
        return items
    whole = sum(1 for _ in takewhile(lambda total: total <= MAX_WORDS, words))
    mend = f"keeps the first {whole} sentences" if whole else ""
    checker.note(where, f"{words[-1]} words, at most {MAX_WORDS}", mend)
    return items[:whole] if whole else items
