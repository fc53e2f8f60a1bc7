"""The cell magic of notebooks: `%load_ext tessera`, then cells that begin with `%%tile`."""

import argparse
import shlex
import sys

from . import _compile, _frontend
from ._program import Program


class _Parser(argparse.ArgumentParser):
    """Raises ValueError where the command line would exit."""

    def error(self, message):
        raise ValueError(f"%%tile: {message}; {self.format_usage().strip()}")


def _make_parser():
    parser = _Parser(prog="%%tile", add_help=False)
    parser.add_argument("-D", dest="parameters", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--schedule", metavar="FIELDS")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--remarks", action="store_true")
    return parser


def _read_parameters(texts):
    parameters = {}
    for text in texts:
        name, equal, value = text.partition("=")
        if not name or not equal:
            raise ValueError(f"%%tile: -D expects NAME=VALUE, got '{text}'")
        parameters[name] = value
    return parameters


def tile(shell, line, cell):
    """Compiles a cell and binds its kernels and sequences by name.

        %%tile -D D=64 --cpu

    -D NAME=VALUE      a value of a parameter
    --schedule FIELDS  overrides of the schedule
    --cpu              bind programs that run on the CPU; ptxas is not needed then
    --remarks          show remarks too
    """
    options = _make_parser().parse_args(shlex.split(line))
    parameters = _read_parameters(options.parameters)
    diagnostics, text = [], cell + "\n"
    source, file_name = _frontend._read_source(text)
    request = _compile.make_request(parameters, schedule=options.schedule, image="ptx" if options.cpu else "cubin")
    # Compiled again each time, for a result that is kept comes without diagnostics.
    bundle = _compile._find_or_compile(source, file_name, request, False, diagnostics.append)
    for diagnostic in diagnostics:
        if options.remarks or diagnostic.severity != "remark":
            print(diagnostic, file=sys.stderr)
    for name, kernel in bundle.kernels.items():
        shell.user_ns[name] = Program(text, kernel=name, **parameters) if options.cpu else kernel
    print("bound: " + ", ".join(bundle.kernels))


def load(shell):
    """Registers the magic."""
    shell.register_magic_function(lambda line, cell: tile(shell, line, cell), "cell", "tile")
