"""The papers' own experiments: their systems, their tables, their figures beside ours."""
