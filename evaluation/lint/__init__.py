"""What is wrong with a run file, and the safe repairs."""
