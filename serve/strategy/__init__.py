"""Boolean search strategies for PubMed, derived from questions and measured on the index."""
