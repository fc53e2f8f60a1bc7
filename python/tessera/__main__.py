"""`python -m tessera` is the command line of the package, whatever the PATH."""

from ._compiler._command import main

main()
