"""Question analysis: type, entities, field tags, spelling and rewriting."""
