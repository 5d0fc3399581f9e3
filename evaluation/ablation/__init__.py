"""Compare presets over the same questions, and measure the loss at each stage."""
