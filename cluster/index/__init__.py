"""The index on disk: its layout, its manifest, its writer's and its reader's side."""
