"""File forms of the evaluation campaigns: questions in, runs out."""
