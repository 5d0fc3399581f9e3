"""BioASQ and Synergy: read gold and run files, and compute the official measures."""
