"""Reproduce the papers' experiments: their systems, their tables and our values next to theirs."""
