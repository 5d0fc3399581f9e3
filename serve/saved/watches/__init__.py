"""Saved questions: ask them again after each new index version, and report the changes."""
