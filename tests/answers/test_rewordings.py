"""The table of reworded facts is complete and balanced, and quotes its citations exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster.pubmed.parse_articles import read_records
from cluster.records import Citation
from pipelines.sample.write_sample import write_sample
from tests.answers.suite import RewordedFact, load_all_rows, load_reworded_facts

TRIALS = Path(__file__).resolve().parents[3] / "shared/data/trials"
FACTS = load_reworded_facts()
WORDINGS = [wording for fact in FACTS for wording in fact.wordings]


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


def test_ids_and_questions_of_reworded_facts_are_unique() -> None:
    ids = Counter(fact.id for fact in FACTS)
    others = [row.question for row in load_all_rows()]
    asked = Counter(text.casefold() for text in [*others, *(w.ask for w in WORDINGS)])
    assert [text for text, count in (ids + asked).items() if count > 1] == []


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
