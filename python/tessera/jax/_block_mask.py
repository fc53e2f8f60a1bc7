"""Masks whose lists of visited blocks outlive a call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _block_lists, _compile, _variants
from .._program import Program
from .._variant import takes_lists
from . import _call, _functions

_PLACES = {"head": ("b", "h", None, None), "batch": ("b", None, None, None), "one": (None, None, None, None)}


def _is_compiled():
    return jax.default_backend() != "cpu"


def _is_same(array, known):
    """Whether an array is the one that was known, or another one of the same numbers, as one of numpy becomes each time."""
    if array is known:
        return True
    if not isinstance(array, jax.Array):
        return False
    return array.dtype == known.dtype and array.shape == known.shape and bool(np.array_equal(array, known, equal_nan=True))


class BlockMask:
    """A mask with the lists of the blocks in which it leaves something; `create_block_mask` makes it.

    Kernels have tiles of several sizes, and lists are made for each when a call first needs it, also while JAX traces that
    call. Lists are what the mask said then. What it captures is an array that is known, and none that JAX traces.
    """

    def __init__(
        self,
        mask_mod: Callable[..., Any],
        mask_args: tuple[jax.Array | np.ndarray | float, ...],
        shape: tuple[int | None, int | None, int, int],
    ) -> None:
        self.mask_mod, self.mask_args, self.shape = mask_mod, mask_args, shape
        self._source, self._views, self._numbers, self._integers, self._labels, _ = _functions.trace(None, (), mask_mod, mask_args)
        for name, view in self._views.items():
            if isinstance(view, jax.core.Tracer):
                raise TypeError(
                    f"the mask of a BlockMask captures '{self._labels[name]}', which JAX traces, and its lists are made once: create "
                    "it outside of jax.jit, or give attention the function itself as `mask_mod`"
                )
        _variants.check_batch_and_heads(self._source, *shape[:2])
        #: The lists and how many blocks each has, by what they are for: "queries 128 64" are lists of blocks of 64 keys for
        #: each tile of 128 queries.
        self.lists: dict[str, tuple[jax.Array, jax.Array]] = {}
        #: Makes attention with these lists, once for each call that is another one: JAX knows functions by their identity.
        self.remember = functools.lru_cache(maxsize=256)(lambda make, *of: make(*of))

    def __repr__(self) -> str:
        batch, heads, rows, keys = self.shape
        return f"<BlockMask of B = {batch}, H = {heads}, {rows} queries and {keys} keys, lists: {', '.join(self.lists) or 'none yet'}>"

    def check(self, extents: tuple[int, int, int, int], given: Mapping[str, Any]) -> None:
        """Refuses tensors for which the lists are not, and other values of what the mask captures."""
        _variants.check_extents(self.shape, extents)
        # What else a function is made of, as constants and other functions, is in what is written for it.
        if _functions.trace(None, (), self.mask_mod, self.mask_args)[0] != self._source:
            raise ValueError(
                "the mask of argument 'block_mask' is another one than when its lists were made: create another BlockMask"
            )
        own = {**self._views, **self._numbers, **self._integers}
        for name, value in own.items():
            other = given.get(name)
            if isinstance(other, jax.core.Tracer):
                raise ValueError(
                    f"the mask of argument 'block_mask' captures '{self._labels[name]}', which JAX traces, and its lists are of one "
                    "that is known: within jax.shard_map capture an array of JAX in place of numpy's, or call it by jax.jit"
                )
            if not (_is_same(other, value) if isinstance(value, jax.Array) else other == value):
                raise ValueError(
                    "the mask of argument 'block_mask' captures another value than when its lists were made: create another "
                    "BlockMask"
                )

    def find(self, wanted: Iterable[tuple[str, str]], batch: int) -> dict[str, jax.Array]:
        """{name: array} of the lists that are wanted for calls of a batch, pairs of what arguments begin with and of what lists
        are for."""
        # Those for any number of batches, of a mask that takes the head.
        is_one = self.shape[0] is None and _variants.read_lists(self._source) == "head"
        return {
            argument: jnp.broadcast_to(array, (batch, *array.shape[1:])) if is_one else array
            for name, lists in wanted
            for argument, array in zip((f"{name}_lists", f"{name}_counts"), self._find(lists))
        }

    def _find(self, lists):
        if lists not in self.lists:
            # While JAX traces a call, what it makes is known nevertheless.
            with jax.ensure_compile_time_eval():
                made = self._make(lists)
            if any(isinstance(array, jax.core.Tracer) for array in made):
                return made  # Within jax.shard_map each call makes its own.
            self.lists[lists] = made
        return self.lists[lists]

    def _make(self, lists):
        _call.register()
        of, rows, columns = lists.split()
        batch, heads, queries, keys = sizes = [1 if extent is None else extent for extent in self.shape]
        lengths = (queries, keys) if of == "queries" else (keys, queries)
        tiles, length = (-(-extent // int(size)) for extent, size in zip(lengths, (rows, columns)))
        each = _block_lists.count_lists(self._source, batch, heads)
        results = [jax.ShapeDtypeStruct((*each, tiles, size), jnp.int32) for size in (length, 3)]
        order = [name for name in _functions.list_lister_extras(self._source, lists) if name in self._labels]
        fields, views = _functions.describe(
            self._source, self._views, self._numbers, self._integers, self._labels, (), {"b": batch, "h": heads}, order
        )
        arrays = _call.make_arrays(fields["numbers"], fields["integers"])
        anchor = jnp.zeros((1, 1, 1, _variants.WIDTHS[0]), jnp.bfloat16)
        made = jax.ffi.ffi_call(_call.LISTS, results)(
            anchor, *views, variant=_call.name_lister(self._source, lists), layout="BHSD", extras=fields["extras"],
            sizes=np.array(sizes, np.int32), **arrays,
        )  # fmt: skip
        return tuple(made)

    def keep_forward(self, source: str, element_type: str, sizes: tuple[int, ...]) -> tuple[str, dict[str, jax.Array]]:
        """(source of attention that takes the lists, {name: array} of these)."""
        kept, wanted = _block_lists.keep_forward(source, element_type, sizes, _is_compiled())
        return kept, self.find(wanted, sizes[0])

    def keep_gradients(
        self, source: str, learned: tuple[str, ...], fixed: bool, element_type: str, batch: int, d: int, dv: int
    ) -> tuple[str, dict[str, jax.Array]]:
        """The same of its gradients."""
        kind = _compile.compile if _is_compiled() else Program
        kept, wanted = _block_lists.keep_gradients(kind, source, learned, fixed, element_type, d, dv)
        return kept, self.find(wanted, batch)

    def places(self) -> tuple[str | None, ...]:
        """What indexes the dimensions of lists."""
        return _PLACES[_variants.read_lists(self._source)]

    @property
    def has_lists(self) -> bool:
        """Whether the mask takes lists at all: comparisons may say which blocks there are."""
        return takes_lists(self._source)


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    *,
    mask_args: Iterable[jax.Array | np.ndarray | float] = (),
) -> BlockMask:
    """The mask of mask_mod(b, h, q, k, *mask_args) with the lists of blocks that it leaves, for calls of `attention` with
    `block_mask=`: lists are made once, and not in each call.

    B, H:   the batches and heads of q; None where the mask is the same for all, of which there may be any number then.
    Q_LEN, KV_LEN: the numbers of queries and keys.

    What `mask_mod` captures is as in `attention`, and no array that JAX traces. Raises TraceError, TypeError and ValueError.
    """
    _variants.check_block_mask(mask_mod, B, H, Q_LEN, KV_LEN)
    return BlockMask(mask_mod, tuple(mask_args), (B, H, Q_LEN, KV_LEN))
