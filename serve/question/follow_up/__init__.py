"""Questions that rest on what was asked before, made to stand alone."""
