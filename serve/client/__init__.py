"""Clients of a running endpoint or of a local graph, question files, and terminal output."""
