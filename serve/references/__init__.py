"""Export citations to reference managers, as styled references, or in documents of answers."""
