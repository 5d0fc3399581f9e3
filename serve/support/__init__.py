"""Checks whether evidence supports a sentence, contradicts it, or does neither."""
