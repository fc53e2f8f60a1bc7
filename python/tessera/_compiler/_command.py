"""The executables of the package, which run in libtessera (tessera-c/Commands.h)."""

import ctypes
import os
import signal
import sys

from .._core import _library


def _run(name, function):
    from ._compile import find_own_ptxas

    library = _library.open_library(_library.find("libtessera.so"))
    arguments = [name, *sys.argv[1:]]
    array = (ctypes.c_char_p * (len(arguments) + 1))(*map(os.fsencode, arguments), None)
    if find_own_ptxas():
        # Of this interpreter's packages, unless the environment names others.
        os.environ.setdefault("VIRTUAL_ENV", sys.prefix)
    # Python would wait for the end of the call.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(getattr(library, function)(len(arguments), array))


def main():
    _run("tessera", "tessera_main")


def language_server():
    _run("tessera-lsp-server", "tessera_language_server_main")
