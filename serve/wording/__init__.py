"""Plain words for verdicts, interpretations and the strength of the evidence."""
