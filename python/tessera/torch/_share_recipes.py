"""What cutting the work of sequences, whose lengths lie on the device, into shares that end together launches (balance.tile), and what
joining these does (merge_shares.tile and merge_parts.tile)."""

from __future__ import annotations

import functools
import json

import torch

from .._attention import _recipes, _shares
from .._attention._latent import STEP
from .._compiler._program import Program
from .._core import _library
from .._core._layouts import CONSTANT, Layout, Places, Recipe, list_strides
from . import _kernels

SHARES = "shares"


def list_layouts(batch, count):
    """Of `count` shares, int32, [3, W]: of each the first sequence, the one behind the last, and how many steps it has. And of the steps
    before each of `batch` sequences, and all, int32, [B + 1]."""
    shape = _shares.shape_of(count)
    return Layout(shape, list_strides(shape), "i32"), Layout((batch + 1,), (1,), "i32")


def write(count, device):
    """The text of a call with the lengths of sequences."""
    return f"{SHARES}\n||\n{json.dumps([count, str(device)])}"


def make(kind, names, text, tensors):
    """The Recipe of a text. Results are shares and starts."""
    (count, device), places = json.loads(text), Places(names, tensors, ("lengths",))
    results = list_layouts(tensors[0].shape[0], count)
    places.add_results("shares", "starts")
    step = bind_balance(_kernels.find, kind is Program, places, results[0], count, torch.device(device))
    return Recipe((step,), results, views=tuple(places.views))


_recipes.MAKERS[SHARES] = make


def _list_shares(places, layout):
    """The places of the three numbers of each share."""
    step, own = layout.strides[0] * 4, Layout(layout.shape[1:], (1,), "i32")
    return [places.view("shares", own, row * step) for row in range(3)]


def bind_balance(find, is_cpu, places, shares, count, device):
    """A step that fills `shares` and `starts` from `lengths`."""
    least = _kernels.find_numbers(device)["LEAST_STEPS"]
    own = places.places["lengths"], places.places["starts"], *_list_shares(places, shares)
    return find(is_cpu, _library.find_source("balance")), (*own, *((CONSTANT, number) for number in (STEP, least, count)))


def list_operands(places, shares):
    """What kernels take of shares and starts."""
    return places.places["starts"], *_list_shares(places, shares)


def bind_merge(find, is_cpu, places, device, parts, logs, out, lse, shares=None, count=None, scores=()):
    """A step that joins `parts` [slots, S, H, DV] and their LSE `logs` [slots, H, S], to `out` [B, S, H, DV] and `lse` [B, H, S]: those of
    `shares` where a sequence has several, or without shares as many for each, part p of sequence b in slot p * B + b: `count`, or None
    where bits depend on no batch. `sinks`, [H], are scores that have no value. `scores` names the largest scores of parts, as `logs`, and
    those of all, as `lse`."""
    known = -(-shares.shape[1] // out.shape[0]) if shares else count
    choose = functools.partial(_kernels.choose, device)
    name, parameters, heads = _shares.choose_merge(choose, out.shape, known, bool(shares))
    parameters.update({"T": parts.element, "OUT": out.element})
    parameters.update({flag: True for flag, has in (("SINK", "sinks" in places.places), ("MAXIMA", scores)) if has})
    kernel, sinks = find(is_cpu, _library.find_source(name), **parameters), Layout((out.shape[2],), (1,), "f32")
    if heads is None:
        parts = parts.join(1).permute(1, 0, 2)
    else:
        parts, out = (x.join(1).split(1, heads) for x in (parts, out))
        logs, lse, sinks = logs.split(1, heads), lse.split(1, heads), sinks.split(0, heads)
    operands = [places.view(each, own) for each, own in {"parts": parts, "logs": logs, "out": out, "lse": lse}.items()]
    if shares:
        operands += places.places["starts"], _list_shares(places, shares)[2]
    if "SINK" in parameters:
        operands.append(places.view("sinks", sinks))
    operands += (places.view(each, own) for each, own in zip(scores, (logs, lse)))
    return kernel, tuple(operands)
