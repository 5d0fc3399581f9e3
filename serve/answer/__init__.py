"""Write an answer from evidence: a verdict, an ideal answer and an exact answer."""
