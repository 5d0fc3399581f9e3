"""Parsing of PubMed's XML, and the order of its files."""
