"""What the small models learn from."""
