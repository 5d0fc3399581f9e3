"""Files and object stores, and where an index lies."""
