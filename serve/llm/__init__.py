"""Language model client, prompts and reply formats."""
