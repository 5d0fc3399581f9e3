"""`python -m citeray` is `citeray`."""

from citeray import main

main()
