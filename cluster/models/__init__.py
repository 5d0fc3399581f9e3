"""Models except the language model: fetching, loading and running them."""
