"""From evidence to a verdict, an ideal and an exact answer."""
