"""Shared core of indexing and serving: records, settings, models and the index format."""
