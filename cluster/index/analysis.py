"""How text becomes BM25 terms; the same for citations, passages and questions."""

from __future__ import annotations

from functools import cache

import tantivy

# Goes into the manifest: a reader with another analyser would look up terms that
# are not there.
ANALYSER = "simple-lower-english-stop-stem-1"
ANALYSER_FIELD = "citeray"


@cache
def analyser() -> tantivy.TextAnalyzer:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(64))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.stopword("english"))
        .filter(tantivy.Filter.stemmer("english"))
        .build()
    )


def analyse(text: str) -> list[str]:
    """The terms of `text` in order, repeated as often as they occur."""
    return list(analyser().analyze(text))
