"""`citeray train` and its subcommands."""
