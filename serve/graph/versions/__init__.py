"""The graph's move from one index version to the next."""
