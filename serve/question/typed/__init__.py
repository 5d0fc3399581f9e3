"""What people type who come from PubMed: field tags, PMIDs and DOIs in the place of a question."""
