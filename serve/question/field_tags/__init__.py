"""PubMed query syntax: field tags, Boolean operators, and PMIDs, PMCIDs and DOIs as a question."""
