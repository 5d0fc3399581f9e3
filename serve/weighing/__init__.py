"""What an answer is worth: its order, its counts, its sides, its caveats and how far it agrees."""
