"""Training of a small language model to write answers from evidence."""
