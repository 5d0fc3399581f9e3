"""Settings and presets, read once at the entry."""
