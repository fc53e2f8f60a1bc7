"""The custom calls of XLA, forward and of gradients: one on each device, mapped over by folding into the batch."""

import ctypes
import functools
import itertools
import json
import math
import re
import threading
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import custom_vmap
from jax.experimental.custom_partitioning import custom_partitioning

from .._attention import _block_lists, _gradient_kernels, _variants
from .._compiler import _calls, _choices, _program
from .._core import _layouts, _library
from .._core._errors import LibraryError
from . import _varying

FORWARD, BACKWARD, LISTS, KERNEL = "tessera_attention", "tessera_attention_backward", "tessera_lists", "tessera_kernel"
# Dimensions of attention's own tensors in sharding rules, [B, H, S, D]. There are n key heads; h: heads of queries.
_DIMS = {"q": "bhsd", "k": "bntd", "v": "bnte", "o": "bhse", "lse": "bhs"}
_interprets, _lock = False, threading.Lock()


def use_interpreter(enabled: bool = True) -> bool:
    """Lets attention of arrays on the CPU run by the interpreter, which is exact and slow: for tests without a GPU.
    Returns what it was before."""
    global _interprets
    before, _interprets = _interprets, enabled
    return before


def name_lister(source, lists):
    """The text for what makes lists of blocks, as `_block_lists.keep_forward` names them."""
    return f"lists of {lists}: {source}"


# How many tensors of its own attention has with the LSE, and its gradients with that of the LSE.
_WITH_LSE = 5, 10


def _list_kernels(kind, variant, element_type, sizes, lse):
    """(kernels, or their forms for the interpreter; whether they are those of the shape's class)."""
    if variant.startswith("lists of "):
        lists, _, source = variant.removeprefix("lists of ").partition(": ")
        return (_block_lists.find_lister(kind, source, lists),), True
    gradients = _gradient_kernels.read_gradients(variant)
    if gradients is not None:
        text, fixed, learned = gradients
        own = _gradient_kernels.find_sizes(*sizes)
        if _variants.is_source(text):
            given = kind, text, learned, fixed, element_type
            chosen = _gradient_kernels.choose_of_source(*given, own, lse)
            return _gradient_kernels.list_gradients_of_source(*given, *own[:2], lse, chosen), True
        return _gradient_kernels.find_gradients(kind, text, fixed, element_type, own, lse)[:1], True
    if kind is _program.Program:
        return (_variants.find_variant(variant, element_type, sizes[3], sizes[6], lse).program,), True
    kernel, _, is_final = _variants.find_kernel(variant, element_type, sizes, lse, _choices.find_card(kind))
    return (kernel,), is_final


def _bind(kernels, variant, lse, operands):
    """Steps of a recipe. Several kernels are of gradients, each by some of what is learned: they take what they name of the
    arguments of one that makes all."""
    if len(kernels) == 1:
        return ((kernels[0], operands),)
    text, fixed, learned = _gradient_kernels.read_gradients(variant)
    names = _gradient_kernels.find_gradients_of_source(_program.Program, text, learned, fixed, "bf16", 64, 64, lse).names
    places = dict(zip(names, operands))
    return tuple((kernel, tuple(places[name] for name in kernel.names)) for kernel in kernels)


def _make_recipe(kind, text, tensors):
    """The recipe of a call as tessera-c/Xla.h has it: tensors are in the order of the kernel's arguments, and so is what `extras`
    say; results are tensors too."""
    extras, _, variant = text.partition("\n")
    if variant.startswith("{"):
        return _make_kernel_recipe(kind, extras, tensors, **json.loads(variant))
    own = len(tensors) - extras.count("v") - extras.count("d")
    q, k, v = tensors[0], tensors[1], tensors[0] if variant.startswith("lists of ") else tensors[2]
    if q.element not in ("f16", "bf16"):
        raise TypeError("argument 'q' is neither float16 nor bfloat16; attention takes these")
    sizes = *q.shape, k.shape[1], k.shape[2], v.shape[3]
    # Devices ask at the same time, and there has to be one kernel for all.
    with _lock:
        kernels, is_final = _list_kernels(kind, variant, q.element, sizes, own in _WITH_LSE)
    given = {"v": (_layouts.TENSOR, itertools.count(own)), "f": (_layouts.NUMBER, itertools.count(1)),
             "s": (_layouts.NUMBER, itertools.count(0)), "i": (_layouts.INTEGER, itertools.count(0))}  # fmt: skip
    given["d"] = given["v"]
    operands = [(_layouts.TENSOR, index) for index in range(own)]
    for letter in extras if "s" in extras or variant.startswith("lists of ") else "s" + extras:
        source, count = given[letter]
        operands.append((source, next(count)))
    return _layouts.Recipe(_bind(kernels, variant, own in _WITH_LSE, tuple(operands)), is_final=is_final)


def find_card():
    """The name of the GPU, which rows of rules may be for, or None."""
    device = jax.local_devices()[0]
    return device.device_kind if device.platform == "gpu" else None


def find_kind():
    """What compiles kernels for the GPU."""
    return _choices.compiler_for(find_card())


def count_multiprocessors():
    device = jax.local_devices()[0]
    return device.core_count if device.platform == "gpu" else _choices.INTERPRETED


def _make_kernel_recipe(kind, extras, tensors, source, parameters, orders={}, parts={}):
    """The recipe of a kernel that ships, of whose arguments `extras` has a letter each. Of tensors by their places `orders` has the order
    of dimensions that the kernel takes, and `parts` what it takes of rows as views of their own: see `_layouts.Layout.take`."""
    with _lock:
        kernel = kind(_library.find_source(source), **parameters)
    scalars, own = {"f": (_layouts.NUMBER, itertools.count()), "i": (_layouts.INTEGER, itertools.count())}, itertools.count()
    operands, views = [], []
    for letter in extras:
        if letter in scalars:
            place, count = scalars[letter]
            operands.append((place, next(count)))
            continue
        memory = _layouts.TENSOR, next(own)
        name, layout = str(memory[1]), tensors[memory[1]]
        found = [(layout.permute(*orders[name]), 0)] if name in orders else []
        found += [(layout.take(element, first, count), first) for element, first, count in parts.get(name, ())]
        operands += [(_layouts.VIEW, index) for index in range(len(views), len(views) + len(found))] or [memory]
        views += [(memory, *view) for view in found]
    return _layouts.Recipe(((kernel, tuple(operands)),), views=tuple(views), is_final=True)


def _make_compiled(text, tensors):
    return _make_recipe(find_kind(), text, tensors)


def _make_interpreted(text, tensors):
    if not _interprets:
        raise ValueError(
            "kernels run on CUDA devices of compute capability 9.0; call tessera.jax.use_interpreter() to run tests "
            "on the CPU"
        )
    return _make_recipe(_program.Program, text, tensors)._replace(is_final=False)


_resolve, _resolve_cpu = _calls.make_resolver(_make_compiled, 1), _calls.make_resolver(_make_interpreted, 1)


@functools.lru_cache(maxsize=None)
def register() -> ctypes.CDLL:
    """Makes the custom calls known to XLA, which `attention` does by itself; for a process that only runs programs of
    another one. Returns the library."""
    resolver = _calls.Resolver
    signatures = {
        "tessera_xla_register": (None, resolver, resolver, ctypes.c_void_p), "tessera_xla_reset": (None,),
    }  # fmt: skip
    library = _library.declare(_library.runtime(), signatures)
    try:
        interpreter = ctypes.cast(_program._interpreter().tessera_program_run, ctypes.c_void_p)
    except LibraryError:
        interpreter = None  # Only the library that launches is there.
    library.tessera_xla_register(_resolve, _resolve_cpu, interpreter)
    for target in (FORWARD, BACKWARD, LISTS, KERNEL):
        name = target.replace("tessera_", "tessera_xla_")
        for platform, handler in (("CUDA", name), ("cpu", f"{name}_cpu")):
            jax.ffi.register_ffi_target(target, jax.ffi.pycapsule(getattr(library, handler)), platform=platform)
    return library


def pack(numbers):
    """Numbers as a Call has them."""
    return tuple(np.float32(number).tobytes() for number in numbers)


def make_arrays(numbers, integers):
    """The attributes of a custom call that has numbers and integers. XLA has no arrays of nothing."""
    arrays = {"numbers": np.frombuffer(b"".join(numbers), np.float32), "integers": np.array(integers, np.int32)}
    return {name: array for name, array in arrays.items() if array.size}


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
    #: The bits of each, by which zeros of either sign are two.
    numbers: tuple[bytes, ...] = ()
    integers: tuple[int, ...] = ()
    #: Names of views, for messages, and what indexes their dimensions: "b", "h" or None.
    names: tuple = ()
    places: tuple = ()
    #: Of "b" and "h", what functions compute with, so that it has to count from 0 everywhere.
    free: frozenset = frozenset()
    #: Of functions, the names of what kernels take after the scale, and which of the views may have gradients.
    order: tuple = ()
    learnable: tuple = ()

    def list_views(self):
        """The names of the views of functions, as kernels have them."""
        return [name for name, kind in zip(self.order, self.extras) if kind == "v"]

    def add_lists(self, lists, places):
        """The same with further views: lists of blocks by name."""
        return self._replace(
            order=(*self.order, *lists), extras=self.extras + "v" * len(lists), names=(*self.names, *lists),
            places=(*self.places, *([places] * len(lists))),
        )  # fmt: skip

    def reorder(self, names):
        """(the same with what functions take in the order of `names`, the places of its views among those of this one). Of
        names that are none of these, "scale" is the scale, and others are views' gradients."""
        kinds, given = {"scale": "s", **dict(zip(self.order, self.extras))}, {"v": [], "f": [], "i": []}
        for name in self.order:
            given[kinds[name]].append(name)
        wanted = {kind: [part.index(name) for name in names if name in part] for kind, part in given.items()}
        views = wanted["v"]
        extras = "".join(kinds.get(name, "d") for name in names)
        call = self._replace(
            order=tuple(names), extras=extras, gradient_extras=extras, names=tuple(self.names[i] for i in views),
            places=tuple(self.places[i] for i in views), numbers=tuple(self.numbers[i] for i in wanted["f"]),
            integers=tuple(self.integers[i] for i in wanted["i"]),
        )  # fmt: skip
        return call, views


class _Op:
    """A custom call with attention's own tensors by names, which views follow. Of results, those of `learned`, which views have
    for their gradients, follow the named ones."""

    def __init__(self, call, target, variant, operands, results, learned):
        self.call, self.target, self.variant = call, target, variant
        self.own = len(operands)
        of_views = [[place or f"x{view}_{dim}" for dim, place in enumerate(places)] for view, places in enumerate(call.places)]
        self.operands = [*(self._list_dims(name) for name in operands), *of_views]
        #: The places among operands of the views whose gradients are results.
        self.learned = [self.own + call.list_views().index(name) for name in learned]
        self.results = [*(self._list_dims(name) for name in results), *(self.operands[place] for place in self.learned)]
        self.result_names = results
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
        # Kernels add to the gradients of views.
        sums = [jnp.zeros(tensors[place].shape, jnp.float32) for place in self.learned]
        aliases = {len(tensors) + i: len(results) + i for i in range(len(sums))}
        results += [jax.ShapeDtypeStruct(sum.shape, sum.dtype) for sum in sums]
        arrays = make_arrays(self.call.numbers, self.call.integers)
        return tuple(
            jax.ffi.ffi_call(self.target, results, input_output_aliases=aliases)(
                *tensors, *sums, variant=self.variant, layout=self.call.layout, scale=self.call.scale, extras=self.extras, **arrays
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

        def run(*tensors):
            results = list(self.run(*tensors))
            for at, view in enumerate(self.learned, len(results) - len(self.learned)):
                # What each device has summed is of its part of the batch and the heads.
                axes = tuple(axis for dim in ("b", "h") if dim not in self.operands[view] for axis in split.get(dim, ()))
                results[at] = jax.lax.psum(results[at], axes) if axes else results[at]
            return tuple(results)

        return mesh, run, tuple(map(place, self.results)), tuple(map(place, self.operands))

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
        run, count = make_op(*self.key), len(self.results)
        if not size:
            of_one = (x.shape[1:] if is_one else x.shape for x, is_one in zip(tensors, is_mapped))
            results = jax.eval_shape(run, *(jax.ShapeDtypeStruct(shape, x.dtype) for shape, x in zip(of_one, tensors)))
            return tuple(jnp.zeros((0, *result.shape), result.dtype) for result in results), (True,) * count
        if any("b" not in self.operands[place] for place in self.learned):
            return self._map(run, is_mapped, tensors), (True,) * count
        folded = [self._fold_tensor(index, size, is_mapped[index], tensor) for index, tensor in enumerate(tensors)]
        results = tuple(self._unfold(result, dims.index("b"), size) for result, dims in zip(run(*folded), self.results))
        return results, (True,) * count

    @staticmethod
    def _map(run, is_mapped, tensors):
        """One call after the other: a gradient of what the batch has in common is a sum over the batch."""
        mapped = [tensor for tensor, is_one in zip(tensors, is_mapped) if is_one]

        def call(parts):
            parts = iter(parts)
            return run(*(next(parts) if is_one else tensor for tensor, is_one in zip(tensors, is_mapped)))

        return jax.lax.map(call, mapped)

    @staticmethod
    def _unfold(result, at, size):
        """The mapped dimension of a result, whose batch is dimension `at`, before the others."""
        return jnp.moveaxis(result.reshape(*result.shape[:at], size, -1, *result.shape[at + 1 :]), at, 0)

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
def make_op(call, target, variant, operands, results, learned=()):
    """A function of attention's own tensors, by the names `operands`, and of views, that gives those of `results`, and the
    gradients of the views that `learned` names."""
    op = _Op(call, target, variant, operands, results, learned)
    op.key = call, target, variant, operands, results, learned
    rule, whole = op.make_rule()

    @custom_partitioning
    def partitioned(*tensors):
        return op.run(*tensors)

    partitioned.def_partition(partition=op.partition, sharding_rule=rule, need_replication_factors=whole)

    @custom_vmap
    def mapped(*tensors):
        axes = _varying.list_axes(*tensors)
        # There tensors are split already.
        run = op.run if _varying.is_in_shard_map() else partitioned
        return tuple(_varying.vary(result, axes) for result in run(*tensors))

    mapped.def_vmap(op.fold)
    return mapped
