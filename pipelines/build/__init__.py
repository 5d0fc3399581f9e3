"""From source files to a published version of the index."""
