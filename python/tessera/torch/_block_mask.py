"""Masks whose lists of visited blocks outlive a call, and those of torch.nn.attention.flex_attention, whose functions count."""

import torch
import torch.nn.attention.flex_attention as flex

from .. import _compile, _variants
from .._program import Program
from .._trace import TraceError
from .._variant import takes_lists
from . import _backward, _captured, _functions, _op
from ._types import TYPES


def find_problem(block_mask):
    """Why kernels cannot be compiled from a mask, as an exception; None when they can."""
    if block_mask is None:
        return None
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


def _count(extent, what):
    return f"any number of {what}" if extent is None else f"{extent} {what}"


class BlockMask:
    """A mask with the lists of the blocks in which it leaves something; `create_block_mask` makes it.

    Kernels have tiles of several sizes, and lists are made for each when a call first needs it, or by `prepare`. Lists are
    what the mask said then: tensors that it captures are not to change afterwards.
    """

    def __init__(self, mask_mod, mask_args, shape, device):
        self.mask_mod, self.mask_args, self.shape = mask_mod, mask_args, shape
        # What kernels that make lists take for q and k, of which only the extents count.
        self._anchor = torch.empty((1, 1, 1, _variants.WIDTHS[0]), dtype=torch.bfloat16, device=device)
        self.device = self._anchor.device
        self._written, self._values = _captured.find(self.device, None, (), mask_mod, mask_args)
        if self._written.problem is not None:
            raise TraceError(self._written.problem)
        of = _variants.read_lists(self._written.source)
        for name, extent, needs in (("B", shape[0], ("batch", "head")), ("H", shape[1], ("head",))):
            if of in needs and extent is None:
                what = "batch" if name == "B" else "head"
                raise ValueError(f"argument '{name}' is None, and the mask takes the {what}: there are lists for each; give it")
        #: The lists and how many blocks each has, by what they are for: "queries 128 64" are lists of blocks of 64 keys for
        #: each tile of 128 queries.
        self.lists = {}

    def __repr__(self):
        batch, heads, rows, keys = self.shape
        lists = ", ".join(self.lists) or "none yet"
        return (
            f"<BlockMask of {_count(batch, 'batches')}, {_count(heads, 'heads')}, {rows} queries and {keys} keys on "
            f"{self.device}, lists: {lists}>"
        )

    def check(self, q, k, values):
        """Refuses tensors for which the lists are not, and other values of what the mask captures."""
        if q.device != self.device:
            raise ValueError(f"argument 'block_mask' is on {self.device} and 'q' on {q.device}; they must be equal")
        given = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        for extent, own, what in zip(given, self.shape, ("batches", "heads", "queries", "keys")):
            if own is not None and extent != own:
                raise ValueError(
                    f"argument 'block_mask' has lists for {own} {what}, and the call has {extent}: create one for these"
                )
        for own, value in zip(self._values, values):
            if isinstance(own, torch.Tensor):
                # A graph has other tensors for what is captured.
                is_same = torch.compiler.is_compiling() or value is own
            else:
                is_same = value == own
            if not is_same:
                raise ValueError(
                    "the mask of argument 'block_mask' captures another value than when its lists were made: create another "
                    "BlockMask"
                )

    def find(self, wanted):
        """The lists that are wanted, each with its counts, one after the other."""
        for name in wanted:
            if name not in self.lists:
                if torch.compiler.is_compiling() or _is_capturing(self.device):
                    raise RuntimeError(
                        f"argument 'block_mask' has no lists of {name} yet, and none are made while a graph is compiled or "
                        "captured: call attention or its `prepare` before"
                    )
                self.lists[name] = self._make(name)
        return [tensor for name in wanted for tensor in self.lists[name]]

    def _make(self, name):
        problem = _op.find_device_problem("block_mask", self.device)
        if problem is not None:
            raise problem
        kind = Program if self.device.type == "cpu" else _compile.compile
        lister = _variants.find_lister(kind, self._written.source, name)
        batch, heads, queries, keys = (1 if extent is None else extent for extent in self.shape)
        of, rows, columns = name.split()
        tiled, listed = (queries, keys) if of == "queries" else (keys, queries)
        tiles, length = -(-tiled // int(rows)), -(-listed // int(columns))
        each = _variants.count_lists(self._written.source, batch, heads)
        lists, counts = (
            torch.empty((*each, tiles, size), dtype=torch.int32, device=self.device) for size in (length, 2)
        )
        q, k = self._anchor.expand(batch, heads, queries, -1), self._anchor.expand(batch, 1, keys, -1)
        given = _captured.name_given(*_captured.list_given(self._written, self._values), self._written.names)
        _backward.launch(lister, (q, k, lists, counts), **given)
        return lists, counts

    def prepare(self, head_dim, *, value_dim=None, dtype=torch.bfloat16, gradients=False):
        """Makes the lists for head dimensions, and with `gradients` those of the backward pass, before the first call that
        needs them: ahead of torch.compile and of captured graphs. Returns the mask."""
        if dtype not in TYPES:
            raise TypeError(f"argument 'dtype' is {dtype}; attention takes float16 and bfloat16")
        if not takes_lists(self._written.source):
            return self
        batch, heads, rows, keys = (1 if extent is None else extent for extent in self.shape)
        sizes = batch, heads, rows, head_dim, heads, keys, value_dim or head_dim
        learned = () if gradients else None
        for _, wanted in _functions.keep(self._written.source, self.device, TYPES[dtype], sizes, learned):
            self.find(name for _, name in wanted)
        return self


def _is_capturing(device):
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device="cuda", *, mask_args=()):
    """The mask of mask_mod(b, h, q, k, *mask_args) with the lists of blocks that it leaves, for calls of `attention` and
    `flex_attention` with `block_mask=`: lists are made once, and not in each call.

    B, H:   the batches and heads of q; None where the mask is the same for all, of which there may be any number then.
    Q_LEN, KV_LEN: the numbers of queries and keys.

    What `mask_mod` captures is as in `attention`. A mask whose comparisons say which blocks there are needs no lists, and has
    none. Raises TraceError and ValueError.
    """
    for name, extent in (("B", B), ("H", H), ("Q_LEN", Q_LEN), ("KV_LEN", KV_LEN)):
        if (extent is None and name in ("B", "H")) or (isinstance(extent, int) and extent >= 1):
            continue
        what = "a number from 1 on" + (" or None" if name in ("B", "H") else "")
        raise ValueError(f"argument '{name}' is {extent!r}; it is {what}")
    if mask_mod is None:
        raise TypeError("argument 'mask_mod' is None; it is a function: without one attention needs no block_mask")
    return BlockMask(mask_mod, tuple(mask_args), (B, H, Q_LEN, KV_LEN), torch.device(device))
