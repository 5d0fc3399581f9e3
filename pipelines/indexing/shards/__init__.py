"""Build, update and compact the segments of a shard."""
