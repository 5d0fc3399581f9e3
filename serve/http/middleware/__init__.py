"""Middleware of the HTTP server: API keys, rate limits, size limits and the request log."""
