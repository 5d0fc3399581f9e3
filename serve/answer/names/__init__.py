"""Exact answers that are names or figures: found, typed, grouped, ranked."""
