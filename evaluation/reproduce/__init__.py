"""Reproduce the papers' experiments: their systems, and their tables with measured values."""
