"""The vocabulary: concepts, their names, and what the citations call them."""
