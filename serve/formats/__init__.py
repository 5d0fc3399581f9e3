"""File formats of the evaluation campaigns BioASQ and TREC BioGen: read questions, write runs."""
