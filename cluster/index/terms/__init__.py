"""Document frequencies of terms for BM25, in a segment and in a version."""
