"""The filterable columns of an index and the filters that a search applies to them."""
