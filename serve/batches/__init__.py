"""Batches of questions over HTTP: kept on disk, worked on one after the other."""
