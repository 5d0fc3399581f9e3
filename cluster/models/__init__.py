"""The small models: where they come from, how they are loaded, what each says."""
