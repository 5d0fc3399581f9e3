"""`citeray evaluate`, `table`, `rate`, `ablate`, `questions`, `lint` and `audit`."""
