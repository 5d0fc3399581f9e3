"""From a question to a cited answer, one module a step, in the order of the question."""
