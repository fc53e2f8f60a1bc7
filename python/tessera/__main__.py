"""`python -m tessera` is the command line of the package, whatever the PATH."""

from ._command import main

main()
