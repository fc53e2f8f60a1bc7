# REQUIRES: ptxas
# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= TESSERA_PTXAS=%ptxas %torch-python %s tree global_tokens logarithmic stick_breaking
"""Masks and functions of scores of usual models (catalogue.py) become machine code, forward and of gradients, whose threads keep
all that they compute in registers.

    python3 test/Torch/catalogue_compiles.py [--widths 64,128] [NAME ...]

Without names all of them, which takes minutes. A kernel that ptxas spills is refused by the compiler; one that gave up a role
for its registers, which is a warning, is counted apart. The last line reads "N passed, N failed, N without a producer".
"""

import argparse
import sys
import time
import unittest.mock
import warnings

import catalogue
import torch

from tessera import CompileError
from tessera._attention import _gradient_kernels, _variants
from tessera._compiler import _compile
from tessera.torch import _captured

FUNCTIONS = {function.__name__: (None, function) for function in catalogue.MASKS}
FUNCTIONS.update({function.__name__: (function, None) for function in catalogue.SCORES})


def compile_forward(source, width):
    return _variants.Variant(source, "bf16", width, width, False, True).compile("many-long")


def compile_backward(source, width):
    return _gradient_kernels.find_gradients_of_source(_compile.compile, source, (), False, "bf16", width, width, False)


def check(name, form, width, source):
    diagnostics, plain, began = [], _compile.compile, time.monotonic()

    def noted(*arguments, **named):
        return plain(*arguments, cache=False, on_diagnostic=diagnostics.append, **named)

    where = f"{name} {form.__name__} d = {width}"
    with warnings.catch_warnings(record=True) as caught, unittest.mock.patch.object(_compile, "compile", noted):
        warnings.simplefilter("always")
        try:
            kernel = form(source, width)
        except CompileError as error:
            print(f"FAILED {where}: {error}", flush=True)
            return "failed"
    given_up = [str(entry) for entry in diagnostics if entry.severity == "warning"]
    roles = kernel.description.get("report", {}).get("roles", [])
    registers = ", ".join(f"{role['warpgroups']} x {role.get('registers_per_thread', 'all')} {role['role']}" for role in roles)
    notes = [str(entry.message).splitlines()[0] for entry in caught] + given_up
    print("; ".join([f"{where}: {registers or 'a sequence'}, {time.monotonic() - began:.1f} s", *notes]),
          flush=True)  # fmt: skip
    return "alone" if given_up else "passed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", default="64,128")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    passed = []
    for name in arguments.names or FUNCTIONS:
        score, mask = FUNCTIONS[name]
        written, _ = _captured.find(torch.device("cpu"), score, (), mask, ())
        for width in map(int, arguments.widths.split(",")):
            passed += [check(name, form, width, written.source) for form in (compile_forward, compile_backward)]
    print(f"{passed.count('passed')} passed, {passed.count('failed')} failed, {passed.count('alone')} without a producer")
    # A number for each score that is looked up by a number for each score takes the registers of all roles.
    sys.exit("failed" in passed or passed.count("alone") > 2)


if __name__ == "__main__":
    main()
