"""Answers rated by people: a blind sheet to fill in, and how far two people agree."""
