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


class _Stage(ctypes.Structure):
    """tessera_torch_stage"""

    _fields_ = [("direct", c_void_p), ("tensors", POINTER(c_int32)), ("count", c_size_t)]


class _ForwardOptions(ctypes.Structure):
    """tessera_torch_forward_options"""

    _fields_ = [
        ("stages", POINTER(_Stage)), ("stage_count", c_size_t), ("input_count", c_int32), ("numbers", c_void_p),
        ("kept", POINTER(c_int32)), ("results", POINTER(c_int32)), ("kept_count", c_size_t), ("result_count", c_size_t),
        ("to_save", c_void_p), ("materialize_grads", c_void_p), ("kept_numbers", c_void_p), ("never", c_void_p), ("other", c_void_p),
    ]  # fmt: skip


class _BackwardOptions(ctypes.Structure):
    """tessera_torch_backward_options"""

    _fields_ = [
        ("stages", POINTER(_Stage)), ("stage_count", c_size_t), ("kept_count", c_int32), ("result_count", c_int32),
        ("gradients", POINTER(c_int32)), ("input_count", c_size_t),
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


class Stage(NamedTuple):
    """One of several calls that follow each other. Tensors have places: those that the calls are given, then the results of each."""

    text: str
    #: The places of its tensors, None for one that is left out.
    places: tuple


class Calls(NamedTuple):
    """What functions of autograd are made around."""

    #: What the tuples of numbers of calls have, as `make` has it.
    numbers: str
    #: How many tensors the function takes.
    input_count: int
    #: The Stages of the forward pass, whose places begin with the inputs.
    forward: tuple
    #: The places of what is kept for the backward pass, and of the results.
    kept: tuple
    results: tuple
    #: The Stages of the gradients, of an order of sums. Their places begin with what is kept and the gradients of the results.
    list_backward: Callable[[str], tuple]
    #: The places of the gradients of the inputs, None for those that have none.
    gradients: tuple


def describe_attention(numbers, own, both, count, return_lse, text, write_gradients, learned=()):
    """The Calls of attention, whose inputs are q, k, v and views: so many that are kept for the backward pass, the same with those of the
    forward pass alone, and with those of the backward pass alone. `learned` are the inputs that have gradients beside q, k and v."""
    kept = 0, 1, 2, count, count + 1, *range(3, own), *range(both, count)
    grads = len(kept), len(kept) + 1 if return_lse else None
    first, further = len(kept) + (2 if return_lse else 1), range(5, len(kept))
    gradients = dict(zip((0, 1, 2, *learned), range(first, first + 3 + len(learned))))

    def list_backward(order):
        return (Stage(write_gradients(order), (0, 1, 2, 3, grads[0], 4, grads[1], *further)),)

    results = (count, count + 1) if return_lse else (count,)
    forward = Stage(text, tuple(range(both)))
    return Calls(numbers, count, (forward,), kept, results, list_backward, tuple(map(gradients.get, range(count))))


def _list_places(places):
    return (c_int32 * len(places))(*[-1 if place is None else place for place in places])


def _make_stages(calls, stages):
    """An array of _Stage; None where calls of one are not possible."""
    if not (_op.has_native and _has_attributes):
        return None
    functions = [make(stage.text, len(stage.places), calls.numbers) for stage in stages]
    if None in functions:
        return None
    found = [(function.__self__, _list_places(stage.places), len(stage.places)) for function, stage in zip(functions, stages)]
    return (_Stage * len(stages))(*found)


def make_forward(calls, numbers, other):
    """The forward of a function of autograd around Calls, see tessera_torch_apply_forward; `other` where there is none."""
    stages = _make_stages(calls, calls.forward)
    if stages is None:
        return other
    objects = _TO_SAVE, _MATERIALIZE_GRADS, _NUMBERS, False, other
    options = _ForwardOptions(
        stages, len(stages), calls.input_count, None if numbers is None else id(numbers), _list_places(calls.kept),
        _list_places(calls.results), len(calls.kept), len(calls.results), *map(id, objects),
    )  # fmt: skip
    address = _functions().tessera_torch_forward_create(options)
    if not address:
        return other
    _kept.append((numbers, *objects))
    return _exchange.make_function("tessera_torch_apply_forward", _functions().tessera_torch_apply_forward, address)


def make_backward(calls, order, first=0):
    """The backward of the same for an order of sums, see tessera_torch_apply_backward, which gives None where the op is to be called.
    `first` inputs come before the tensors."""
    stages = _make_stages(calls, calls.list_backward(order))
    if stages is None:
        return _do_nothing
    gradients = _list_places((*[None] * first, *calls.gradients))
    options = _BackwardOptions(stages, len(stages), len(calls.kept), len(calls.results), gradients, len(gradients))
    address = _functions().tessera_torch_backward_create(options)
    return _exchange.make_function("tessera_torch_apply_backward", _functions().tessera_torch_apply_backward, address)


def make_apply(calls, numbers, deterministic, call_forward, call_backward):
    """The apply of a function of autograd where nothing sees ops. Its inputs are tensors, as PyTorch asks of every other one in
    several ways whether it is one, behind a tuple of numbers where `numbers` is None. What the library does not do
    `call_forward(context, *inputs)` and `call_backward(kept tensors, numbers, *gradients of the results)` do by ops."""
    first, backwards = int(numbers is None), {}

    def add_backward(order):
        return backwards.setdefault(order, make_backward(calls, order, first))

    class Unwatched(torch.autograd.Function):
        forward = staticmethod(make_forward(calls, numbers, call_forward))

        @staticmethod
        def backward(ctx, *grads):
            saved = ctx.saved_tensors  # Hooks let this be asked for once.
            given = ctx.numbers if numbers is None else numbers
            if not (is_watched() or _is_grad_enabled()):
                order = find_order(deterministic)
                gradients = (backwards.get(order) or add_backward(order))(saved, grads, given)
                if gradients is not None:
                    return gradients
            return call_backward(saved, given, *grads)

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
