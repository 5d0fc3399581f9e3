"""The pipeline from a question to a cited answer, and its HTTP service."""
