"""Tensors of numbers that calls share, which nothing changes."""

from __future__ import annotations

import functools

import torch

from . import _direct

_CPU = torch.device("cpu")


def is_capturing(device):
    """Whether work on `device` becomes a part of a CUDA graph, whose memory is its own and has numbers in replays alone."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()


def kept(make):
    """`make` of numbers and, last, a device, which gives a tensor: made once for calls that nothing traces. In a graph that is captured
    each replay makes it."""

    @functools.lru_cache(maxsize=256)
    def find(*arguments):
        # By a copy that has ended when it returns: later calls may run on another stream. Calls with gradients save tensors, which may come
        # after the first one in inference mode.
        with torch.inference_mode(False):
            return make(*arguments[:-1], _CPU).to(arguments[-1])

    @functools.wraps(make)
    def of_device(*arguments):
        # Dynamo warns of caches, and what is made under a mode is for it alone.
        return make(*arguments) if _direct.is_traced() or is_capturing(arguments[-1]) else find(*arguments)

    return of_device


@kept
def full(shape, number, dtype, device):
    return torch.full(shape, number, dtype=dtype, device=device)
