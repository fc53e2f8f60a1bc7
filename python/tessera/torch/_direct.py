"""Attention past PyTorch's dispatcher where nobody sees ops: tessera_torch_attention of tessera-c/Torch.h."""

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int32, c_size_t, c_ssize_t, c_void_p
from typing import NamedTuple

import torch
import torch.autograd.forward_ad as forward_ad

from .._attention import _recipes
from .._core import _exchange, _library
from . import _native, _op

_CPU, _CUDA = 1, 2  # DLDeviceType
# What is looked up in torch in each call costs the host time.
_is_dynamo_compiling = torch.compiler.is_dynamo_compiling
_count_dispatch_modes = torch._C._len_torch_dispatch_stack
_is_function_mode_enabled = torch._C._is_torch_function_mode_enabled
_is_tracing = torch._C._is_tracing
_is_autocast_enabled, _are_transforms_active = torch._C._is_any_autocast_enabled, torch._C._are_functorch_transforms_active
_profiler = torch.autograd.profiler
_copy = torch.Tensor.copy_


class _Options(ctypes.Structure):
    """tessera_torch_direct_options"""

    _fields_ = [
        ("framework", _exchange.Framework), ("make_empty", c_void_p), ("copy", c_void_p),
        ("element_types", c_void_p * _library.FIRST_SCALAR), ("byte_type", c_void_p), ("get_current_device", c_void_p),
        ("device_type", c_int32), ("text", c_char_p),
        ("tensor_count", c_int32), ("numbers", c_char_p), ("prepares", c_int32),
    ]  # fmt: skip


class _ForwardOptions(ctypes.Structure):
    """tessera_torch_forward_options"""

    _fields_ = [
        ("direct", c_void_p), ("numbers", c_void_p), ("call_count", c_int32), ("kept_count", c_int32), ("returns_lse", c_int32),
        ("to_save", c_void_p), ("materialize_grads", c_void_p), ("kept_numbers", c_void_p), ("never", c_void_p),
        ("other", c_void_p),
    ]  # fmt: skip


class _BackwardOptions(ctypes.Structure):
    """tessera_torch_backward_options"""

    _fields_ = [
        ("direct", c_void_p), ("input_count", c_int32), ("first", c_int32), ("learned", POINTER(c_int32)),
        ("learned_count", c_size_t),
    ]  # fmt: skip


@functools.lru_cache(maxsize=None)
def _functions():
    function = c_void_p, c_void_p, c_void_p, c_ssize_t
    signatures = {
        "tessera_torch_direct_create": (c_void_p, POINTER(_Options)), "tessera_torch_call": function,
        "tessera_torch_forward_create": (c_void_p, POINTER(_ForwardOptions)), "tessera_torch_apply_forward": function,
        "tessera_torch_backward_create": (c_void_p, POINTER(_BackwardOptions)), "tessera_torch_apply_backward": function,
    }  # fmt: skip
    library = _library.runtime()
    # With the GIL, as they read objects of Python.
    return _library.declare(ctypes.PyDLL(library._name, handle=library._handle), signatures)


def _find_current_device():
    """The address of PyTorch's function for it, None where there is none."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
    return ctypes.cast(getattr(library, "aoti_torch_get_current_device_index", None), c_void_p).value


def make(text, tensor_count, numbers, prepares=False, device_type=_CUDA):
    """A function for calls of a text, see tessera_torch_call; None where PyTorch is too old. `numbers` says what their tuples of
    numbers have, and `prepares` whether the function prepares calls that no op has prepared."""
    framework = _exchange.create_framework(torch)
    place = "cuda" if device_type == _CUDA else "cpu"
    make_empty = getattr(torch._C._dynamo.guards, f"_empty_strided_{place}", None)
    current_device = _find_current_device() if device_type == _CUDA else None
    if framework is None or make_empty is None or (device_type == _CUDA and current_device is None):
        return None
    # All of these live as long as the process, as the functions do.
    types = (c_void_p * _library.FIRST_SCALAR)()
    for element in _library.ELEMENTS:
        types[element.code] = id(getattr(torch, element.torch))
    _kept.append(make_empty)
    options = _Options(
        framework, id(make_empty), id(_copy), types, id(torch.uint8), current_device, device_type, text.encode(), tensor_count,
        numbers.encode(), prepares,
    )  # fmt: skip
    handle = _functions().tessera_torch_direct_create(options)
    return _exchange.make_function("tessera_torch_call", _functions().tessera_torch_call, handle) if handle else None


# What contexts of autograd keep is in these attributes, which their methods write.
_TO_SAVE, _MATERIALIZE_GRADS, _NUMBERS = map(sys.intern, ("to_save", "materialize_grads", "numbers"))
_has_attributes = all(hasattr(torch._C._FunctionBase, name) for name in (_TO_SAVE, _MATERIALIZE_GRADS))


def _get_handle(function):
    """The address of what a function of `make` computes with, None where it is another one."""
    return getattr(function, "__self__", None) if _has_attributes else None


def make_forward(function, numbers, call_count, kept_count, return_lse, other):
    """The forward of a function of autograd around a function of `make`, see tessera_torch_apply_forward; `other` where there is
    none."""
    handle = _get_handle(function)
    if handle is None:
        return other
    objects = _TO_SAVE, _MATERIALIZE_GRADS, _NUMBERS, False, other
    options = _ForwardOptions(
        handle, None if numbers is None else id(numbers), call_count, kept_count, bool(return_lse), *map(id, objects)
    )
    address = _functions().tessera_torch_forward_create(options)
    if not address:
        return other
    _kept.append((numbers, *objects))
    return _exchange.make_function("tessera_torch_apply_forward", _functions().tessera_torch_apply_forward, address)


def make_backward(function, input_count, first=0, learned=()):
    """The backward of a function of autograd around a function of `make`, see tessera_torch_apply_backward, which gives None where
    the op is to be called. `first` is the input that is q, and `learned` are those that have gradients beside q, k and v."""
    handle = _get_handle(function)
    if handle is None:
        return _do_nothing
    places = (c_int32 * len(learned))(*learned)
    address = _functions().tessera_torch_backward_create(_BackwardOptions(handle, input_count, first, places, len(learned)))
    return _exchange.make_function("tessera_torch_apply_backward", _functions().tessera_torch_apply_backward, address)


class Calls(NamedTuple):
    """What functions of autograd are made around."""

    #: Gives output and LSE, of `make`.
    function: Callable
    #: What the tuples of numbers of calls have, as `make` has it.
    numbers: str
    #: The tensors of a call, those of them that are kept for the backward pass, and all: further ones are kept alone.
    call_count: int
    kept_count: int
    count: int
    #: The text of the gradients, of an order of sums.
    write_gradients: Callable
    #: Which inputs have gradients beside q, k and v.
    learned: tuple = ()


def make_apply(calls, numbers, return_lse, deterministic, call_forward, call_backward):
    """The apply of a function of autograd where nothing sees ops. Its inputs are tensors, as PyTorch asks of every other one in
    several ways whether it is one, behind a tuple of numbers where `numbers` is None. What the library does not do
    `call_forward(context, *inputs)` and `call_backward(kept tensors, numbers, gradient, that of the LSE or None)` do by ops."""
    first, backwards = int(numbers is None), {}

    def add_backward(order):
        tensor_count = 7 + calls.kept_count - 3 + calls.count - calls.call_count
        function = make(calls.write_gradients(order), tensor_count, calls.numbers) if _op.has_native else None
        return backwards.setdefault(order, make_backward(function, first + calls.count, first, calls.learned))

    class Unwatched(torch.autograd.Function):
        forward = staticmethod(
            make_forward(calls.function, numbers, calls.call_count, calls.kept_count, return_lse, call_forward)
        )

        @staticmethod
        def backward(ctx, grad, grad_lse=None):
            saved = ctx.saved_tensors  # Hooks let this be asked for once.
            given = ctx.numbers if numbers is None else numbers
            if not (is_watched() or _is_grad_enabled()):
                order = find_order(deterministic)
                gradients = (backwards.get(order) or add_backward(order))(saved, grad, grad_lse, given)
                if gradients is not None:
                    return gradients
            return call_backward(saved, given, grad, grad_lse)

    # The apply of torch's Function prepares in Python what functorch's transforms need, and calls this one.
    return super(torch.autograd.Function, Unwatched).apply


# By tessera_torch_determinism_mode.
_ORDERS = _recipes.ANY_ORDER, _recipes.WARNED, _recipes.ALGORITHMS
_are_deterministic, _is_grad_enabled = torch.are_deterministic_algorithms_enabled, torch.is_grad_enabled


def find_order(deterministic):
    """Who asks for sums of gradients in one order, as recipes have it."""
    if deterministic:
        return _recipes.ASKED
    return _ORDERS[torch.get_deterministic_debug_mode()] if _are_deterministic() else _recipes.ANY_ORDER


def _do_nothing(*_):
    return None


_kept = []

# Those of `make` for named variants, by variant: of the output, and of output and LSE. Looking into a class of dictionaries that
# knows what to do with other keys takes four times as long.
functions, functions_with_lse = {}, {}
#: What the arguments of the ops of named variants are, from the variant on: it, the scale, the soft cap, left and right.
NUMBERS = "-sfii"


def add_function(variant, return_lse):
    """The function of a variant, which gives None where there is none."""
    what = _recipes.OUTPUT_AND_LSE if return_lse else _recipes.OUTPUT
    made = make(_recipes.write(what, _recipes.NAMED, variant), 4, NUMBERS) if _op.has_native else None
    return (functions_with_lse if return_lse else functions).setdefault(variant, made or _do_nothing)


def is_watched():
    """Whether anything sees the ops that this thread calls, but by tensors of its own: those, the functions do not take."""
    return (
        _is_dynamo_compiling()
        or _count_dispatch_modes()
        or _is_function_mode_enabled()
        or _profiler._is_profiler_enabled
        or _is_tracing()
    )


def is_traced():
    """Whether something records or transforms the ops of this thread: Dynamo, a dispatch mode or a transform."""
    return _is_dynamo_compiling() or _count_dispatch_modes() or _are_transforms_active()


def is_seen():
    """Whether anything sees the calls of functions of this thread: what sees ops, autocasts or transforms."""
    return is_watched() or _is_autocast_enabled() or _are_transforms_active() or forward_ad._current_level >= 0


def call_op(q, k, v, alibi, arguments, return_lse):
    """Output, and LSE where it is asked for. `arguments` are those of the op from the variant on, as far as they are given."""
    op = _op.forward if return_lse else _op.inference
    # The op refuses the same. What it refuses while Dynamo traces it is logged with the stack of each try, and compiled code cannot
    # catch all of it.
    _op.check(q, k, v, alibi)
    return _native.call(op, q, k, v, alibi, q, k, v, alibi, *arguments)


def attend(q, k, v, alibi, arguments, return_lse):
    """The same, wherever it is."""
    if not is_watched():
        try:
            function = (functions_with_lse if return_lse else functions)[arguments[0]]
        except KeyError:
            function = add_function(arguments[0], return_lse)
        results = function(q, k, v, alibi, arguments)
        if results is not None:
            return results
    return call_op(q, k, v, alibi, arguments, return_lse)
