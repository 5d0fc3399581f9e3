"""The HTTP side: request forms, the API, its limits, the page."""
