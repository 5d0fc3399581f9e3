"""Few-shot examples for the writer, from BioASQ gold answers and Synergy feedback."""
