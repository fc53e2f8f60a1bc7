"""How the library asks for what a call launches (tessera-c/Calls.h)."""

import ctypes
import threading
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p

from .._core import _layouts, _library
from ._program import Program

_MOST_DIMS = 5
_NAMES = {element.code: element.name for element in _library.ELEMENTS}


class _Layout(ctypes.Structure):
    """tessera_call_layout"""

    _fields_ = [
        ("type", c_int32), ("rank", c_int32), ("extents", c_int64 * _MOST_DIMS), ("strides", c_int64 * _MOST_DIMS),
        ("is_aligned", c_int32), ("fill", c_int32),
    ]  # fmt: skip


class _Operand(ctypes.Structure):
    """tessera_call_operand"""

    _fields_ = [("source", c_int32), ("index", c_int32)]


class _Step(ctypes.Structure):
    """tessera_call_step"""

    _fields_ = [
        ("kernel", c_void_p), ("program", c_void_p), ("operands", POINTER(_Operand)), ("operand_count", c_size_t), ("is_beside", c_int32),
    ]  # fmt: skip


class _Copy(ctypes.Structure):
    """tessera_call_copy"""

    _fields_ = [("tensor", c_int32), ("layout", _Layout)]


class _View(ctypes.Structure):
    """tessera_call_view"""

    _fields_ = [("memory", _Operand), ("layout", _Layout), ("offset", c_int64)]


class _Number(ctypes.Structure):
    """tessera_call_number"""

    _fields_ = [("source", c_int32), ("index", c_int32), ("dim", c_int32), ("is_stride", c_int32)]


class _Free(ctypes.Structure):
    """tessera_call_free"""

    _fields_ = [("number", _Number), ("least", c_int64), ("most", c_int64), ("multiple", c_int64), ("same", c_int32)]


class _Following(ctypes.Structure):
    """tessera_call_following"""

    _fields_ = [("number", _Number), ("free", c_int32), ("factor", c_int64), ("summand", c_int64)]


class _Recipe(ctypes.Structure):
    """tessera_call_recipe"""

    _fields_ = [
        ("steps", POINTER(_Step)), ("step_count", c_size_t), ("results", POINTER(_Layout)), ("result_count", c_size_t),
        ("temporaries", POINTER(_Layout)), ("temporary_count", c_size_t), ("copies", POINTER(_Copy)), ("copy_count", c_size_t),
        ("views", POINTER(_View)), ("view_count", c_size_t), ("free", POINTER(_Free)), ("free_count", c_size_t),
        ("followings", POINTER(_Following)), ("following_count", c_size_t), ("is_final", c_int32), ("error", c_char_p),
    ]  # fmt: skip


Resolver = ctypes.CFUNCTYPE(c_int, c_char_p, POINTER(_Layout), c_size_t, POINTER(_Recipe))
# What the last recipe of each thread is made of, and its last failure: (exception, its text for the library). What
# threading.local keeps goes with each call of a thread that is not Python's.
_recipes_of, _failures = {}, {}
# Kernels of recipes, which the library takes to be there for ever.
_kept = set()


def _read_layout(layout):
    if not layout.type:
        return None
    rank = layout.rank
    return _layouts.Layout(
        tuple(layout.extents[:rank]), tuple(layout.strides[:rank]), _NAMES[layout.type], bool(layout.is_aligned)
    )


def _write_layout(layout):
    shape, strides = ((c_int64 * _MOST_DIMS)(*numbers) for numbers in (layout.shape, layout.strides))
    return _Layout(_library.ELEMENT_TYPES[layout.element], len(layout.shape), shape, strides, 1, layout.fill)


def _write_step(step, is_beside):
    kernel, operands = step
    array = (_Operand * len(operands))(*operands)
    _kept.add(kernel)
    is_program = isinstance(kernel, Program)
    return _Step(None if is_program else kernel._handle, kernel._handle if is_program else None, array, len(array), is_beside)


def _write(recipe):
    """A _Recipe, whose arrays live as long as it."""
    arrays = []
    for kind, write, values in (
        (_Step, lambda step: _write_step(*step), [(step, i in recipe.beside) for i, step in enumerate(recipe.steps)]),
        (_Layout, _write_layout, recipe.results),
        (_Layout, _write_layout, recipe.temporaries),
        (_Copy, lambda copy: _Copy(copy[0], _write_layout(copy[1])), recipe.copies),
        (_View, lambda view: _View(view[0], _write_layout(view[1]), view[2]), recipe.views),
        (_Free, lambda free: _Free(*free), recipe.free),
        (_Following, lambda following: _Following(*following), recipe.followings),
    ):  # fmt: skip
        array = (kind * len(values))(*map(write, values))
        arrays += [array, len(array)]
    return _Recipe(*arrays, recipe.is_final)


def _describe(variant, error):
    """Why there is nothing to launch. The text of a source would bury the reason."""
    name = "these functions of scores and masks" if "\n" in variant or "\\n" in variant else f"'{variant}'"
    return f"there is no kernel for {name}: {str(error).partition(chr(10))[0]}"


def make_resolver(make, lines):
    """A Resolver. `make(text, tensors)` gives a Recipe for the tensors of a call, a Layout each or None; the variant stands behind
    so many lines of the text. What it raises is kept for `take_failure`."""

    @Resolver
    def resolve(text, tensors, count, recipe):
        text, thread = text.decode(), threading.get_ident()
        try:
            made = _recipes_of[thread] = _write(make(text, [_read_layout(tensors[i]) for i in range(count)]))
        except Exception as error:
            described = _describe(text.split("\n", lines)[-1], error).encode()
            _failures[thread] = error, described
            recipe.contents.error = described
            return 1
        ctypes.memmove(recipe, ctypes.byref(made), ctypes.sizeof(_Recipe))
        return 0

    return resolve


def take_failure():
    """The exception of the thread's last failure, once; None without one."""
    return _failures.pop(threading.get_ident(), (None,))[0]
