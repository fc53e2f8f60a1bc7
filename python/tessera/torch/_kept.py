"""Tensors of numbers that calls share, which nothing changes."""

from __future__ import annotations

import functools
import weakref

import torch

from . import _direct

_CPU = torch.device("cpu")


def is_capturing(device):
    """Whether work on `device` becomes a part of a CUDA graph, whose memory is its own and has numbers in replays alone."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


#: Tensors that graphs read, by what made them: a graph may outlive the calls that keep them.
_of_graphs = {}


def kept(make):
    """`make` of numbers and, last, a device, which gives a tensor: made once for calls that nothing traces. A graph that is captured reads
    what a call before has made, which lives as long as the process from then on; else each replay makes it."""
    alive = weakref.WeakValueDictionary()

    @functools.lru_cache(maxsize=256)
    def find(*arguments):
        # By a copy that has ended when it returns: later calls may run on another stream. Calls with gradients save tensors, which may come
        # after the first one in inference mode.
        with torch.inference_mode(False):
            return alive.setdefault(arguments, make(*arguments[:-1], _CPU).to(arguments[-1]))

    @functools.wraps(make)
    def of_device(*arguments):
        # Dynamo warns of caches, and what is made under a mode is for it alone.
        if _direct.is_traced():
            return make(*arguments)
        if not is_capturing(arguments[-1]):
            return find(*arguments)
        found = alive.get(arguments)
        return make(*arguments) if found is None else _of_graphs.setdefault((make, arguments), found)

    return of_device


@kept
def full(shape, number, dtype, device):
    return torch.full(shape, number, dtype=dtype, device=device)
