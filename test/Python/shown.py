# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %python %s
"""What functions of scores print and assert: numbers on the interpreter, and while they are traced what a value is."""

import contextlib
import ctypes
import io
import math
import re
import sys
import threading

import tessera


class Zeros:
    """Zeros of f32, with the interface of numpy's arrays."""

    def __init__(self, *shape):
        self.memory = (ctypes.c_float * math.prod(shape))()
        address = ctypes.addressof(self.memory)
        self.__array_interface__ = {"shape": shape, "typestr": "<f4", "data": (address, False), "version": 3}


def run(score):
    """What a variant prints on the interpreter, of scores that are 0."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        program = tessera.Variant(score=score).program(D=64, T="f16")
        q, k, v, o = (Zeros(1, 1, 2, 64) for _ in range(4))
        program(q, k, v, o, Zeros(1, 1, 2), 1.0)
    return printed.getvalue()


def shown(s, b, h, q, k):
    biased = s + 2.5
    tessera.print(biased, 'a "biased" $score', where=(q == 0) & (k == 0))
    return biased


text = run(shown)
assert 'a "biased" $score' in text and "2.5" in text, text
assert re.search(r"at .*: tensor<\d+x\d+xf32>", text), text


def never(s, b, h, q, k):
    tessera.print(s, "never", where=q > 1000)
    return s


assert "never" not in run(never)


def plain(s, b, h, q, k):
    print(s)
    return s * 2


text = run(plain)
assert text.count("traced f32") == 1 and "tessera.print" in text, text


# Two functions are traced at the same time, and the one that began first ends first.
begun, ended, output = threading.Event(), threading.Event(), sys.stdout


def trace_two(calls, before, after):
    def score(s, b, h, q, k):
        calls.append(s)
        if len(calls) == 2:
            before.set()
            after.wait(0.5)
        return s

    tessera.Variant(score=score)


first, entered = [], threading.Event()
thread = threading.Thread(target=lambda: (trace_two(first, entered, begun), ended.set()))
thread.start()
assert entered.wait(60)
trace_two([], begun, ended)
thread.join()
assert sys.stdout is output and len(first) == 2, sys.stdout


def held(s, b, h, q, k):
    tessera.assert_(s < 100.0, "a large score")
    return s


assert run(held) == ""


def failing(s, b, h, q, k):
    tessera.assert_(s < -1.0, "no small score")
    return s


try:
    run(failing)
    raise SystemExit("an assertion held")
except tessera.CompileError as error:
    assert "assertion failed: no small score" in str(error) and "is false at" in str(error), error

# Beside a trace both are those of Python.
with contextlib.redirect_stdout(io.StringIO()) as printed:
    tessera.print(3, "number")
    tessera.print(1, where=False)
assert printed.getvalue() == "number 3\n", printed.getvalue()
tessera.assert_(True, "true")
try:
    tessera.assert_(False, "none")
    raise SystemExit("an assertion held")
except AssertionError as error:
    assert str(error) == "none"

try:
    tessera.Variant(score=lambda s, b, h, q, k: tessera.assert_(s, "a number") or s).source
    raise SystemExit("a number is no condition")
except tessera.TraceError as error:
    assert "assert_ takes a condition" in str(error), error
