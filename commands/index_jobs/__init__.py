"""`citeray index`."""
