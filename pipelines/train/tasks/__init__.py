"""Training tasks of the small models: data, loss and measures."""
