"""E-utilities on loopback that search a corpus, for measurements.

As in PubMed, untagged words are combined by AND, words that no record contains are ignored and
reported, and the best match comes first (here by BM25). Unlike in PubMed, if no record has all
words, records with any of them are returned, because a small corpus rarely contains all words of
a question. Dates are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

import bm25s
import numpy as np
from lxml import etree

from cluster.records import Citation
from cluster.text.analysis import analyse
from pipelines.sample.render_citation import citation_element
from tests.cluster.pubmed_sets import DOCTYPE
from tests.serve.eutils_server import EUtils

_ENTERED = date(2026, 1, 1)
_OPERATOR = re.compile(r"\b(AND|OR|NOT)\b")


@dataclass
class CorpusPubMed(EUtils):
    """Searches titles and abstracts of `citations`, and returns their records."""

    citations: Sequence[Citation] = ()
    _known: dict[int, Citation] = field(init=False, default_factory=dict)
    _holding: dict[str, set[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._known = {c.pmid: c for c in self.citations}
        self.entered = dict.fromkeys(self._known, _ENTERED)
        self._pmids = np.array(list(self._known), np.int64)
        texts = [analyse(f"{c.title} {c.abstract}") for c in self._known.values()]
        for row, terms in enumerate(texts):
            for term in terms:
                self._holding.setdefault(term, set()).add(row)
        self._bm25 = bm25s.BM25()
        self._bm25.index(texts, show_progress=False)

    def matching(self, query: str) -> tuple[list[int], list[str]]:
        """Return (PMIDs, best first; words of the query that no record contains)."""
        words = _OPERATOR.sub(" ", query).split()
        known, unknown = [], []
        for word in words:
            terms = analyse(word)
            (known if all(t in self._holding for t in terms) else unknown).append(word)
        terms = list(dict.fromkeys(term for word in known for term in analyse(word)))
        if not terms:
            return [], unknown
        holding = [self._holding[term] for term in terms]
        rows = np.array(sorted(set.intersection(*holding) or set.union(*holding)))
        scores = self._bm25.get_scores(terms)[rows]
        best = rows[np.lexsort((self._pmids[rows], -scores))]
        return self._pmids[best].tolist(), unknown

    def found_by(self, term: str) -> list[int]:
        pmids, unknown = self.matching(term)
        self.warnings = {"errorlist": {"phrasesnotfound": unknown}} if unknown else {}
        return pmids

    def records(self, pmids: Sequence[int], books: Sequence[int]) -> str:
        elements = [citation_element(self._known[pmid], {}, "") for pmid in pmids]
        articles = "".join(etree.tostring(each, encoding="unicode") for each in elements)
        return f"{DOCTYPE}<PubmedArticleSet>{articles}</PubmedArticleSet>"
