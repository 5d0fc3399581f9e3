"""What this machine does, measured."""
