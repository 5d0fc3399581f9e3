"""Files, object stores, and the location of an index."""
