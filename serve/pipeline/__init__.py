"""The pipeline from a request to a cited answer."""
