"""Saved questions: asked again after each version of the index, with what changed since."""
