"""`citeray evaluate`, `table`, `ablate`, `questions`, `lint` and `audit`."""
