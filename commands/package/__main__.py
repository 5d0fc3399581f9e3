"""`python -m citeray` is `citeray`."""

from commands.cli import main

main()
