"""File formats of BioASQ, Synergy and TREC BioGen: read questions, write runs."""
