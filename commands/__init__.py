"""The `citeray` command: one module a command, on top of everything."""
