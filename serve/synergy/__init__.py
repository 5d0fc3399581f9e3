"""What experts said in earlier rounds: judged documents, and examples of good answers."""
