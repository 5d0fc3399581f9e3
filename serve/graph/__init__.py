"""The stages as a Ray Serve graph and in this process."""
