"""Presets side by side through the graph, and what each stage costs."""
