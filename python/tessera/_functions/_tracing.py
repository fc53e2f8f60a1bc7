"""Runs of functions of scores and masks that are traced, or evaluated with numbers."""

from __future__ import annotations

import contextlib
import sys
import threading

from .._core import _typing
from .._core._errors import Error
from ._trace import Function, TraceError, Value, _state, is_own
from ._views import View


def length(name: str) -> _typing.Any:
    """The extent of a dimension of the kernel: "SQ" queries, "SK" keys, "H" heads, "B" batches."""
    where = getattr(_state, "current", None)
    if not isinstance(where, Function):
        if where is None:
            raise TraceError("length() is for functions of scores and masks, while they are traced or evaluated")
        return where[name]
    return where.length(name)


@contextlib.contextmanager
def _current(where):
    """For the time of a run, what its values belong to."""
    before = getattr(_state, "current", None)
    _state.current = where
    try:
        yield
    finally:
        _state.current = before


def evaluate(function, values, arguments, extents):
    """The function on numbers or arrays, with the extents of the kernel's dimensions."""
    with _current(extents):
        return function(*values, **arguments)


def _find_place(function):
    """File and line where a function is defined."""
    code = getattr(getattr(function, "function", function), "__code__", None)
    code = getattr(function, "__code_of__", code)
    return f"{code.co_filename}:{code.co_firstlineno}: " if code else ""


def _find_line(error):
    """File and line in the user's code where an exception was raised."""
    line, traceback = "", error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not is_own(traceback.tb_frame.f_globals.get("__name__", "")):
            line = f"{code.co_filename}:{traceback.tb_lineno}: "
        traceback = traceback.tb_next
    return line


class _Silent:
    """Standard output without what one thread prints."""

    def __init__(self, stream):
        self._stream, self._thread = stream, threading.get_ident()

    def write(self, text):
        return len(text) if threading.get_ident() == self._thread else self._stream.write(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)


# Standard output is the process's: who replaces it puts it back before another one does.
_silencing = threading.RLock()


@contextlib.contextmanager
def _silence():
    """For the second run of a function, which prints what the first has printed."""
    if sys.stdout is None:
        yield
        return
    with _silencing, contextlib.redirect_stdout(_Silent(sys.stdout)):
        yield


_KINDS = {float: "f32", int: "i32"}


def trace(name, function, parameters, result, declared):
    """(lines of `func.func @name`, where Python asks for each): parameters are (name, kind), `declared` arguments name: float,
    int or dimensions."""
    traced = _trace_once(name, function, parameters, result, declared)
    # A kernel has what one run of the function says. What another run says otherwise is drawn, counted or read from a clock.
    with _silence():
        again = _trace_once(name, function, parameters, result, declared)
    if again != traced:
        raise TraceError(f"{_find_place(function)}the {name} says something else each time that it runs, as with random numbers; "
                         "make these outside of it and give them as arguments or tensors")  # fmt: skip
    return traced


def _trace_once(name, function, parameters, result, declared):
    here = _find_place(function)
    body = Function(declared, here)
    with _current(body):
        value = _run(body, name, function, parameters, declared)
        if result == "i1" and value.kind != "i1":
            article = "an" if value.kind.startswith("i") else "a"
            raise TraceError(f"{here}the mask gives {article} {value.kind}; a mask is a condition, as a comparison gives it")
        value = body.cast(value, result)
    signature = ", ".join(f"%{parameter}: {kind}" for parameter, kind in parameters)
    lines = [f"func.func @{name}({signature}) -> {result} {{", *body.lines, f"  func.return {value.name} : {result}", "}"]
    return lines, [here, *body.places, *[here] * (len(lines) - len(body.places) - 1)]


def _run(body, name, function, parameters, declared):
    """What a function gives, of this run."""
    values = [Value(body, f"%{parameter}", kind) for parameter, kind in parameters]
    given = {
        argument: body.argument(argument, _KINDS[kind]) if kind in (float, int) else View(body, argument, kind)
        for argument, kind in declared.items()
    }
    try:
        result = function(*values, **given)
        if result is None or isinstance(result, (tuple, list, dict, str)):
            wanted = "a condition, as a comparison gives it" if name == "mask" else "one number"
            raise TraceError(f"{body.here}the {name} gives a {type(result).__name__}; it is {wanted}")
        value = body.lift(result)
        value.name  # A value that is emitted late is one of this function.
    except RecursionError:
        raise TraceError(f"{body.here}the {name} calls a function that calls itself without end") from None
    except Exception as error:
        if isinstance(error, TypeError) and not isinstance(error, Error) and not _find_line(error):
            takes = ", ".join(["score" if name == "s" else name for name, _ in parameters] + list(declared))
            raise TraceError(f"{body.here}a {name} is called with ({takes}); this one takes others: {error}") from None
        # What a function raises after a refusal is no answer, and JAX says it in words of its own.
        if body.stopped is None and not isinstance(error, Error):
            raise TraceError(f"{_find_line(error) or body.here}{type(error).__name__}: {error}") from error
        raise (body.stopped or error) from None
    if body.stopped is not None:
        raise body.stopped
    return value
