"""How much machine a corpus and its readers need: measured here, carried to any size."""
