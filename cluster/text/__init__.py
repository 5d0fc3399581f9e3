"""Text processing: sentences, abbreviations, BM25 terms and the vocabulary."""
