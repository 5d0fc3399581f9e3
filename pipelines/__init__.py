"""Batch pipelines: download, build, update and verify an index, and train the small models."""
