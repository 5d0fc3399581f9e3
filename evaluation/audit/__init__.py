"""Which stored answers cite what was since retracted, deleted, doubted, revised or corrected."""
