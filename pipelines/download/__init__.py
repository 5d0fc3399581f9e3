"""PubMed's files, fetched and kept."""
