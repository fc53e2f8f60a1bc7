"""The custom calls of XLA, forward and of gradients: one on each device, mapped over by folding into the batch."""

import ctypes
import functools
import math
import re
import threading
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental.custom_partitioning import custom_partitioning

from .. import _choice, _compile, _library, _program, _variants
from .._errors import LibraryError

FORWARD, BACKWARD = "tessera_attention", "tessera_attention_backward"
# Dimensions of attention's own tensors in sharding rules, [B, H, S, D]. There are n key heads; h: heads of queries.
_DIMS = {"q": "bhsd", "k": "bntd", "v": "bnte", "o": "bhse", "lse": "bhs"}
_interprets, _lock = False, threading.Lock()


def use_interpreter(enabled=True):
    """Lets attention of arrays on the CPU run by the interpreter, which is exact and slow: for tests without a GPU.
    Returns what it was before."""
    global _interprets
    before, _interprets = _interprets, enabled
    return before


def _find_gradients(kind, *key):
    # Devices ask at the same time, and the library keeps no kernel alive: there has to be one for all.
    with _lock:
        return _variants.find_gradients(kind, *key)


def _find_kernel(text, element_type, sizes, lse):
    gradients = _variants.read_gradients(text)
    if gradients is not None:
        kernel, extras = _find_gradients(_compile.compile, *gradients, element_type, sizes[3], sizes[6], lse)
        return kernel, None, extras, True
    kernel, extras, is_final = _variants.find_kernel(text, element_type, sizes, lse)
    return kernel, None, extras, is_final


def _find_program(text, element_type, sizes, lse):
    if not _interprets:
        raise ValueError(
            "attention runs on CUDA devices of compute capability 9.0; call tessera.jax.use_interpreter() to run tests "
            "on the CPU"
        )
    gradients = _variants.read_gradients(text)
    if gradients is not None:
        program, extras = _find_gradients(_program.Program, *gradients, element_type, sizes[3], sizes[6], lse)
        return None, program, extras, False
    found = _variants.find_variant(text, element_type, sizes[3], sizes[6], lse)
    return None, found.program, found.extras, False


_resolve, _resolve_cpu = _choice.make_resolver(_find_kernel), _choice.make_resolver(_find_program)


@functools.lru_cache(maxsize=None)
def register():
    """Makes the custom calls known to XLA, which `attention` does by itself; for a process that only runs programs of
    another one. Returns the library."""
    resolver = _choice.Resolver
    signatures = {
        "tessera_xla_register": (None, resolver, resolver, ctypes.c_void_p), "tessera_xla_reset": (None,),
    }  # fmt: skip
    library = _library.declare(_library.runtime(), signatures)
    try:
        interpreter = ctypes.cast(_program._interpreter().tessera_program_run, ctypes.c_void_p)
    except LibraryError:
        interpreter = None  # Only the library that launches is there.
    library.tessera_xla_register(_resolve, _resolve_cpu, interpreter)
    for target in (FORWARD, BACKWARD):
        name = target.replace("tessera_", "tessera_xla_")
        for platform, handler in (("CUDA", name), ("cpu", f"{name}_cpu")):
            jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(getattr(library, handler)), platform=platform)
    return library


class Call(NamedTuple):
    """What a call computes, besides its tensors: constants of a program."""

    layout: str
    heads: int
    key_heads: int
    #: The text that the resolver gets.
    variant: str
    scale: np.float32
    #: What kernels take after the scale, forward and of gradients, as tessera-c/Xla.h says.
    extras: str
    gradient_extras: str
    numbers: tuple = ()
    integers: tuple = ()
    #: Names of views, for messages, and what indexes their dimensions: "b", "h" or None.
    names: tuple = ()
    places: tuple = ()
    #: Of "b" and "h", what functions compute with, so that it has to count from 0 everywhere.
    free: frozenset = frozenset()


class _Op:
    """A custom call with attention's own tensors by names, which views follow."""

    def __init__(self, call, target, variant, operands, results):
        self.call, self.target, self.variant = call, target, variant
        self.operands = [self._list_dims(name) for name in operands]
        self.operands += [
            [place or f"x{view}_{dim}" for dim, place in enumerate(places)] for view, places in enumerate(call.places)
        ]
        self.results, self.result_names = [self._list_dims(name) for name in results], results
        self.extras = call.gradient_extras if target == BACKWARD else call.extras

    def _list_dims(self, name):
        dims = list(_DIMS[name.removeprefix("d")])
        if len(dims) == 4 and self.call.layout == "BSHD":
            dims[1], dims[2] = dims[2], dims[1]
        return dims

    def run(self, *tensors):
        """The custom call itself."""
        sizes = {dim: size for dims, tensor in zip(self.operands[:3], tensors) for dim, size in zip(dims, tensor.shape)}
        results = [
            jax.ShapeDtypeStruct([sizes[dim] for dim in dims], jnp.float32 if name == "lse" else tensors[0].dtype)
            for name, dims in zip(self.result_names, self.results)
        ]
        # XLA has no arrays of nothing.
        arrays = {"numbers": np.array(self.call.numbers, np.float32), "integers": np.array(self.call.integers, np.int32)}
        arrays = {name: array for name, array in arrays.items() if array.size}
        return tuple(
            jax.ffi.ffi_call(self.target, results)(
                *tensors, variant=self.variant, layout=self.call.layout, scale=self.call.scale, extras=self.extras, **arrays
            )
        )

    def make_rule(self):
        """(sharding rule, factors that stay whole)."""
        heads = "n" if self.call.heads == self.call.key_heads else "h"
        sides = (
            ", ".join(" ".join(heads if dim == "h" else dim for dim in dims) for dims in side)
            for side in (self.operands, self.results)
        )
        rule = " -> ".join(sides)
        split = {"b", "h", "n"} - self.call.free - ({"n"} if "h" in self.call.free else set())
        # In the order of their first use.
        return rule, tuple(name for name in dict.fromkeys(re.findall(r"\w+", rule)) if name not in split)

    def partition(self, _, arguments, results):
        """For custom_partitioning: tensors with batch and heads split as those of q are, and all else whole."""
        mesh = arguments[0].sharding.mesh
        split = self._find_axes(mesh.shape, arguments)

        def place(dims):
            axes = (split.get(dim, ()) for dim in dims)
            spec = (names[0] if len(names) == 1 else names or None for names in axes)
            return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))

        return mesh, self.run, tuple(map(place, self.results)), tuple(map(place, self.operands))

    def _find_axes(self, sizes, arguments):
        """The axes of the mesh, by their sizes, over which "b", "h" and "n" are split."""
        query, key = (self._read_axes(info, dims) for info, dims in zip(arguments, self.operands[:2]))
        axes = {} if "b" in self.call.free else {"b": query["b"]}
        heads = () if "h" in self.call.free else query["h"] or key["n"]
        heads = tuple(axis for axis in heads if axis not in axes.get("b", ()))
        for count in range(len(heads), 0, -1):
            of_keys = self._find_key_axes(sizes, heads[:count])
            if of_keys is not None:
                return {**axes, "h": heads[:count], "n": of_keys}
        return axes

    def _find_key_axes(self, sizes, heads):
        """The axes that key heads are split over with heads of queries, or None where parts would not be with theirs."""

        def count_parts(axes):
            return math.prod(sizes[axis] for axis in axes)

        if self.call.heads % count_parts(heads):
            return None
        if self.call.key_heads % count_parts(heads) == 0:
            return heads
        # Several parts of one key head. Its gradient would be a sum over them.
        prefixes = (heads[:count] for count in range(len(heads)) if self.target == FORWARD)
        return next((axes for axes in prefixes if count_parts(axes) == self.call.key_heads), None)

    @staticmethod
    def _read_axes(info, dims):
        """The axes that dimensions are split over, by their names."""
        spec = (*info.sharding.spec, *[None] * len(dims))
        return {
            dim: () if entry is None else entry if isinstance(entry, tuple) else (entry,) for dim, entry in zip(dims, spec)
        }

    def fold(self, size, is_mapped, *tensors):
        """For custom_vmap: the mapped dimension joins the batch."""
        if "b" in self.call.free:
            raise NotImplementedError(
                "the functions of scores and masks compute with b, which counts anew in each call that vmap maps: make the "
                "mapped dimension a part of the batch, or take what depends on b from an array, by [b]"
            )
        folded = [self._fold_tensor(index, size, is_mapped[index], tensor) for index, tensor in enumerate(tensors)]
        results = make_op(*self.key)(*folded)
        return tuple(result.reshape(size, -1, *result.shape[1:]) for result in results), (True,) * len(results)

    def _fold_tensor(self, index, size, is_mapped, tensor):
        dims = self.operands[index]
        if "b" not in dims:
            if is_mapped:
                name = self.call.names[index - len(self.operands)]
                raise NotImplementedError(
                    f"argument '{name}' is mapped over by vmap; what is not indexed by the batch is the same for all"
                )
            return tensor
        if not is_mapped:
            tensor = jnp.broadcast_to(tensor, (size, *tensor.shape))
        at = dims.index("b")
        shape = tensor.shape[1:]
        return jnp.moveaxis(tensor, 0, at).reshape(*shape[:at], size * shape[at], *shape[at + 1 :])


@functools.lru_cache(maxsize=256)
def make_op(call, target, variant, operands, results):
    """A function of attention's own tensors, by the names `operands`, and of views, that gives those of `results`."""
    op = _Op(call, target, variant, operands, results)
    op.key = call, target, variant, operands, results
    rule, whole = op.make_rule()

    @custom_partitioning
    def partitioned(*tensors):
        return op.run(*tensors)

    partitioned.def_partition(partition=op.partition, sharding_rule=rule, need_replication_factors=whole)

    @custom_vmap
    def mapped(*tensors):
        return partitioned(*tensors)

    mapped.def_vmap(op.fold)
    return mapped
