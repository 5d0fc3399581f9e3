"""NCBI's E-utilities: the pace, the cache, the asking again, and what replies mean."""
