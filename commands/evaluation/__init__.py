"""`citeray evaluate`, `lint`, `audit` and `ablate`."""
