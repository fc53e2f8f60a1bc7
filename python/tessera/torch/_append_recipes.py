"""What storing new keys and values launches: kv_append.tile."""

from __future__ import annotations

import json

from .._attention import _recipes
from .._compiler._program import Program
from .._core import _free, _library
from .._core._layouts import Layout, Places, Recipe, list_strides
from . import _kernels

APPEND = "new keys and values"


def write(names, interleaved):
    """The text of a call with k, v, k_cache, v_cache and tensors of these names: slots, and maybe q, cos, sin, positions and scales."""
    return f"{APPEND}\n{','.join(names)}||\n{json.dumps(interleaved)}"


def make(kind, names, text, tensors):
    """The Recipe of a text. Rotated queries are the result, where there are some. The number of tokens is free."""
    scope = _free.Scope()
    tokens = 0, 1, *(place for place, name in enumerate(names[0], 4) if name in ("slots", "q", "positions"))
    tensors = scope.open(tensors, [(place, 0) for place in tokens])
    places = Places(names, tensors, ("k", "v", "k_cache", "v_cache"), plain=names[0])
    given = dict(zip(names[0], tensors[4:]))
    for name in ("k_scale", "v_scale"):
        if name in given:
            places.places[name] = places.view(name, Layout((1,), (1,), "f32"))
    results = ()
    if "q" in given:
        results = (Layout(given["q"].shape, list_strides(given["q"].shape), given["q"].element),)
        places.add_results("q_out")
    k, v, k_cache, _ = tensors[:4]
    parameters = _describe(k, v, k_cache, given, json.loads(text), SLOTS=given["slots"].element)
    kernel = _find(_kernels.find, kind is Program, parameters)
    return scope.close(Recipe((places.bind(kernel),), results, views=tuple(places.views)))


_recipes.MAKERS[APPEND] = make


def bind_places(find, is_cpu, places, given, interleaved, q, k, v):
    """A step that stores `new_k` and `new_v` behind the keys of sequences, whose lengths and queries are those behind it from then on."""
    new = {name: places.join(f"new_{name}", given[f"new_{name}"]) for name in ("k", "v")}
    own = {name: places.view(f"new_{name}", layout) for name, layout in new.items()}
    own.update(k_cache=places.places["k"], v_cache=places.places["v"], lengths=places.places["lengths"])
    places.add_temporary("lengths", Layout(given["lengths"].shape, (1,), "i32"))
    own["after"] = places.places["lengths"]
    rotations = {name: x for name, x in given.items() if name in ("cos", "sin")}
    parameters = _describe(new["k"], new["v"], k, rotations, interleaved, PLACED=True)
    if "pages" in given:
        parameters["PAGED"] = True
    elif "slots" in given:
        parameters["SLOTTED"], own["page_of"] = True, places.places["slots"]
    if "cos" in given:
        rows = places.join("q", q)
        own["q"] = places.view("q", rows)
        places.add_temporary("q", Layout(rows.shape, list_strides(rows.shape), rows.element))
        own["q_out"], parameters["QUERIES"] = places.places["q"], True
    return places.bind(_find(find, is_cpu, parameters), **own)


def _describe(k, v, k_cache, given, interleaved, **parameters):
    """The parameters of the kernel."""
    width = next(width for width in (64, 128, 256) if max(k.shape[2], v.shape[2]) <= width)
    parameters.update(T=k.element, D=width)
    if k_cache.element != k.element:
        parameters["CACHED"] = k_cache.element
    if "cos" in given:
        parameters.update(ROTARY=True, QUERIES="q" in given, INTERLEAVED=interleaved, ANGLES=given["cos"].element)
        # Both halves of all heads of a tile are loaded in words, and so are rows of angles.
        is_whole = not interleaved and width == k.shape[2] == 2 * given["cos"].shape[1]
        if is_whole and all(given[name].has_rows() for name in ("cos", "sin")):
            parameters["WHOLE"] = True
    return parameters


def _find(find, is_cpu, parameters):
    return find(is_cpu, _library.find_source("kv_append"), **parameters)
