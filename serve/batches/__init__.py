"""Batches of questions that the HTTP server answers in the background: jobs on disk."""
