"""Switching a running graph from one index version to the next."""
