"""The language model: its client, its prompts, the forms of its replies."""
