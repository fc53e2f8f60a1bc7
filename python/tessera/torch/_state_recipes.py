"""What joining outputs and LSE over disjoint sets of keys launches: merge_states.tile."""

from __future__ import annotations

import json

import torch

from .._attention import _recipes
from .._compiler._program import Program
from .._core import _library
from .._core._layouts import RESULT, Layout, Places, Recipe, list_strides
from . import _kernels

MERGE = "states"


def find_source():
    return _library.find_source("merge_states")


def write(out, device):
    """The text of a call with parts [P, B, S, H, DV], of which (S, H) are one dimension, and their LSE; `out` is the output's type."""
    return f"{MERGE}\n||\n{json.dumps([out, str(device)])}"


def make(kind, names, text, tensors):
    """The Recipe of a text. Results are the output [B, S, H, DV] and the LSE [B, H, S]."""
    (element, device), (parts, lses) = json.loads(text), tensors
    places = Places(names, tensors, ("parts", "lses"))
    if not parts.has_rows() or parts.strides[2] != parts.shape[3] * parts.strides[3]:
        parts = parts.make_dense()
        places.copy("parts", parts)
    if lses.strides[-1] != 1 and lses.shape[-1] > 1:
        places.copy("lses", lses.make_dense())
    results = Layout(parts.shape[1:], list_strides(parts.shape[1:]), element), Layout(lses.shape[1:], list_strides(lses.shape[1:]), "f32")
    extents = parts.shape[0], parts.shape[4]
    kernel = find_merge(_kernels.find, kind is Program, torch.device(device), extents, parts.element, element)
    parts = places.view("parts", parts.join(2).permute(1, 2, 0, 3))
    step = kernel, (parts, places.places["lses"], (RESULT, 0), (RESULT, 1))
    return Recipe((step,), results, copies=tuple(places.copies), views=tuple(places.views))


_recipes.MAKERS[MERGE] = make


def find_merge(find, is_cpu, device, extents, element, out):
    """The kernel that joins parts of element type `element` to an output of type `out`. Extents are those of parts and columns."""
    chosen = _kernels.choose(device, find_source(), tuple(zip(("P", "DV"), extents)))
    return find(is_cpu, find_source(), "merge_states", T=element, OUT=out, D=chosen["D"], BP=chosen["BP"])
