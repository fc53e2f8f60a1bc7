"""Masks by blocks: with lists of visited blocks that outlive a call, and those of torch.nn.attention.flex_attention."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch

from .._attention import _block_lists, _variants
from .._compiler import _explain
from .._functions import _listed as _tables
from .._functions._variant import read_lists, takes_batch, takes_lists
from . import _captured, _compute, _functions, _kernels, _listed, _op
from ._types import TYPES

if TYPE_CHECKING:  # Where nobody has a mask of torch it takes a third of a second for nothing.
    import torch.nn.attention.flex_attention


# Of shapes and what else calls differ in.
_MOST_FORMS = 256


def _count(extent, what):
    return f"any number of {what}" if extent is None else f"{extent} {what}"


class BlockMask:
    """A mask with the lists of the blocks in which it leaves something: `create_block_mask` makes it of a function, and
    `from_kv_blocks` of the blocks themselves.

    Kernels have tiles of several sizes, and lists are made for each when a call first needs it, or by `prepare`. Lists are
    what the mask said then: tensors that it captures are not to change afterwards.
    """

    def __init__(
        self,
        mask_mod: Callable[..., Any] | None,
        mask_args: tuple[torch.Tensor | float, ...],
        shape: tuple[int | None, int | None, int, int],
        device: torch.device,
        listed: _tables.Listed | None = None,
    ) -> None:
        self.mask_mod, self.mask_args, self.shape, self._listed = mask_mod, mask_args, shape, listed
        #: What kernels are compiled from, as `attention` takes its mask_mod and mask_args.
        self.mods = (mask_mod, mask_args) if listed is None else (listed, ())
        # What kernels that make lists take for q and k, of which only the extents count.
        self._anchor = torch.empty((1, 1, 1, _variants.WIDTHS[0]), dtype=torch.bfloat16, device=device)
        self.device = self._anchor.device
        self._written, self._values = _captured.find(self.device, None, (), *self.mods)
        if self._written.problem is not None:
            _captured.refuse(self._written.problem)
        # Compiled code that reads `_written` would have a guard of it and of what `find` gives again, which no name leads to.
        self._source = self._written.source
        #: The lists and how many blocks each has, by what they are for: "queries 128 64" are lists of blocks of 64 keys for
        #: each tile of 128 queries.
        self.lists: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        # What calls have asked to remember.
        self._forms = {}
        if listed is not None:
            return
        _variants.check_batch_and_heads(self._source, *shape[:2])
        self._globals = _captured.find_global_tensors(self.device, mask_mod, mask_args)
        self._versions = [_get_version(value) for value in self._values]

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: torch.Tensor | None,
        kv_indices: torch.Tensor,
        full_kv_num_blocks: torch.Tensor | None = None,
        full_kv_indices: torch.Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Callable[..., Any] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        *,
        mask_args: tuple[torch.Tensor | float, ...] = (),
    ) -> BlockMask:
        """That of blocks, as BlockMask.from_kv_blocks of torch takes them: a query sees what it sees of the blocks of keys that
        are listed for its tile.

        kv_indices:    the numbers of blocks of keys, [batch or 1, heads or 1, tiles of queries, most] of int32 or int64.
        kv_num_blocks: how many of them each tile has, [batch or 1, heads or 1, tiles of queries]; None where it has all but -1.
        full_kv_num_blocks, full_kv_indices: the same of blocks that are seen in full, which `mask_mod` does not mask.
        BLOCK_SIZE:    of how many queries and keys a block is; one number for both. Multiples of 64 are fast.
        mask_mod:      what is seen of blocks that are not full; None for all. `mask_args` are its further arguments.
        seq_lengths:   the numbers of queries and keys; those of whole blocks, as many as `most`, where they are not given.

        No mask is computed for each pair of query and key to find the blocks. Raises TraceError, TypeError and ValueError.
        """
        block = _tables.read_block_size(BLOCK_SIZE)
        if kv_num_blocks is None:
            kv_num_blocks, kv_indices = _listed.sort_listed(kv_indices)
        if seq_lengths is None:
            seq_lengths = tuple(extent * size for extent, size in zip(kv_indices.shape[-2:], block))
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise ValueError("arguments 'full_kv_num_blocks' and 'full_kv_indices' are given together, or none of them")
        full = None if full_kv_indices is None else (full_kv_num_blocks, full_kv_indices)
        return cls._of_listed(_listed.read((kv_num_blocks, kv_indices), full, mask_mod, mask_args, block, seq_lengths))

    @classmethod
    def from_torch(cls, block_mask: torch.nn.attention.flex_attention.BlockMask) -> BlockMask:
        """That of a BlockMask of torch.nn.attention.flex_attention, its lists and its function: a query sees what the function
        leaves of the blocks that are listed, and all of those that are listed as full. Where the lists are just those of the
        function, kernels are compiled from that alone."""
        from torch.nn.attention.flex_attention import BlockMask as OfTorch

        if not isinstance(block_mask, OfTorch):
            raise TypeError(f"argument 'block_mask' is a {type(block_mask).__name__}; it is a BlockMask of torch")
        _op.raise_problem(_listed.find_problem(block_mask))
        own = cls._of_listed(_listed.read_torch(block_mask))
        return cls(own.mask_mod, own.mask_args, own.shape, own.device) if own._is_of_function() else own

    @classmethod
    def _of_listed(cls, listed):
        return cls(listed.function, listed.arguments, listed.shape, listed.states.device, listed)

    def _is_of_function(self):
        """Whether the lists leave just what the function leaves. Where that takes more than a kernel for lists the answer is no."""
        listed = self._listed
        if listed.function is None or listed.needs_table or _listed.is_recording(self.device) or not _op.runs_on(self.device):
            return False
        if (read_lists(self._source) == "head" and "h" not in listed.indices) or (
            takes_batch(self._source) and "b" not in listed.indices
        ):
            return False
        looker, sizes = _block_lists.find_looker(self._get_kind(), self._source, listed.block)
        flags = self._launch(looker, *reversed(tuple(zip(listed.lengths, sizes))))[0].mT
        seen = torch.where(flags == 3, _tables.PARTIAL, flags)
        least, most = _tables.find_tiles(_listed.make_arrays(self.device), sizes, listed.lengths, listed.block, seen)
        is_left_out, is_full = listed.states == _tables.SKIPPED, listed.states == _tables.FULL
        return not bool((is_left_out & (most != _tables.SKIPPED) | is_full & (least != _tables.FULL)).any())

    def __repr__(self) -> str:
        batch, heads, rows, keys = self.shape
        of = "" if self._listed is None else " in blocks of {} x {}".format(*self._listed.block)
        return (
            f"<BlockMask of {_count(batch, 'batches')}, {_count(heads, 'heads')}, {rows} queries and {keys} keys{of} on "
            f"{self.device}, lists: {', '.join(self.lists) or 'none yet'}>"
        )

    def _repr_html_(self):
        """For notebooks: which blocks of keys the first head's tiles of queries visit, if a list says so."""
        found = next((lists for name, lists in self.lists.items() if name.startswith("queries")), None)
        shown = f"<p>{html.escape(repr(self))}</p>"
        return shown if found is None else shown + _draw(*found)

    def check(self, q: torch.Tensor, k: torch.Tensor) -> None:
        """Refuses tensors for which the lists are not."""
        if q.device != self.device:
            raise ValueError(f"argument 'block_mask' is on {self.device} and 'q' on {q.device}; they must be equal")
        _variants.check_extents(self.shape, (q.shape[0], q.shape[1], q.shape[2], k.shape[2]))

    def find_change(self) -> str | None:
        """What of the function is another than when its lists were made, in words. Lists of a user were not made of it."""
        if self._listed is not None:
            return None
        if torch.compiler.is_compiling():
            self._check_globals()
        # What else a function is made of, as constants and other functions, is in what is written for it.
        written, values = _captured.find(self.device, None, (), *self.mods)
        if written.source != self._source:
            return "the mask of argument 'block_mask' is another one than when its lists were made: create another BlockMask"
        # Of versions torch.compile sees nothing.
        is_same = all(map(_is_same, self._values, values)) if torch.compiler.is_compiling() else self.has_values(values)
        return None if is_same else _CHANGED

    def _check_globals(self):
        """Refuses other tensors of modules than when the lists were made. In compiled code this goes before anything that reads
        them by the names of the modules: torch.compile guards that two names are of one tensor if both are of locals."""
        for module, name, index in self._globals:
            if not _is_same(self._values[index], getattr(module, name)):
                raise ValueError(_CHANGED)

    def check_change(self) -> None:
        """Refuses a function that is another one than when its lists were made."""
        change = self.find_change()
        if change is not None:
            raise ValueError(change)

    @property
    def block(self) -> tuple[int, int] | None:
        """The numbers of queries and keys of a block, where the lists are those of a user."""
        return None if self._listed is None else self._listed.block

    @property
    def has_lists(self) -> bool:
        """Whether kernels take lists at all: comparisons may say which blocks there are."""
        return takes_lists(self._source)

    def find(self, wanted: Iterable[str], batch: int, heads: int) -> list[torch.Tensor]:
        """The lists that are wanted for calls of so many batches and heads, each with its counts, one after the other."""
        extents = _block_lists.count_lists(self._source, batch, heads)
        return [
            tensor if tuple(tensor.shape[:2]) == extents else tensor.expand(*extents, -1, -1)
            for name in wanted
            for tensor in self._find(name)
        ]

    def has_values(self, values: tuple[Any, ...]) -> bool:
        """Whether the first of some values are what the function captured when its lists were made, unchanged."""
        if self._listed is not None:
            return True
        for own, version, value in zip(self._values, self._versions, values):
            if (value is not own and not _is_same(own, value)) or (version is not None and own._version != version):
                return False
        return True

    def recall(self, key: tuple[Any, ...]) -> Any:
        """What was remembered for a key, or None."""
        return self._forms.get(key)

    def remember(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What `make` has given for a key, once; again where its lists are of a graph that is compiled or captured."""
        found = self._forms.get(key)
        if found is None:
            found = make()
            if not _listed.is_recording(self.device):
                if len(self._forms) >= _MOST_FORMS:
                    self._forms.clear()
                self._forms[key] = found
        return found

    def _find(self, name):
        if name in self.lists:
            return self.lists[name]
        is_recording = _listed.is_recording(self.device)
        if is_recording and self._listed is None:
            raise RuntimeError(
                f"argument 'block_mask' has no lists of {name} yet, and none are made while a graph is compiled or captured: "
                "call attention or its `prepare` before"
            )
        made = self._make(name)
        # Those of a graph are its own.
        if not is_recording:
            self.lists[name] = made
        return made

    def _make(self, name):
        if self._listed is not None:
            return _tables.make_lists(_listed.make_arrays(self.device), self._listed, name)
        return self._list(name)

    def _list(self, name):
        """Lists of the function's blocks."""
        lister = _block_lists.find_lister(self._get_kind(), self._source, name)
        of, *sizes = name.split()
        lengths = self.shape[2:] if of == "queries" else self.shape[:1:-1]
        return self._launch(lister, *zip(lengths, map(int, sizes)), 3)

    def _get_kind(self):
        _op.raise_problem(_op.find_device_problem("block_mask", self.device))
        return _kernels.find_kind(self.device.type == "cpu")

    def _launch(self, kernel, rows, columns, *more):
        """What a kernel says of tiles, of pairs (length, size): a number for each block of columns, and some more."""
        batch, heads, queries, keys = (1 if extent is None else extent for extent in self.shape)
        each = _block_lists.count_lists(self._source, batch, heads)
        tiles, blocks = (-(-length // size) for length, size in (rows, columns))
        results = tuple(
            torch.empty((*each, tiles, count), dtype=torch.int32, device=self.device) for count in (blocks, *more)
        )
        q, k = self._anchor.expand(batch, heads, queries, -1), self._anchor.expand(batch, 1, keys, -1)
        given = _captured.lend(*_captured.list_given(self._written, self._values), self._written.names)
        _compute.launch(kernel, q, k, *results, **given)
        return results

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
        if not self.has_lists:
            return self
        batch, heads, rows, keys = (1 if extent is None else extent for extent in self.shape)
        sizes = batch, heads, rows, head_dim, heads, keys, value_dim or head_dim
        learned = () if gradients else None
        forms = _functions.keep(self._source, self.device, TYPES[dtype], sizes, learned, deterministic, self.block)
        for _, wanted in forms:
            self.find((name for _, name in wanted), batch, heads)
        return self


def _draw(lists, counts):
    """The lists of the first batch and head, as HTML."""
    rows, length = [], lists.shape[-1]
    for blocks, (partial, full, _) in zip(lists[0, 0].tolist(), counts[0, 0].tolist()):
        row = ["s"] * length
        for of, letter in ((blocks[:partial], "p"), (blocks[length - full :], "f")):
            for block in of:
                if block < length:  # Else a tile sees nothing.
                    row[block] = letter
        rows.append("".join(row))
    text = "".join(rows)
    full, partial, skipped = map(text.count, "fps")
    return _explain.describe_counts(full, partial, skipped, 100 * (full + partial) / len(text)) + _explain.draw_rows(rows)


_CHANGED = "the mask of argument 'block_mask' captures another value than when its lists were made: create another BlockMask"


def _is_same(own, value):
    return value is own or (not isinstance(own, torch.Tensor) and value == own)


def _get_version(value):
    """How often a tensor was changed, where PyTorch counts it."""
    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else None


def _forget():
    return None


class _Kept:
    """What was read of a BlockMask of torch, which keeps it; its copies do not."""

    def __reduce__(self):
        return _forget, ()

    def __init__(self, block_mask):
        self.own = BlockMask.from_torch(block_mask)
        self.mask_mod, self.sizes = block_mask.mask_mod, _listed.list_sizes(block_mask)
        self.lists = _listed.list_tensors(block_mask)
        self.versions = [_get_version(tensor) for tensor in self.lists]

    def is_of(self, block_mask):
        """Whether it has the lists and the function that were read."""
        lists = _listed.list_tensors(block_mask)
        is_same = len(lists) == len(self.lists) and all(one is other for one, other in zip(lists, self.lists))
        return is_same and block_mask.mask_mod is self.mask_mod and _listed.list_sizes(block_mask) == self.sizes

    def is_current(self, block_mask):
        """Whether nothing of that was changed since."""
        return (
            self.is_of(block_mask)
            and [_get_version(tensor) for tensor in self.lists] == self.versions
            and self.own.find_change() is None
        )


def take(block_mask: torch.nn.attention.flex_attention.BlockMask) -> BlockMask:
    """The BlockMask of one of torch as it is now. Compiled code reads the lists in each call, unless a call before found that
    they are those of a function whose comparisons say which blocks there are."""
    kept = getattr(block_mask, "_tessera_kept", None)
    if torch.compiler.is_compiling():
        if kept is None or kept.own.block is not None or kept.own.has_lists or not kept.is_of(block_mask):
            return BlockMask.from_torch(block_mask)
        kept.own.check_change()
        return kept.own
    if kept is None or not kept.is_current(block_mask):
        kept = _Kept(block_mask)
        if not _listed.is_recording(kept.own.device):
            block_mask._tessera_kept = kept
    return kept.own


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: str | int | torch.device | None = None,
    *,
    mask_args: tuple[torch.Tensor | float, ...] = (),
) -> BlockMask:
    """The mask of mask_mod(b, h, q, k, *mask_args) with the lists of blocks that it leaves, for calls of `attention` and
    `flex_attention` with `block_mask=`: lists are made once, and not in each call.

    B, H:   the batches and heads of q; None where the mask is the same for all, of which there may be any number then.
    Q_LEN, KV_LEN: the numbers of queries and keys.
    device: where the lists are; by default the current CUDA device, and the CPU where `use_interpreter` is on and there is none.

    What `mask_mod` captures is as in `attention`. A mask whose comparisons say which blocks there are needs no lists, and has
    none. Raises TraceError and ValueError.
    """
    _variants.check_block_mask(mask_mod, B, H, Q_LEN, KV_LEN)
    if device is None:
        device = "cpu" if _op.runs_on(torch.device("cpu")) and not torch.cuda.is_available() else "cuda"
    return BlockMask(mask_mod, mask_args, (B, H, Q_LEN, KV_LEN), torch.device(device))


# As torch.compiler.disable says it, which would import the compiler.
create_block_mask._torchdynamo_disable = True  # type: ignore[attr-defined]
create_block_mask._torchdynamo_disable_msg = (  # type: ignore[attr-defined]
    "compiled code makes no lists of blocks: call create_block_mask before and give the code its result, or give `attention` the function "
    "as mask_mod"
)
