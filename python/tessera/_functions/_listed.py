"""Masks whose blocks are listed: for each block of queries and keys a table says whether nothing of it is seen, what a function
says, or all. Lists of blocks for the tiles of kernels follow from the table, whatever sizes these have.

Arrays are of torch or of JAX, as `Arrays` has it. Of those that are traced no number is asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

#: What the table says of a block.
SKIPPED, PARTIAL, FULL = range(3)
#: Kernels have tiles that divide blocks of multiples of it.
ALIGNED = 64


class Arrays(NamedTuple):
    """What two frameworks call differently."""

    #: torch or jax.numpy.
    xp: Any
    #: The integers from 0 on, where the lists are.
    arange: Callable[[Any], Any]
    #: A table of SKIPPED blocks, and one with a number at places of its last dimension.
    make_table: Callable[[tuple[Any, ...]], Any]
    put: Callable[[Any, Any, int], Any]
    to_int32: Callable[[Any], Any]
    #: run(function, known, *arrays): the function of what is known and of arrays, as one program where each operation is compiled.
    run: Callable[..., Any] = lambda function, known, *arrays: function(*known, *arrays)


class Listed:
    """A mask by blocks: a function with its arguments, or None, and the table, [batch or 1, heads or 1, blocks, blocks], of blocks
    of so many queries and keys. `cuts_full`: blocks that are seen in full may reach past the last query or key."""

    def __init__(
        self,
        function: Callable[..., Any] | None,
        arguments: tuple[Any, ...],
        states: Any,
        block: tuple[int, int],
        lengths: tuple[int, int],
        cuts_full: bool,
    ) -> None:
        self.function, self.arguments, self.states, self.cuts_full = function, arguments, states, cuts_full
        # A SymInt of torch becomes a constant, of which kernels are made.
        self.block, self.lengths = tuple(map(operator.index, block)), tuple(lengths)
        #: Whether lists alone do not say it all. Tiles may have several blocks in them, and a tile that reaches past the end needs a
        #: mask, which is not the function where the block is seen in full.
        self.needs_table = any(size % ALIGNED for size in self.block) or (function is not None and cuts_full)

    def with_states(self, states: Any) -> Listed:
        """The same with another table."""
        return Listed(self.function, self.arguments, states, self.block, self.lengths, self.cuts_full)

    @property
    def shape(self) -> tuple[int | None, int | None, int, int]:
        """The batches and heads, None where the table is the same for all, and the numbers of queries and keys."""
        return *(None if extent == 1 else extent for extent in self.states.shape[:2]), *self.lengths

    @property
    def indices(self) -> str:
        """Of "b" and "h", what the table is indexed by."""
        return "".join(letter for letter, extent in zip("bh", self.states.shape) if extent != 1)


def make_mask(states, block, indices, function):
    """The mask of a table, which is indexed by those of "b" and "h" that `indices` has, and of a function, or None."""
    rows, columns = block

    def mask(b, h, q, k):
        state = states[b if "b" in indices else 0, h if "h" in indices else 0, q // rows, k // columns]
        if function is None:
            return state != SKIPPED
        return (state == FULL) | ((state == PARTIAL) & function(b, h, q, k))

    return mask


def _read_table(arrays, columns, of_lists, *lists):
    """The table of lists: counts and numbers of blocks, of each one state. What a list has twice counts once, and a block that is
    not there does not."""
    # A column more is for what is not listed, and rows begin at multiples of 16 bytes.
    states = arrays.make_table((*lists[0].shape, -(-(columns + 1) // 16) * 16))
    for state, counts, blocks in zip(of_lists, lists[::2], lists[1::2]):
        is_listed = (arrays.arange(blocks.shape[-1]) < counts[..., None]) & (blocks >= 0) & (blocks < columns)
        states = arrays.put(states, arrays.xp.where(is_listed, blocks, columns), state)
    return states[..., :columns]


def read_block_size(size):
    """(queries, keys) of a block."""
    sizes = (size, size) if isinstance(size, int) else size
    if not isinstance(sizes, (tuple, list)) or len(sizes) != 2 or not all(isinstance(n, int) and n >= 1 for n in sizes):
        raise ValueError(f"argument 'BLOCK_SIZE' is {size!r}; it is a number of queries and keys from 1 on, or one of each")
    return tuple(sizes)


def read(arrays, partial, full, function, arguments, block, lengths, is_known=True, prefix=""):
    """The Listed of lists: (counts, numbers) of the blocks that the function masks, and of those that are seen in full, or None.
    Refuses lists of blocks that there are not; where no number `is_known` these list nothing. `prefix` is of what they are."""
    parts = [(f"{prefix}kv_", FULL if function is None else PARTIAL, *partial)]
    if full is not None:
        parts.append((f"{prefix}full_kv_", FULL, *full))
    tiles, columns = (-(-length // size) for length, size in zip(lengths, block))
    for label, _, counts, blocks in parts:
        _check_shapes(label, block[0], lengths[0], tiles, counts, blocks)
        if counts.shape != partial[0].shape:
            raise ValueError(
                f"argument '{label}num_blocks' has shape {tuple(counts.shape)} and '{prefix}kv_num_blocks' "
                f"{tuple(partial[0].shape)}; they must be equal"
            )
    known = arrays, columns, tuple(state for _, state, *_ in parts)
    states = arrays.run(_read_table, known, *partial, *(full or ()))
    is_ragged = tuple(length % size != 0 for length, size in zip(lengths, block))
    cuts_full = function is not None and full is not None and any(is_ragged)
    if is_known:
        # In one question, as it waits for the device.
        answers = arrays.run(_ask, (arrays, columns, is_ragged), states, *partial, *(full or ())).tolist()
        if any(answers[1:]):
            _refuse(arrays, parts, columns, block[1], lengths[1])
        cuts_full = cuts_full and answers[0]
    return Listed(function, arguments, states, block, lengths, cuts_full)


def _ask(arrays, columns, is_ragged, states, *lists):
    """[whether some block of the last ones that reach past the end is FULL, whether counts are bad, or blocks of a part, ...]"""
    ends = [states[..., -1, :]] * is_ragged[0] + [states[..., -1]] * is_ragged[1]
    questions = [sum((end == FULL).sum() for end in ends) if ends else (states < 0).sum()]
    questions += [which.sum() for part in zip(lists[::2], lists[1::2]) for which in _find_bad(arrays, columns, *part)]
    return arrays.xp.stack(questions)


def _check_shapes(label, size, queries, tiles, counts, blocks):
    """Refuses what are no lists of tiles of so many queries."""
    for name, array in ((f"{label}num_blocks", counts), (f"{label}indices", blocks)):
        if str(array.dtype).rpartition(".")[2] not in ("int32", "int64"):
            raise TypeError(f"argument '{name}' is of {array.dtype}; it is of int32 or int64")
    if len(counts.shape) != 3 or len(blocks.shape) != 4 or counts.shape != blocks.shape[:3] or counts.shape[2] != tiles:
        raise ValueError(
            f"arguments '{label}num_blocks' and '{label}indices' have shapes {tuple(counts.shape)} and {tuple(blocks.shape)}; "
            f"{queries} queries in tiles of {size} have counts [batch, heads, {tiles}], and a list for each"
        )


def _find_bad(arrays, columns, counts, blocks):
    """(which counts a list cannot have, which blocks that are listed there are not)"""
    is_listed = arrays.arange(blocks.shape[-1]) < counts[..., None]
    return (counts < 0) | (counts > blocks.shape[-1]), ((blocks < 0) | (blocks >= columns)) & is_listed


def _refuse(arrays, parts, columns, size, keys):
    """Says what is bad of lists, of which something is."""
    for label, _, counts, blocks in parts:
        bad_counts, bad_blocks = _find_bad(arrays, columns, counts, blocks)
        if bool(bad_counts.any()):
            raise ValueError(
                f"argument '{label}num_blocks' counts {counts[bad_counts][0]} blocks of a tile; its list in '{label}indices' has "
                f"0 to {blocks.shape[-1]}: give counts of the blocks that are listed"
            )
        if bool(bad_blocks.any()):
            raise ValueError(
                f"argument '{label}indices' lists block {blocks[bad_blocks][0]}; {keys} keys in blocks of {size} have 0 to "
                f"{columns - 1}"
            )


def _cover(arrays, states, axis, block, size, length):
    """The states of the blocks that each tile of a dimension covers, in a dimension of their own behind it."""
    tiles = -(-length // size)
    first = arrays.arange(tiles) * size
    last = arrays.xp.clip(first + (size - 1), None, length - 1) // block
    most = size // block if size % block == 0 else 1 if block % size == 0 else size // block + 2
    places = arrays.xp.clip((first // block)[:, None] + arrays.arange(most), None, last[:, None])
    return states[..., places, :] if axis == -2 else states[..., places]


def find_tiles(arrays, block, lengths, sizes, states):
    """(the least, the most) that a table of blocks says of those of tiles of so many queries and keys."""
    found = []
    for reduce in (arrays.xp.amin, arrays.xp.amax):
        of_rows = reduce(_cover(arrays, states, -2, block[0], sizes[0], lengths[0]), -2)
        found.append(reduce(_cover(arrays, of_rows, -1, block[1], sizes[1], lengths[1]), -1))
    return found


def _ends_inside(arrays, size, length):
    """Which tiles do not reach past the end."""
    return (arrays.arange(-(-length // size)) + 1) * size <= length


def make_lists(arrays, listed, name):
    """(lists, counts) that kernels take, by what they are for, as `_block_lists` names them."""
    return arrays.run(_make_lists, (arrays, listed.block, listed.lengths, name), listed.states)


def _make_lists(arrays, block, lengths, name, states):
    of, *sizes = name.split()
    sizes = [int(size) for size in (sizes if of == "queries" else reversed(sizes))]
    least, most = find_tiles(arrays, block, lengths, sizes, states)
    whole = (least == FULL) & _ends_inside(arrays, sizes[1], lengths[1])
    if of == "keys":
        # Gradients are sums over queries, also over those that are not there.
        whole = whole & _ends_inside(arrays, sizes[0], lengths[0])[:, None]
        least, most, whole = (array.swapaxes(-1, -2) for array in (least, most, whole))
    return _order(arrays, whole, (most != SKIPPED) & ~whole, least == FULL)


def _order(arrays, whole, masked, is_full):
    """(lists, counts) as attention_lists.tile has them, of which blocks need no mask, a mask, and that for the ends alone."""
    xp, length = arrays.xp, whole.shape[-1]
    number = arrays.arange(length)
    # Where all is seen but what is past the end stands first, and from the end on backwards what needs no mask.
    by_place = xp.where(is_full, number, number + length)
    place = xp.where(masked, by_place, xp.where(whole, 4 * length - number, number + 2 * length))
    # A list has a block. Of one behind the last a mask leaves nothing, whatever the function says.
    is_empty = ~(masked | whole).any(-1)
    lists = xp.where((number == 0) & is_empty[..., None], length, xp.argsort(place))
    counts = (masked, whole, masked & ~is_full)
    numbers = [arrays.to_int32(which.sum(-1)) for which in counts]
    alone = arrays.to_int32(is_empty)
    return arrays.to_int32(lists), xp.stack([numbers[0] + alone, numbers[1], numbers[2] + alone], -1)
