"""Exact answers that are names or numbers: find, group, rank and normalise them."""
