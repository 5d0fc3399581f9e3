from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cluster.errors import IndexFormatError
from cluster.settings.settings import Settings, load_settings
from evaluation.biogen.judge_citations import Asked, EntailmentJudge
from evaluation.find_citations import CitationLookup
from serve.support.attribute_sentences import Support
from tests.small_index import citation, make_index


def settings_of(index: Path) -> Settings:
    return load_settings(None, [f"index.path={index}"])


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> CitationLookup:
    index = tmp_path_factory.mktemp("find") / "index"
    citations = [citation(7, "Insulin lowers glucose.", "Insulin."), citation(11, "Iron.")]
    make_index(index, citations)
    return CitationLookup(settings_of(index))


def test_lookup_finds_citations_in_any_shard(lookup: CitationLookup) -> None:
    found = [lookup.find(pmid) for pmid in (7, 11, 8, 0, -7, 2**70)]
    assert [c and c.abstract for c in found] == ["Insulin lowers glucose.", "Iron.", *[None] * 4]
    assert lookup.texts([11, 8, 7]) == {11: "Iron.", 7: "Insulin. Insulin lowers glucose."}
    assert lookup.version == "v000001"


def test_lookup_opens_each_shard_once_on_demand(tmp_path: Path) -> None:
    index = tmp_path / "index"
    make_index(index, [citation(7, "a b c."), citation(11, "d e f."), citation(12, "g.")], shards=1)
    opened, waiting = CitationLookup(settings_of(index)), CitationLookup(settings_of(index))
    assert opened.find(7)
    for path in (index / "segments").rglob("citations.arrow"):
        path.unlink()
    assert opened.find(11)
    with pytest.raises(IndexFormatError, match=r"citations\.arrow"):
        waiting.find(7)


class Keywords:
    """Scorer that reads relation and score from the words of the premise."""

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        self.pairs += pairs
        found = []
        for premise, _ in pairs:
            score = next((part for part in premise.split() if part.startswith("0.")), "0.9.")
            level = float(score.rstrip("."))
            for_ = level if "support" in premise else 0.1
            found.append(Support(for_, 0.8 if "contradict" in premise else 0.0))
        return found


def test_support_takes_precedence_over_contradiction() -> None:
    texts = {
        1: "It is neutral. One support.",
        2: "One contradict. One support.",
        3: "It is neutral. One contradict.",
        4: "It is neutral. It is neutral.",
        5: "",
    }
    judge = EntailmentJudge(lambda pmids: texts, Keywords(), window=1)
    # In the order of the questions; PMID 6 has no text.
    asked = [Asked("t", "It helps.", pmid) for pmid in (3, 1, 6, 2, 4, 5)]
    expected = ["contradict", "support", "unknown", "support", "neutral", "unknown"]
    assert judge.judge(asked) == expected
    for threshold, relation in [(0.6, "support"), (0.61, "neutral")]:
        judge = EntailmentJudge(lambda pmids: {1: "We saw support 0.6."}, Keywords(), threshold)
        assert judge.judge(asked[1:2]) == [relation]
    # The model is not called if there is nothing to judge.
    scorer = Keywords()
    assert EntailmentJudge(lambda pmids: {}, scorer).judge(asked[:1]) == ["unknown"]
    assert scorer.pairs == []


def test_premises_are_sentence_windows_and_texts_are_read_once() -> None:
    scorer = Keywords()
    asked: list[list[int]] = []

    def texts(pmids: Sequence[int]) -> dict[int, str]:
        asked.append(list(pmids))
        return {1: "A neutral. B neutral. C neutral.", 2: "D neutral."}

    judge = EntailmentJudge(texts, scorer, window=2)
    items = [Asked("t", "S.", 1), Asked("t", "T.", 2), Asked("t", "T.", 1), Asked("t", "S.", 3)]
    assert judge.judge(items) == ["neutral", "neutral", "neutral", "unknown"]
    assert asked == [[1, 2, 3]]
    windows = ["A neutral. B neutral.", "B neutral. C neutral."]
    assert scorer.pairs == [
        *((window, "S.") for window in windows),
        ("D neutral.", "T."),
        *((window, "T.") for window in windows),
    ]
