"""Settings of the index, the models and the serving stages, one module each."""
