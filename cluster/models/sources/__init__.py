"""Names of models and the extraction of their files from packages."""
