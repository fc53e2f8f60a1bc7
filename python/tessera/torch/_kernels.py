"""Kernels of sources by their parameters, and the devices that they run on, for functions that choose among few."""

from __future__ import annotations

import functools

import torch

from .._compiler import _choices
from .._compiler._program import Program
from .._core import _library


def find_card():
    """The name of the current GPU, which rows of rules may be for; None where nothing has used one."""
    return _find_name(torch.cuda.current_device()) if torch.cuda.is_initialized() else None


@functools.lru_cache(maxsize=64)
def _find_name(index):
    return torch.cuda.get_device_properties(index).name


def find_kind(is_cpu):
    """What makes kernels of sources: the form for the interpreter, or the compiler for the current GPU."""
    return Program if is_cpu else _choices.compiler_for(find_card())


def find(is_cpu, source, kernel=None, **parameters):
    """The kernel of a source, or its form for the interpreter."""
    return _find(find_kind(is_cpu), source, kernel, tuple(parameters.items()))


@functools.lru_cache(maxsize=1024)
def _find(kind, source, kernel, parameters):
    return kind(source, kernel, **dict(parameters))


def choose(device, source, extents=(), **parameters):
    """The values of all parameters of a source by what rules choose for a call on a device: its extents, (name, extent) of each.
    `form` beside them is the source that is to be taken instead, or None."""
    card = _find_name(device.index or 0) if device.type == "cuda" and torch.cuda.is_initialized() else None
    return _choices.choose_values(source, (("MULTIPROCESSORS", count_multiprocessors(device)), *extents), card, tuple(parameters.items()))


@functools.lru_cache(maxsize=256)
def find_numbers(device, *extents):
    """What calls of few queries on a device go by, for extents: the parameters of serving.tile."""
    return choose(device, _library.find_source("serving"), extents)


@functools.lru_cache(maxsize=64)
def count_multiprocessors(device):
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else _choices.INTERPRETED
