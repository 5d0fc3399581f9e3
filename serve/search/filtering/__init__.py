"""Checks the filters of a question against the values that the index holds."""
