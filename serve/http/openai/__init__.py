"""OpenAI-compatible routes."""
