"""Text: its sentences, abbreviations, terms and names."""
