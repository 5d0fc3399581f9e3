"""The shipped settings, presets and prompts, as data."""
