"""Index jobs: build, update, compact and publish."""
