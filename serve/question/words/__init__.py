"""Spelling correction, completion and MeSH headings from the words of an index."""
