"""Masks whose lists of visited blocks outlive a call, and those of torch.nn.attention.flex_attention, whose functions count."""

from __future__ import annotations

import html
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .. import _block_lists, _compile, _explain, _variants
from .._program import Program
from .._trace import TraceError
from .._variant import read_lists, takes_lists
from . import _captured, _compute, _functions, _op
from ._types import TYPES

if TYPE_CHECKING:  # Where nobody has a mask of torch it takes a third of a second for nothing.
    import torch.nn.attention.flex_attention


def find_problem(block_mask):
    """Why kernels cannot be compiled from a mask, as an exception; None when they can."""
    if block_mask is None:
        return None
    import torch.nn.attention.flex_attention as flex

    if block_mask.mask_mod is flex.noop_mask:
        return NotImplementedError(
            "argument 'block_mask' has lists of blocks and no function, from which kernels are compiled: give the function of "
            "the mask to create_block_mask, or None where all keys are seen"
        )
    if block_mask.mask_mod is getattr(flex, "_sliced_mask_mod_error", None):
        return NotImplementedError(
            "argument 'block_mask' is a part of another one and has lost its function: give it one that counts from this part"
        )
    return None


def _find_list_problem(block_mask):
    """Which lists of a BlockMask of torch name more blocks than they have, or blocks that are none, as an exception; or None."""
    for name, length, size in zip(("q", "kv"), block_mask.seq_lengths, block_mask.BLOCK_SIZE):
        blocks_of_length = -(-length // size)
        for prefix in (name, f"full_{name}"):
            counts, blocks = (getattr(block_mask, f"{prefix}_{what}") for what in ("num_blocks", "indices"))
            if counts is None:
                continue
            if bool(((counts < 0) | (counts > blocks.shape[-1])).any()):
                return ValueError(
                    f"argument 'block_mask' counts {counts.min()} to {counts.max()} blocks in {prefix}_num_blocks; its lists, "
                    f"{prefix}_indices, have 0 to {blocks.shape[-1]}: give counts of the blocks that are listed"
                )
            is_listed = torch.arange(blocks.shape[-1], device=counts.device) < counts[..., None]
            if bool(((blocks < 0) | (blocks >= blocks_of_length))[is_listed].any()):
                return ValueError(
                    f"argument 'block_mask' lists blocks {blocks[is_listed].min()} to {blocks[is_listed].max()} in "
                    f"{prefix}_indices; {length} {'queries' if name == 'q' else 'keys'} in blocks of {size} have 0 to {blocks_of_length - 1}"
                )
    return None


def _count(extent, what):
    return f"any number of {what}" if extent is None else f"{extent} {what}"


class BlockMask:
    """A mask with the lists of the blocks in which it leaves something; `create_block_mask` makes it.

    Kernels have tiles of several sizes, and lists are made for each when a call first needs it, or by `prepare`. Lists are
    what the mask said then: tensors that it captures are not to change afterwards.
    """

    def __init__(
        self,
        mask_mod: Callable[..., Any],
        mask_args: tuple[torch.Tensor | float, ...],
        shape: tuple[int | None, int | None, int, int],
        device: torch.device,
        of_torch: torch.nn.attention.flex_attention.BlockMask | None = None,
    ) -> None:
        self.mask_mod, self.mask_args, self.shape, self._of_torch = mask_mod, mask_args, shape, of_torch
        # What kernels that make lists take for q and k, of which only the extents count.
        self._anchor = torch.empty((1, 1, 1, _variants.WIDTHS[0]), dtype=torch.bfloat16, device=device)
        self.device = self._anchor.device
        self._written, self._values = _captured.find(self.device, None, (), mask_mod, mask_args)
        if self._written.problem is not None:
            raise TraceError(self._written.problem)
        # Compiled code that reads `_written` would have a guard of it and of what `find` gives again, which no name leads to.
        self._source = self._written.source
        _variants.check_batch_and_heads(self._source, *shape[:2])
        self._globals = _captured.find_global_tensors(self.device, mask_mod, mask_args)
        #: The lists and how many blocks each has, by what they are for: "queries 128 64" are lists of blocks of 64 keys for
        #: each tile of 128 queries.
        self.lists: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        # The same of the BlockMask of torch that this one was made of; None where its blocks do not fit.
        self._lists_of_torch = {}

    @classmethod
    def from_torch(cls, block_mask: torch.nn.attention.flex_attention.BlockMask) -> BlockMask:
        """That of a BlockMask of torch.nn.attention.flex_attention, whose lists are taken where its blocks are multiples of the
        tiles of all kernels of a call; where they are not, `mask_mod` says which blocks there are, with a warning."""
        from torch.nn.attention.flex_attention import BlockMask as OfTorch

        if not isinstance(block_mask, OfTorch):
            raise TypeError(f"argument 'block_mask' is a {type(block_mask).__name__}; it is a BlockMask of torch")
        problem = find_problem(block_mask) or _find_list_problem(block_mask)
        if problem is not None:
            raise problem
        batch, heads, *lengths = block_mask.shape
        shape = *(None if extent == 1 else extent for extent in (batch, heads)), *lengths
        return cls(block_mask.mask_mod, (), shape, block_mask.kv_num_blocks.device, block_mask)

    def __repr__(self) -> str:
        batch, heads, rows, keys = self.shape
        of_torch = [f"{name} of torch" for name, lists in self._lists_of_torch.items() if lists is not None]
        lists = ", ".join([*self.lists, *of_torch]) or "none yet"
        return (
            f"<BlockMask of {_count(batch, 'batches')}, {_count(heads, 'heads')}, {rows} queries and {keys} keys on "
            f"{self.device}, lists: {lists}>"
        )

    def _repr_html_(self):
        """For notebooks: which blocks of keys the first head's tiles of queries visit, if a list says so."""
        found = next((lists for name, lists in [*self._lists_of_torch.items(), *self.lists.items()]
                      if lists is not None and name.startswith("queries")), None)  # fmt: skip
        shown = f"<p>{html.escape(repr(self))}</p>"
        return shown if found is None else shown + _draw(*found)

    def check(self, q: torch.Tensor, k: torch.Tensor, values: Sequence[torch.Tensor | float]) -> None:
        """Refuses tensors for which the lists are not, and other values of what the mask captures."""
        if q.device != self.device:
            raise ValueError(f"argument 'block_mask' is on {self.device} and 'q' on {q.device}; they must be equal")
        _variants.check_extents(self.shape, (q.shape[0], q.shape[1], q.shape[2], k.shape[2]))
        # What else a function is made of, as constants and other functions, is in what is written for it.
        written, _ = _captured.find(self.device, None, (), self.mask_mod, self.mask_args)
        if written.source != self._source:
            raise ValueError(
                "the mask of argument 'block_mask' is another one than when its lists were made: create another BlockMask"
            )
        for own, value in zip(self._values, values):
            _check_value(own, value)

    def check_globals(self) -> None:
        """Refuses other tensors of modules than when the lists were made. In compiled code this goes before anything that reads
        them by the names of the modules: torch.compile guards that two names are of one tensor if both are of locals."""
        for module, name, index in self._globals:
            _check_value(self._values[index], getattr(module, name))

    def find(self, wanted: Iterable[str], batch: int) -> list[torch.Tensor]:
        """The lists that are wanted for calls of a batch, each with its counts, one after the other."""
        wanted = list(wanted)
        lists = self.lists
        if self._of_torch is not None:
            self._add(self._lists_of_torch, wanted, self._convert)
            # Kernels of one call visit the same blocks.
            if all(self._lists_of_torch[name] is not None for name in wanted):
                lists = self._lists_of_torch
        self._add(lists, wanted, self._make)
        found = [tensor for name in wanted for tensor in lists[name]]
        # Those for any number of batches, of a mask that takes the head.
        is_one = self.shape[0] is None and read_lists(self._source) == "head"
        return [tensor.expand(batch, -1, -1, -1) for tensor in found] if is_one else found

    def _add(self, lists, wanted, make):
        for name in wanted:
            if name in lists:
                continue
            if torch.compiler.is_compiling() or _is_capturing(self.device):
                raise RuntimeError(
                    f"argument 'block_mask' has no lists of {name} yet, and none are made while a graph is compiled or captured: "
                    "call attention or its `prepare` before"
                )
            lists[name] = make(name)

    def _describe(self, name):
        """What lists of a name are: (how many, of which lengths, the sizes of tiles and blocks, whether tiles are of queries)."""
        of, rows, columns = name.split()
        batch, heads, queries, keys = (1 if extent is None else extent for extent in self.shape)
        lengths = (queries, keys) if of == "queries" else (keys, queries)
        each = _block_lists.count_lists(self._source, batch, heads)
        return each, lengths, (int(rows), int(columns)), of == "queries"

    def _convert(self, name):
        each, lengths, sizes, of_queries = self._describe(name)
        found = _convert(self._of_torch, each, lengths, sizes, of_queries)
        if found is None:
            rows, columns = self._of_torch.BLOCK_SIZE
            warnings.warn(
                f"the lists of a BlockMask of torch, of {rows} queries and {columns} keys, do not serve as {name}: its mask_mod says "
                "which blocks are visited", UserWarning, stacklevel=2,
            )  # fmt: skip
        return found

    def _make(self, name):
        problem = _op.find_device_problem("block_mask", self.device)
        if problem is not None:
            raise problem
        kind = Program if self.device.type == "cpu" else _compile.compile
        lister = _block_lists.find_lister(kind, self._source, name)
        each, lengths, sizes, _ = self._describe(name)
        tiles, length = (-(-extent // size) for extent, size in zip(lengths, sizes))
        lists, counts = (
            torch.empty((*each, tiles, size), dtype=torch.int32, device=self.device) for size in (length, 3)
        )
        batch, heads, queries, keys = (1 if extent is None else extent for extent in self.shape)
        q, k = self._anchor.expand(batch, heads, queries, -1), self._anchor.expand(batch, 1, keys, -1)
        given = _captured.lend(*_captured.list_given(self._written, self._values), self._written.names)
        _compute.launch(lister, q, k, lists, counts, **given)
        return lists, counts

    def prepare(
        self,
        head_dim: int,
        *,
        value_dim: int | None = None,
        dtype: torch.dtype = torch.bfloat16,
        gradients: bool = False,
        deterministic: bool = False,
    ) -> BlockMask:
        """Makes the lists for head dimensions, and with `gradients` those of the backward pass, with `deterministic` as
        `attention` has it, before the first call that needs them: ahead of torch.compile and of captured graphs. Returns the
        mask."""
        if dtype not in TYPES:
            raise TypeError(f"argument 'dtype' is {dtype}; attention takes float16 and bfloat16")
        if not takes_lists(self._source):
            return self
        batch, heads, rows, keys = (1 if extent is None else extent for extent in self.shape)
        sizes = batch, heads, rows, head_dim, heads, keys, value_dim or head_dim
        learned = () if gradients else None
        for _, wanted in _functions.keep(self._source, self.device, TYPES[dtype], sizes, learned, deterministic):
            self.find((name for _, name in wanted), batch)
        return self


def _convert(block_mask, each, lengths, sizes, of_queries):
    """(lists, counts) for kernels of the lists of a BlockMask of torch, `each` for so many batches and heads; None where these are
    for other blocks, or for none of a tile, or make blocks at the end whole."""
    rows, columns = block_mask.BLOCK_SIZE if of_queries else block_mask.BLOCK_SIZE[::-1]
    names = ("kv_num_blocks", "kv_indices") if of_queries else ("q_num_blocks", "q_indices")
    counts, blocks = (getattr(block_mask, name) for name in names)
    if counts is None or any(own % size for own, size in zip((rows, columns, *lengths), (*sizes, rows, columns))):
        return None
    if any(own not in (1, extent) for own, extent in zip(counts.shape, each)):
        return None
    whole_counts, whole_blocks = (getattr(block_mask, f"full_{name}") for name in names)
    if whole_counts is None:
        whole_counts, whole_blocks = torch.zeros_like(counts), blocks
    if not bool((counts + whole_counts > 0).all()):
        return None
    parts, places = columns // sizes[1], torch.arange(lengths[1] // sizes[1], device=counts.device)

    def look(blocks, places):
        """The numbers of the kernels' blocks at places of the lists."""
        return blocks[..., (places // parts).clamp(max=blocks.shape[-1] - 1)] * parts + places % parts

    # Blocks that need no mask stand from the end on backwards.
    lists = torch.where(places < counts[..., None] * parts, look(blocks, places), look(whole_blocks, places.flip(0)))
    # Where a mask hides something, torch does not say which part of it does.
    numbers = torch.stack([counts, whole_counts, counts], -1) * parts
    return tuple(
        x.int().repeat_interleave(rows // sizes[0], 2).expand(*each, -1, -1).contiguous() for x in (lists, numbers)
    )


def _draw(lists, counts):
    """The lists of the first batch and head, as HTML."""
    rows, length = [], lists.shape[-1]
    for blocks, (partial, full, _) in zip(lists[0, 0].tolist(), counts[0, 0].tolist()):
        row = ["s"] * length
        for of, letter in ((blocks[:partial], "p"), (blocks[length - full :], "f")):
            for block in of:
                row[block] = letter
        rows.append("".join(row))
    text = "".join(rows)
    full, partial, skipped = map(text.count, "fps")
    return _explain.describe_counts(full, partial, skipped, 100 * (full + partial) / len(text)) + _explain.draw_rows(rows)


def _check_value(own, value):
    is_same = value is own if isinstance(own, torch.Tensor) else value == own
    if not is_same:
        raise ValueError(
            "the mask of argument 'block_mask' captures another value than when its lists were made: create another BlockMask"
        )


def _is_capturing(device):
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: str | int | torch.device = "cuda",
    *,
    mask_args: tuple[torch.Tensor | float, ...] = (),
) -> BlockMask:
    """The mask of mask_mod(b, h, q, k, *mask_args) with the lists of blocks that it leaves, for calls of `attention` and
    `flex_attention` with `block_mask=`: lists are made once, and not in each call.

    B, H:   the batches and heads of q; None where the mask is the same for all, of which there may be any number then.
    Q_LEN, KV_LEN: the numbers of queries and keys.

    What `mask_mod` captures is as in `attention`. A mask whose comparisons say which blocks there are needs no lists, and has
    none. Raises TraceError and ValueError.
    """
    _variants.check_block_mask(mask_mod, B, H, Q_LEN, KV_LEN)
    return BlockMask(mask_mod, mask_args, (B, H, Q_LEN, KV_LEN), torch.device(device))
