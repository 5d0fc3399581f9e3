"""The ground that indexing and serving stand on: records, settings, models, index format."""
