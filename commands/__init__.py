"""The `citeray` command line; each module defines one command."""
