"""Help readers to judge an answer: sort order, counts, sides, agreement and caveats."""
