from __future__ import annotations

import pytest

from cluster.settings.presets import load_system, paper_runs, shipped_systems, system_names
from cluster.settings.search_settings import RankingsSettings

# Paper 002, table 1 and sections 3.3 and 3.5: (rewriting, reranking depth, rounds of self-check,
# whether BM25 is used).
VARIANTS = {
    1: ("none", 0, 0, False),
    2: ("hyde", 0, 0, False),
    3: ("none", 20, 0, False),
    4: ("hyde", 20, 0, False),
    5: ("sub-questions", 60, 0, False),
    6: ("none", 0, 3, False),
    7: ("none", 40, 0, True),
}


def test_biorag_variants_match_the_papers_table() -> None:
    systems = {number: load_system(f"biorag-v{number}") for number in VARIANTS}
    found = {
        number: (s.rewrite.kind, s.rerank.depth, s.self_check, bool(s.retrieve.bm25))
        for number, s in systems.items()
    }
    assert found == VARIANTS
    # Section 3.4 and appendix A.
    assert {(s.rewrite.tokens, s.self_check_tokens) for s in systems.values()} == {(512, 512)}
    fuse, retrieve = systems[7].fuse, systems[7].retrieve
    assert (fuse.method, fuse.rrf_k, retrieve.bm25_k1, retrieve.bm25_b) == ("rrf", 60, 1.5, 0.75)


# Paper 004, table 1: runs by (task, retrieval, reranked). Runs of one row differ by their model.
RUNS = {
    "udine-a1": ("A", "sparse", False),
    "udine-a": ("A", "sparse", True),
    "udine-a3": ("A", "dense", False),
    "udine-a4": ("A", "dense", True),
    "udine-b1": ("B", "sparse", False),
    "udine-b": ("B", "sparse", True),
    "udine-b3": ("B", "dense", False),
    "udine-b4": ("B", "dense", True),
}


def test_udine_runs_match_the_papers_table(subtests: pytest.Subtests) -> None:
    for name, (task, retrieval, reranked) in RUNS.items():
        with subtests.test(name=name):
            system, base = load_system(name), load_system(f"udine-{task.lower()}")
            depth = 50 if task == "A" else 100
            sides = (system.retrieve.dense, system.retrieve.bm25)
            assert sides == ((depth, 0) if retrieval == "dense" else (0, depth))
            assert (system.fuse.dense > 0, system.fuse.bm25 > 0) == (sides[0] > 0, sides[1] > 0)
            assert (system.rerank.depth, system.rerank.by) == (depth if reranked else 0, "listwise")
            for key in ("expand", "rewrite", "ranks", "evidence", "answer"):
                assert getattr(system, key) == getattr(base, key)


BM25, LLM = ("plain-reranked",), ("rewritten-reranked",)
RRF_BM25, RRF_LLM = ("plain", "plain-reranked"), ("rewritten", "rewritten-reranked")
ALL = (*RRF_LLM, *RRF_BM25)
# Paper 003, table 2: rankings fused for list, factoid, summary and yes/no questions.
FUSIONS = {
    1: (BM25, BM25, BM25, BM25),
    2: (LLM, LLM, LLM, LLM),
    3: (BM25, LLM, LLM, BM25),
    4: (LLM, BM25, LLM, LLM),
    5: (RRF_BM25, LLM, RRF_LLM, BM25),
    6: (RRF_LLM, LLM, LLM, BM25),
    7: (RRF_BM25, RRF_LLM, LLM, BM25),
    8: (ALL, ALL, ALL, ALL),
}


def test_huang_fusions_match_the_papers_table() -> None:
    types, base = ("list", "factoid", "summary", "yesno"), load_system("huang")
    for number, fused in FUSIONS.items():
        system = load_system(f"huang-{number}")
        by_type = dict(zip(types, fused, strict=True))
        assert system.rankings == RankingsSettings(by_type=by_type, k=0), number
        for key in ("retrieve", "fuse", "rerank", "recency", "evidence"):
            assert getattr(system, key) == getattr(base, key), (number, key)


def test_paper_runs_are_hidden_presets() -> None:
    assert not set(paper_runs()) & set(system_names())
    assert set(paper_runs()) <= set(shipped_systems())
