"""BioASQ and Synergy: gold and run files, the official measures."""
