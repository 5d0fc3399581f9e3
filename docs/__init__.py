"""The documentation: pages, and the modules that build the site from them and from the code."""
