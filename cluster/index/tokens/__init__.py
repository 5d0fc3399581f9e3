"""Token vectors of passages, compressed: how they are coded, kept and scored."""
