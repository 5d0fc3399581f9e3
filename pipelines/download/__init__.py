"""Downloads PubMed's files."""
