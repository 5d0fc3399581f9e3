"""Settings and presets, read once at program start."""
