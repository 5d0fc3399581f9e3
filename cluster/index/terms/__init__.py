"""How many units hold each term: what BM25 weighs terms by, of a segment and of a version."""
