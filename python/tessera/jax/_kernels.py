"""Custom calls of kernels that ship, of whose arguments each is (letter, value), as tessera-c/Xla.h says."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp

from .._compiler import _choices
from . import _call


def new(*shape, dtype=jnp.float32):
    """A result that is to be made."""
    return jax.ShapeDtypeStruct(shape, dtype)


def like(x):
    return new(*x.shape, dtype=x.dtype)


def launch(name, parameters, *arguments, **details):
    """The results of the kernel of a source. `details` say how it takes operands, by their places: see `_call._make_kernel_recipe`."""
    operands, results, numbers, aliases = [], [], {"f": [], "i": []}, {}
    for letter, value in arguments:
        if letter in numbers:
            numbers[letter].append(value)
            continue
        if letter in "ad":
            aliases[len(operands)] = len(results)
        if letter in "vtad":
            operands.append(value)
        if letter in "road":
            results.append(like(value))
    text = json.dumps({"source": name, "parameters": parameters, **details})
    letters = "".join(letter for letter, _ in arguments)
    # Under vmap one call follows the other: kernels take no further dimension.
    call = jax.ffi.ffi_call(_call.KERNEL, results, input_output_aliases=aliases, vmap_method="sequential")
    _call.register()
    arrays = _call.make_arrays(_call.pack(numbers["f"]), numbers["i"])
    return call(*operands, variant=text, layout="BHSD", extras=letters, **arrays)


def choose(source, *extents, **parameters):
    """The values of all parameters of a source by what rules choose for this device, and for extents, (name, extent) of each."""
    extents = ("MULTIPROCESSORS", _call.count_multiprocessors()), *extents
    return _choices.choose_values(source, extents, _call.find_card(), tuple(parameters.items()))
