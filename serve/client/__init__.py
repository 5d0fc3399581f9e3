"""Who asks: the running endpoint or the graph in this process, and what is printed."""
