"""Functions of scores and masks, with what they take: arrays become views of the kernel, numbers its scalars."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from .._attention import _block_lists, _gradient_kernels, _named
from .._compiler._program import Program, find_fact
from .._core import _kernel
from .._functions import _captured, _computed, _names, _places
from .._functions._trace import TraceError
from .._functions._variant import keeps_lists
from . import _call, _numpy


def to_array(value):
    """An array of JAX with the values of one of numpy. Without jax_enable_x64 JAX has 32 bits of numbers of 64."""
    with jax.ensure_compile_time_eval():  # Its numbers are known, also while JAX traces.
        array = jnp.asarray(value)
    if array.dtype != value.dtype and value.dtype.kind in "iuf":
        _check_range(value[np.isfinite(value)], array.dtype)
    return array


def _check_range(numbers, dtype):
    limits = (np.finfo if numbers.dtype.kind == "f" else np.iinfo)(dtype)
    for number in (numbers.min(), numbers.max()) if numbers.size else ():
        if not limits.min <= number <= limits.max:
            raise TraceError(
                f"an array of {numbers.dtype} has {number}, and JAX keeps {dtype}, which ends before: set jax_enable_x64, or "
                "give numbers that fit"
            )


class _Found(_captured.Found):
    tensors, constants = jax.Array, (np.dtype, *_numpy.TYPES)
    elements = {jnp.dtype(name): element for name, element in _captured.ELEMENTS.items()}

    def convert(self, value):
        if isinstance(value, np.generic):
            return value.item()
        return to_array(value) if isinstance(value, np.ndarray) else _numpy.convert(value)


@functools.lru_cache(maxsize=256)
def _list_extras(source):
    """The names of what the kernel takes after its scale."""
    # Where lists are arguments the source has kernels that make them too.
    kernel = "attention" if keeps_lists(source) else None
    names = tuple(find_fact("names", source, [kernel], lambda: " ".join(Program(source, kernel).names)).split())
    return names[names.index("scale") + 1 :]


@functools.lru_cache(maxsize=256)
def list_gradient_extras(source, learned, fixed, lse):
    """The names of what the kernels of gradients take after dV, without the scale where it is the first."""
    program = _gradient_kernels.find_gradients_of_source(Program, source, learned, fixed, "bf16", 64, 64, lse)
    names = program.names[program.names.index("dv") + 1 :]
    return names[1:] if names[0] == "scale" else names


@functools.lru_cache(maxsize=256)
def list_lister_extras(source, lists):
    """The names of what kernels that make lists take."""
    return _block_lists.find_lister(Program, source, lists).names


def trace(score_mod, score_args, mask_mod, mask_args, sinks=None):
    """(source, views, numbers, integers by name, names for messages, which views may have gradients) of functions of Python, and
    of sinks."""
    found = _Found()
    written = _captured.find(found, _captured.write, score_mod, score_args, mask_mod, mask_args, sinks)
    if written.problem is not None:
        raise TraceError(written.problem)
    given = [
        {name: _computed.give(number, found.values) for name, number in zip(part, numbers)}
        for part, numbers in zip(written.names, (written.views, written.numbers, written.integers))
    ]
    labels = {name: _names.find_label(name) for part in written.names for name in part}
    return written.source, *given, labels, written.learnable


def read_variant(variant, given):
    """The same of a tessera.Variant, whose arguments `given` has by name."""
    views, numbers, integers = variant.sort_arguments(given)
    views = {name: to_array(value) if isinstance(value, np.ndarray) else value for name, value in views.items()}
    for name, value in views.items():
        _check_view(name, variant.arguments[name], value)
    for name, value in {**numbers, **integers}.items():
        if isinstance(value, jax.Array):
            raise TypeError(
                f"argument '{name}' of the variant is an array of JAX, and numbers are constants of a program: declare "
                f"{name}=(1,) and take {name}[0], or give {name}.item() where it is known"
            )
    return variant.source, views, numbers, integers, {name: name for name in given}, variant.learnable


def _check_view(name, dims, value):
    if not isinstance(value, jax.Array):
        raise TypeError(f"argument '{name}' of the variant is a view of dimensions {dims}, got a {type(value).__name__}")
    if value.dtype != jnp.float32 or value.ndim != len(dims):
        raise TypeError(
            f"argument '{name}' of the variant is {value.dtype} of shape {tuple(value.shape)}; it is a float32 view of "
            f"dimensions {dims}"
        )


def describe(source, views, numbers, integers, labels, learnable, extents, order=None):
    """(fields of a Call, views in its order) of functions; `extents` are those of "b" and "h"."""
    order = _list_extras(source) if order is None else order
    kinds = {**dict.fromkeys(views, "v"), **dict.fromkeys(numbers, "f"), **dict.fromkeys(integers, "i")}
    extras = "".join(kinds[name] for name in order)
    asked = [name for name in order if name in views]
    arrays = [views[name] if views[name].ndim else views[name].reshape(1) for name in asked]
    known, free = _places.read(source)
    places, free = [], set(free)
    for name, array in zip(asked, arrays):
        expected = known.get(name, (None,) * array.ndim)
        fits = [letter is None or extents[letter] == extent for letter, extent in zip(expected, array.shape)]
        free.update(letter for letter, fit in zip(expected, fits) if not fit)
        places.append(tuple(letter if fit else None for letter, fit in zip(expected, fits)))
    scalars = {
        kind: tuple(
            _kernel._convert_scalar({"name": labels[name], "type": kind}, given[name]) for name in order if name in given
        )
        for kind, given in (("f32", numbers), ("i32", integers))
    }
    fields = {
        "variant": source, "extras": extras, "gradient_extras": extras, "numbers": _call.pack(scalars["f32"]), "integers": scalars["i32"],
        "names": tuple(labels[name] for name in asked), "places": tuple(places), "free": frozenset(free),
        "order": tuple(order), "learnable": tuple(learnable),
    }  # fmt: skip
    return fields, arrays


def describe_slopes(slopes, left, right, softcap, extents):
    """The fields of a Call of `attention`'s slopes beside a window and a soft cap, as functions whose kernels make the gradient
    of slopes too."""
    given = trace(*_named.make_score(slopes, softcap), _named.make_window(left, right), ())
    fields, _ = describe(*given, extents)
    return {**fields, "names": ("alibi",)}
