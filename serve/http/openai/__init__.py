"""Answers in OpenAI's form."""
