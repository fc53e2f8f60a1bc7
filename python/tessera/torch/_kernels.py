"""Kernels of sources by their parameters, and the devices that they run on, for functions that choose among few."""

from __future__ import annotations

import functools

import torch

from .. import _compile
from .._program import Program

# Multiprocessors where there is no device to ask.
_INTERPRETED = 132


@functools.lru_cache(maxsize=1024)
def find(is_cpu, source, kernel=None, **parameters):
    """The kernel of a source, or its form for the interpreter."""
    return (Program if is_cpu else _compile.compile)(source, kernel, **parameters)


@functools.lru_cache(maxsize=64)
def count_multiprocessors(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else _INTERPRETED
