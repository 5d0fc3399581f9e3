"""The question: its type, entities, other words, and evidence given with it."""
