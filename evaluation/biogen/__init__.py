"""TREC BioGen, tasks A and B."""
