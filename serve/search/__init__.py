"""Search: from a question to ranked citations."""
