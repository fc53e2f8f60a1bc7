"""What a step of decoding of a recurrence launches: step.tile."""

from __future__ import annotations

import json

import torch

from .._attention import _recipes, _recurrences
from .._compiler._program import Program
from .._core._layouts import Layout, Places, Recipe, list_strides
from . import _kernels

STEP = "a step of a recurrence"


def write(names, made="given", **options):
    """The text of a call with q and k [B, 1, HK, K], v [B, 1, H, V] and tensors of these names: `g` and `rates`, [B, 1, H], [B, H] or
    [H], where gates of channels are [B, 1, HK, K], the state `s0` [B, H, K, V] and maybe `skip`, [H] or [H, V], `bias` [H], and `z`
    [B, 1, H, V].

    made: how steps are made of rates, of which a call has the limits as numbers (given_steps.tile).
    device: where it runs.
    delta: whether values replace what the state holds for their key.
    norm: whether queries and keys are divided by their lengths.
    steps: whether gates are multiplied by the rates, as those of heads by the steps of their tokens.
    """
    return f"{STEP}\n{','.join(names)}|{name_numbers(made)}|\n{json.dumps({'made': made, **options}, sort_keys=True)}"


def name_numbers(made):
    """Those of texts with steps that are made so."""
    return "" if made == "given" else "least,most"


def choose(kernel, device, batch, heads, rows, columns):
    """The parameters that rules choose for states of these extents, and a `form` that is to be taken instead."""
    extents = ("B", batch), ("H", heads), ("V", columns)
    return _kernels.choose(device, _recurrences.find_source(kernel), extents, DK=rows)


def make(kind, names, text, tensors):
    """The Recipe of a text. Results are the output [B, 1, H, V] and the state behind the token, of float32."""
    options, places = json.loads(text), Places(names, tensors, ("q", "k", "v"), plain=names[0])
    q, k, v = tensors[:3]
    given = dict(zip(names[0], tensors[3:]))
    state = given["s0"].make_dense()
    if given["s0"].strides != state.strides:
        places.copy("s0", state)
    out = v.make_dense()
    places.add_results("o", "s1")
    width = choose("step", torch.device(options["device"]), *state.shape)["DV"]
    parameters = {"T": q.element, "DK": q.shape[3], "DV": width, "SKIP": "skip" in given}
    parameters["CHANNELS"] = len(given["g"].shape) == 4
    parameters.update(MADE=options["made"], BIASED="bias" in given)
    of_token = {"q": q, "k": k, "v": v, "o": out}
    if parameters["SKIP"]:
        parameters["ELEMENTS"] = len(given["skip"].shape) == 2
    if "z" in given:
        of_token["z"] = z = given["z"] if given["z"].has_rows() else given["z"].make_dense()
        parameters.update(GATED=True, GATE=z.element)
        if z != given["z"]:
            places.copy("z", z)
    parameters.update({name.upper(): options[name] for name in ("delta", "norm", "steps")})
    kernel = _kernels.find(kind is Program, _recurrences.find_source("step"), **parameters)
    of_token = {name: places.view(name, x.drop(1)) for name, x in of_token.items()}
    shapes = {"g": q.drop(1).shape if parameters["CHANNELS"] else state.shape[:2], "rates": state.shape[:2]}
    shapes |= {name: given[name].shape for name in ("skip", "bias") if name in given}
    gates = {name: _view_gates(places, name, given[name], shape) for name, shape in shapes.items()}
    step = places.bind(kernel, **of_token, **gates)
    return Recipe((step,), (out, state), copies=tuple(places.copies), views=tuple(places.views))


_recipes.MAKERS[STEP] = make


def _view_gates(places, name, x, shape):
    """Numbers of heads, or of their channels, as kernels take them, of float32: those of other types or strides are copied."""
    if x.element != "f32" or x.strides[-1] != 1:
        x = Layout(x.shape, list_strides(x.shape), "f32")
        places.copy(name, x)
    own = x.drop(1) if len(x.shape) > len(shape) else x
    return places.view(name, Layout(shape, ((0,) * (len(shape) - len(own.strides)) + own.strides), "f32"))
