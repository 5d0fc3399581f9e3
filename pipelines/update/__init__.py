"""Updates a published index with new sources, and compacts its segments."""
