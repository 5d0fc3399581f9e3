"""Answers as documents in Markdown, DOCX and PDF."""
