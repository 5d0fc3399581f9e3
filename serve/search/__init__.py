"""From a question to ranked citations."""
