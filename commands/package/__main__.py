"""Run `citeray` as `python -m citeray`."""

from commands.cli import main

if __name__ == "__main__":
    main()
