"""Clients of a running endpoint or of the graph in this process, and terminal output."""
