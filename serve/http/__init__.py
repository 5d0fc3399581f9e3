"""HTTP server: API routes, request models, limits and the web page."""
