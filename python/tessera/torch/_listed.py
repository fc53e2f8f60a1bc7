"""Lists of blocks as BlockMasks of torch.nn.attention.flex_attention have them, as tables that tessera._listed reads."""

import functools

import torch

from .._functions import _listed
from . import _op

# What torch takes for BLOCK_SIZE where there is no BlockMask.
_EMPTY_SIZE = (1 << 30, 1 << 30)


def make_arrays(device):
    return _listed.Arrays(
        torch, functools.partial(torch.arange, device=device), functools.partial(torch.zeros, dtype=torch.int8, device=device),
        _put, _to_int32,
    )  # fmt: skip


def _put(states, places, state):
    return states.scatter(-1, places.long(), state)


def _to_int32(numbers):
    return numbers.to(torch.int32)


def is_recording(device):
    """Whether no number of a tensor can be asked for, as a graph is made."""
    return torch.compiler.is_compiling() or (device.type == "cuda" and torch.cuda.is_current_stream_capturing())


def find_problem(block_mask):
    """Why a BlockMask of torch says no mask, as an exception, or None."""
    import torch.nn.attention.flex_attention as flex

    if block_mask is not None and block_mask.mask_mod is getattr(flex, "_sliced_mask_mod_error", flex):
        return NotImplementedError(
            "argument 'block_mask' is a part of another one and has lost its function: give it one that counts from this part"
        )
    return None


def list_tensors(block_mask):
    """The lists of a BlockMask of torch, by which it is known."""
    return [
        tensor
        for tensor in (block_mask.kv_num_blocks, block_mask.kv_indices, block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
        if tensor is not None
    ]


def list_sizes(block_mask):
    return block_mask.BLOCK_SIZE, block_mask.seq_lengths


def find_function(block_mask):
    """That of a BlockMask of torch, or None where it leaves all."""
    import torch.nn.attention.flex_attention as flex

    return None if block_mask.mask_mod in (None, flex.noop_mask) else block_mask.mask_mod


def leaves_all(block_mask):
    """Whether a BlockMask of torch is that which stands for none, whose lengths say nothing."""
    return block_mask.BLOCK_SIZE == _EMPTY_SIZE and find_function(block_mask) is None


def read_torch(block_mask):
    """The Listed of a BlockMask of torch, of whose lists those of keys say it all."""
    counts, blocks, *full = list_tensors(block_mask)
    if blocks.dim() < 4:
        counts, blocks, *full = (tensor[(None,) * (4 - blocks.dim())] for tensor in (counts, blocks, *full))
    block, lengths = list_sizes(block_mask)
    return read((counts, blocks), tuple(full) or None, find_function(block_mask), (), block, lengths, "block_mask.")


def sort_listed(blocks):
    """(counts, numbers of blocks) of those that are not -1."""
    is_listed = blocks != -1
    return is_listed.sum(-1), blocks.gather(-1, torch.argsort(~is_listed, dim=-1, stable=True))


def read(partial, full, function, arguments, block, lengths, prefix=""):
    """The Listed of lists, as tessera._listed has it. Those of a graph are not asked for their numbers."""
    device = partial[0].device
    for label, given in (("kv_", partial), ("full_kv_", full)):
        for name, tensor in zip((f"{prefix}{label}num_blocks", f"{prefix}{label}indices"), given or ()):
            _op.check_types({name: tensor})
            _op.raise_problem(_op.find_other_device(name, tensor, partial[0], f"{prefix}kv_num_blocks"))
    return _listed.read(
        make_arrays(device), partial, full, function, arguments, block, lengths, not is_recording(device), prefix
    )
