"""Report page of a scored run."""
