"""The work of sequences, whose lengths lie on the device, in shares that end together (kernels/balance.tile)."""

from __future__ import annotations

import functools

import torch

from .._attention import _shares
from .._core import _library
from . import _kernels, _states


class Shares:
    """Shares of the steps of sequences, as kernels take them.

    starts: int32, [B + 1]: the steps before each sequence, and all.
    shares: int32, [3, W]: of each share the first sequence, the one behind the last, and how many steps it has.
    """

    def __init__(self, starts: torch.Tensor, shares: torch.Tensor):
        self.starts, self.shares = starts, shares

    @classmethod
    def balance(cls, lengths, step, count, least):
        """`count` shares of sequences of `lengths` keys, `step` of them a step; a share has `least` steps at least."""
        starts = lengths.new_empty(len(lengths) + 1)
        shares = lengths.new_empty(_shares.shape_of(count))
        kernel = _kernels.find(lengths.device.type == "cpu", _library.find_source("balance"))
        kernel(lengths, starts, *shares, step, least, count)
        return cls(starts, shares)

    @property
    def slots(self) -> int:
        return _shares.count_slots(len(self.starts) - 1, self.shares.shape[1])

    def merge(self, parts, lses, out, lse, sinks=None):
        """Joins parts [slots, S, H, DV] and their LSE [slots, H, S] where a sequence has several: to out [B, S, H, DV], lse [B, H, S].
        `sinks`, [H], are scores that have no value."""
        is_cpu = parts.device.type == "cpu"
        more = () if sinks is None else (sinks,)
        choose = functools.partial(_kernels.choose, parts.device)
        name, parameters, heads = _shares.choose_merge(choose, out.shape, self.shares.shape[1])
        parameters.update({"OUT": _states.TYPES[out.dtype]}, **({} if sinks is None else {"SINK": True}))
        kernel = _kernels.find(is_cpu, _library.find_source(name), **parameters)
        if heads is None:
            parts = parts.flatten(1, 2).transpose(0, 1)
        else:
            parts, out = (x.flatten(1, 2).unflatten(1, (-1, heads)) for x in (parts, out))
            lses, lse = (x.unflatten(1, (-1, heads)) for x in (lses, lse))
            more = [x.unflatten(0, (-1, heads)) for x in more]
        kernel(parts, lses, out, lse, self.starts, self.shares[2], *more)
