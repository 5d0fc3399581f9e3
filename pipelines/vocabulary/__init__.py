"""Builds the vocabulary: concepts, their names, and how often citations use each name."""
