"""What is new since a version, and the folding of small segments."""
