"""Checks of a question's filters against the values in the index."""
