"""Builds a published version of the index from source files."""
