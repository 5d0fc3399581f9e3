"""Estimate the machines that a corpus and a load need, from measurements of this machine."""
