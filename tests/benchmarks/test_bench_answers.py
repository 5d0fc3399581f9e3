from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bench_answers import unsupported
from serve.support.attribute_sentences import Support


class SameWords:
    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Support]:
        return [Support(float(premise == said)) for premise, said in pairs]


def test_sentence_support_uses_only_cited_passages() -> None:
    answer = {
        "ideal": [
            {"text": "A heals B.", "pmids": [1]},
            {"text": "C heals D.", "pmids": [1]},
            {"text": "C heals D.", "pmids": [1, 2]},
            {"text": "E heals F.", "pmids": []},
        ],
        "evidence": [
            {"passage": {"pmid": 1, "text": "A heals B."}},
            {"passage": {"pmid": 2, "text": "C heals D."}},
        ],
    }
    assert unsupported(answer, SameWords(), 0.5) == ["C heals D.", "E heals F."]
