"""Find problems in a run file, and repair those that are safe to repair."""
