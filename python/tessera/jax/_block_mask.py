"""Masks whose lists of visited blocks outlive a call."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._attention import _block_lists, _variants
from .._compiler._program import Program
from .._functions import _listed
from .._functions._variant import takes_lists
from . import _call, _functions

_PLACES = {"head": ("b", "h", None, None), "batch": ("b", None, None, None), "one": (None, None, None, None)}


_ARRAYS = _listed.Arrays(
    jnp, jnp.arange, lambda shape: jnp.zeros(shape, jnp.int8),
    lambda states, places, state: jnp.put_along_axis(states, places, state, axis=-1, inplace=False),
    lambda numbers: numbers.astype(jnp.int32),
    jax.jit(lambda function, known, *arrays: function(*known, *arrays), static_argnums=(0, 1)),
)  # fmt: skip


def _is_compiled():
    return jax.default_backend() != "cpu"


def _is_same(array, known):
    """Whether an array is the one that was known, or another one of the same numbers, as one of numpy becomes each time."""
    if array is known:
        return True
    if not isinstance(array, jax.Array):
        return False
    return array.dtype == known.dtype and array.shape == known.shape and bool(np.array_equal(array, known, equal_nan=True))


def _read_lists(label, counts, blocks):
    """(counts, blocks) as arrays of JAX; counts of all but -1 where they are None."""
    for name, array in ((f"{label}num_blocks", counts), (f"{label}indices", blocks)):
        if not isinstance(array, (jax.Array, np.ndarray)) and not (array is None and name.endswith("blocks")):
            raise TypeError(f"argument '{name}' is a {type(array).__name__}; it is an array")
    if counts is None:
        is_listed = blocks != -1
        counts, blocks = is_listed.sum(-1, dtype=jnp.int32), jnp.take_along_axis(blocks, jnp.argsort(~is_listed, stable=True), -1)
    return tuple(array if _is_traced(array) else _functions.to_array(array) for array in (counts, blocks))


def _is_traced(array):
    return isinstance(array, jax.core.Tracer)


class BlockMask:
    """A mask with the lists of the blocks in which it leaves something: `create_block_mask` makes it of a function, and
    `from_kv_blocks` of the blocks themselves.

    Kernels have tiles of several sizes, and lists are made for each when a call first needs it, also while JAX traces that
    call. Lists are what the mask said then. What it captures is an array that is known, and none that JAX traces. Lists of a
    user may be traced: then the mask is one of that program.
    """

    def __init__(
        self,
        mask_mod: Callable[..., Any] | None,
        mask_args: tuple[jax.Array | np.ndarray | float, ...],
        shape: tuple[int | None, int | None, int, int],
        listed: _listed.Listed | None = None,
    ) -> None:
        self.mask_mod, self.mask_args, self.shape, self._listed = mask_mod, mask_args, shape, listed
        #: What kernels are compiled from, as `attention` takes its mask_mod and mask_args.
        self.mods = (mask_mod, mask_args) if listed is None else (listed, ())
        self._source, self._views, self._numbers, self._integers, self._labels, _ = _functions.trace(None, (), *self.mods)
        #: The table of blocks, where JAX traces it, and each call makes its lists of it.
        self.table: jax.Array | None = listed.states if listed is not None and _is_traced(listed.states) else None
        for name, view in self._views.items() if listed is None else ():
            if _is_traced(view):
                raise TypeError(
                    f"the mask of a BlockMask captures '{self._labels[name]}', which JAX traces, and its lists are made once: create "
                    "it outside of jax.jit, or give attention the function itself as `mask_mod`"
                )
        if listed is None:
            _variants.check_batch_and_heads(self._source, *shape[:2])
        #: The lists and how many blocks each has, by what they are for: "queries 128 64" are lists of blocks of 64 keys for
        #: each tile of 128 queries.
        self.lists: dict[str, tuple[jax.Array, jax.Array]] = {}
        #: Makes attention with these lists, once for each call that is another one: JAX knows functions by their identity.
        self.remember = functools.lru_cache(maxsize=256)(lambda make, *of: make(*of))

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: jax.Array | np.ndarray | None,
        kv_indices: jax.Array | np.ndarray,
        full_kv_num_blocks: jax.Array | np.ndarray | None = None,
        full_kv_indices: jax.Array | np.ndarray | None = None,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Callable[..., Any] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        *,
        mask_args: Iterable[jax.Array | np.ndarray | float] = (),
    ) -> BlockMask:
        """That of blocks: a query sees what it sees of the blocks of keys that are listed for its tile.

        kv_indices:    the numbers of blocks of keys, [batch or 1, heads or 1, tiles of queries, most] of int32 or int64.
        kv_num_blocks: how many of them each tile has, [batch or 1, heads or 1, tiles of queries]; None where it has all but -1.
        full_kv_num_blocks, full_kv_indices: the same of blocks that are seen in full, which `mask_mod` does not mask.
        BLOCK_SIZE:    of how many queries and keys a block is; one number for both. Multiples of 64 are fast.
        mask_mod:      what is seen of blocks that are not full; None for all. `mask_args` are its further arguments.
        seq_lengths:   the numbers of queries and keys; those of whole blocks, as many as `most`, where they are not given.

        No mask is computed for each pair of query and key to find the blocks. Lists may be arrays that JAX traces, whose numbers
        are not looked at: those of blocks that there are not list nothing. Raises TraceError, TypeError and ValueError.
        """
        block = _listed.read_block_size(BLOCK_SIZE)
        lists, full = _read_lists("kv_", kv_num_blocks, kv_indices), None
        if full_kv_indices is not None or full_kv_num_blocks is not None:
            full = _read_lists("full_kv_", full_kv_num_blocks, full_kv_indices)
        if seq_lengths is None:
            seq_lengths = tuple(extent * size for extent, size in zip(kv_indices.shape[-2:], block))
        is_known = not any(map(_is_traced, (*lists, *(full or ()))))
        with jax.core.eval_context() if is_known else contextlib.nullcontext():
            listed = _listed.read(_ARRAYS, lists, full, mask_mod, tuple(mask_args), block, seq_lengths, is_known)
        return cls(listed.function, listed.arguments, listed.shape, listed)

    def __repr__(self) -> str:
        batch, heads, rows, keys = self.shape
        return f"<BlockMask of B = {batch}, H = {heads}, {rows} queries and {keys} keys, lists: {', '.join(self.lists) or 'none yet'}>"

    def check(self, extents: tuple[int, int, int, int], given: Mapping[str, Any]) -> None:
        """Refuses tensors for which the lists are not, and other values of what the mask captures."""
        _variants.check_extents(self.shape, extents)
        if self._listed is not None:
            return
        # What else a function is made of, as constants and other functions, is in what is written for it.
        if _functions.trace(None, (), *self.mods)[0] != self._source:
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

    def find(
        self, wanted: Iterable[tuple[str, str]], batch: int, heads: int, table: jax.Array | None
    ) -> dict[str, jax.Array]:
        """{name: array} of the lists that are wanted for calls of so many batches and heads, pairs of what arguments begin with
        and of what lists are for. `table` is that of this one where JAX traces it, as a gradient has it."""
        extents = _block_lists.count_lists(self._source, batch, heads)
        return {
            argument: array if array.shape[:2] == extents else jnp.broadcast_to(array, (*extents, *array.shape[2:]))
            for name, lists in wanted
            for argument, array in zip((f"{name}_lists", f"{name}_counts"), self._find(lists, table))
        }

    def _find(self, lists, table):
        if table is not None:
            return _listed.make_lists(_ARRAYS, self._listed.with_states(table), lists)
        if lists not in self.lists:
            # While JAX traces a call, what it makes is known nevertheless; of a table by a program, which the other way takes apart.
            with jax.core.eval_context() if self._listed is not None else jax.ensure_compile_time_eval():
                made = self._make(lists)
            if any(isinstance(array, jax.core.Tracer) for array in made):
                return made  # Within jax.shard_map each call makes its own.
            self.lists[lists] = made
        return self.lists[lists]

    def _make(self, lists):
        if self._listed is not None:
            return _listed.make_lists(_ARRAYS, self._listed, lists)
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
        kept, wanted = _block_lists.keep_forward(source, element_type, sizes, _is_compiled(), self._block)
        return kept, self.find(wanted, *sizes[:2], self.table)

    def keep_gradients(
        self, source: str, learned: tuple[str, ...], fixed: bool, element_type: str, sizes: tuple[int, ...],
        table: jax.Array | None,
    ) -> tuple[str, dict[str, jax.Array]]:  # fmt: skip
        """The same of its gradients, for batches, heads and two head dimensions, with a table as `find` has it."""
        kind, (batch, heads, d, dv) = _call.find_kind() if _is_compiled() else Program, sizes
        kept, wanted = _block_lists.keep_gradients(kind, source, learned, fixed, element_type, d, dv, self._block)
        return kept, self.find(wanted, batch, heads, table)

    @property
    def _block(self):
        return None if self._listed is None else self._listed.block

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
