"""Scores run files by the field's own measures; runs without Ray."""
