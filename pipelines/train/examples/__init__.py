"""Training examples of the small models."""
