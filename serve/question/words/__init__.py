"""The words that an index knows: spelling, completion, headings."""
