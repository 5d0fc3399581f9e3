"""Training of the reader: examples, losses, and the adapter that is shipped."""
