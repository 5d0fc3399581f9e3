"""Citations as files of reference managers, as styled references, and under an answer."""
