"""Score run files with the standard measures of the field; does not need Ray."""
