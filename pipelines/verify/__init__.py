"""Verifies a published index against its manifest and against the source files."""
