"""Which kind of study a citation reports, and on whom."""
