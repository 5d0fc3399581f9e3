"""An answer as a document that people keep: Markdown, DOCX and PDF."""
