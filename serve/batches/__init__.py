"""Batches of questions: jobs on disk for the HTTP API, and run files for commands."""
