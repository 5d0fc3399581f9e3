"""Trains the small models that ship with CiteRay: `citeray train`."""
