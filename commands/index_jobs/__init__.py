"""The `citeray index` commands."""
