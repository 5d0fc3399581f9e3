"""The tables are consistent and balanced, so that no constant answer passes.

The facts that are asked in several wordings quote their citations exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from pipelines.sample.write_sample import write_sample
from tests.answers.judge import holds
from tests.answers.real import DATA, development_ids, load_questions
from tests.answers.suite import (
    REAL_SUITES,
    RewordedFact,
    load_all_rows,
    load_real_rows,
    load_reworded_facts,
    load_suite,
)

TRIALS = Path(__file__).resolve().parents[3] / "shared/data/trials"
ROWS = load_all_rows()
FACTS = load_reworded_facts()
WORDINGS = [wording for fact in FACTS for wording in fact.wordings]


def test_ids_and_questions_are_unique() -> None:
    real = (row.id for suite in REAL_SUITES for row in load_real_rows(suite))
    ids = Counter([*(row.id for row in ROWS), *(fact.id for fact in FACTS), *real])
    asked = (*(row.question for row in ROWS), *(wording.ask for wording in WORDINGS))
    questions = Counter(text.casefold() for text in asked)
    assert [text for text, count in (ids + questions).items() if count > 1] == []


def test_polarities_are_balanced() -> None:
    polarities = Counter(row.expected for row in load_suite("yes_no"))
    assert polarities == {"no": 72, "yes": 28, "mixed": 20}


def test_unanswerable_rows_expect_nothing_and_some_are_near_the_collection() -> None:
    rows = load_suite("unanswerable")
    assert all(row.expected is None for row in rows)
    assert sum(bool(row.evidence) for row in rows) >= 15
    assert sum(row.type == "yesno" for row in rows) >= 15


def test_names_are_in_the_evidence_and_forbidden_ones_are_not_expected(
    subtests: pytest.Subtests,
) -> None:
    for row in load_suite("named"):
        with subtests.test(row=row.id):
            text = " ".join(f"{c.title} {c.text}" for c in row.evidence)
            assert isinstance(row.expected, tuple)
            assert all(any(holds(text, name) for name in names) for names in row.expected)
            expected = {name.casefold() for names in row.expected for name in names}
            assert not expected & {name.casefold() for name in row.forbidden}
            assert [name for name in row.forbidden if not holds(text, name)] == []


def test_no_table_is_copied_from_the_development_questions() -> None:
    if not DATA.is_dir():
        pytest.skip("needs ../shared/data/bioasq")
    assert not {row.bioasq for row in load_real_rows("real")} & development_ids()
    for suite in REAL_SUITES:
        assert len(load_questions(suite)) == len(load_real_rows(suite))


def find_unstated(facts: Sequence[RewordedFact], files: Sequence[Path]) -> list[str]:
    """Return the facts with an unknown PMID, or whose sentence is in none of their citations."""
    wanted = {pmid for fact in facts for pmid in fact.pmids}
    texts = {
        record.pmid: " ".join(section.text for section in record.sections)
        for file in files
        for record in read_records(file)
        if isinstance(record, Citation) and record.pmid in wanted
    }
    return [
        fact.id
        for fact in facts
        if not texts.keys() >= set(fact.pmids)
        or not any(fact.stated in texts[pmid] for pmid in fact.pmids)
    ]


def test_answers_of_all_wordings_are_balanced() -> None:
    yes = sum(wording.answer == "yes" for wording in WORDINGS)
    assert 0.45 <= yes / len(WORDINGS) <= 0.55


def test_sample_facts_are_stated_by_the_sample_corpus(tmp_path: Path) -> None:
    facts = [fact for fact in FACTS if fact.source == "sample"]
    assert find_unstated(facts, write_sample(tmp_path).sources) == []


def test_trial_facts_are_stated_by_the_trial_abstracts() -> None:
    if not TRIALS.is_dir():
        pytest.skip("needs ../shared/data/trials")
    facts = [fact for fact in FACTS if fact.source == "trials"]
    assert find_unstated(facts, sorted(TRIALS.glob("*.xml.gz"))) == []


def test_trial_facts_use_only_the_held_out_trials() -> None:
    pmids = [pmid for fact in FACTS if fact.source == "trials" for pmid in fact.pmids]
    assert [pmid for pmid in pmids if pmid % 5] == []
