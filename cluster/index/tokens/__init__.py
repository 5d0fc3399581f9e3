"""Compressed token vectors of passages: encoding, storage and scoring."""
