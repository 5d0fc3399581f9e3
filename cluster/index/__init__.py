"""The index on disk: its layout, manifest, writers and readers."""
