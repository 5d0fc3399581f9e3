"""Stages of the pipeline, as a Ray Serve graph or in one process."""
