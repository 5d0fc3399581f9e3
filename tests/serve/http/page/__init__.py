"""A package for pytest: what its tests share is put away when they have run."""
