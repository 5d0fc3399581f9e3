"""PubMed's XML to records, and the order in which its files apply."""
