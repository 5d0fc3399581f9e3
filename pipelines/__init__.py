"""From PubMed XML to a published index, one module a step, in the order of the data."""
