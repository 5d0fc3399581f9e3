"""Question analysis: type, entities, field tags, rewriting, and evidence given with it."""
