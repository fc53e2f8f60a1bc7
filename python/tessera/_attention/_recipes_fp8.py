"""Recipes of attention by numbers of 8 bits: quantize.tile rounds Q, K and V, unless K and V have 8 bits already, and
attention_fp8.tile or the source of functions attends."""

import functools

from .._core import _library
from .._core._layouts import MINUS_INFINITY, NOTHING, TENSOR, ZERO, Layout, Places, Recipe, list_strides, make_dense
from . import _variants


def make(kind, names, variant, tensors):
    """The recipe of output and LSE for q, k, v, a rotation of the columns of q and k or None, and views. Of 16 bits k and v are
    rounded; of 8 bits the number `v_scale` behind the scale is what `v` is a multiple of."""
    q, k, v = tensors[:3]
    is_empty = not k.shape[2] or 0 in q.shape
    results = (
        make_dense(q, *q.shape[:3], v.shape[3], fill=ZERO if is_empty else NOTHING),
        make_dense(q, *q.shape[:3], element="f32", fill=MINUS_INFINITY if is_empty else NOTHING),
    )
    if is_empty:
        return Recipe(results=results)
    views, numbers, integers = names
    places = Places((views, ["v_scale", *numbers], integers), tensors, ("q", "k", "v", "r"))
    places.add_results("o", "lse")
    steps = _list_rounded(kind, variant, places) if k.element == q.element else [places.bind(_find_cached(kind, variant, q, k, v))]
    return Recipe(tuple(steps), results, tuple(places.temporaries), tuple(places.copies))


def _list_rounded(kind, variant, places):
    """What is launched for q, k and v of 16 bits."""
    q, k, v, rotation, *_ = places.tensors
    is_rotated = rotation is not None
    parameters = {"T": "f8E4M3FN", "D": q.shape[3], "DV": v.shape[3], "OUT": q.element, "SCALES": "blocks", "V_TRANSPOSED": False}
    # Rules choose a step for which there are registers, and so the keys of a block.
    kernel = _find(kind, *_read_name(variant), **parameters, **({"ROTATED": True} if is_rotated else {}))
    block = kernel.parameters["BLOCK"]
    return [
        _round(kind, places, "q", is_rotated),
        _round(kind, places, "k", is_rotated, BLOCKS=True, BM=block),
        _round(kind, places, "v", False, BLOCKS=True, BM=block, POWERS=True),
        places.bind(kernel),
    ]


def _round(kind, places, name, is_rotated, **parameters):
    """A launch of quantize.tile with further parameters: what has 8 bits, and its scales, stand in the place of the tensor."""
    place = places.places[name]
    x = places.tensors[place[1]]
    places.add_temporary(name, Layout(x.shape, list_strides(x.shape), "f8E4M3FN"))
    places.add_temporary(f"{name}_scale", Layout(x.shape[:3], list_strides(x.shape[:3]), "f32"))
    if is_rotated and x.shape[3] > 128:
        parameters["HALVES"] = True
    kernel = _find(kind, "quantize", (), T=x.element, D=x.shape[3], ROTATE=is_rotated, **parameters)
    return places.bind(kernel, x=place, q=places.places[name], s=places.places[f"{name}_scale"])


def _find_cached(kind, variant, q, k, v):
    """The kernel for k and v of 8 bits."""
    parameters = {"T": k.element, "TQ": q.element, "OUT": q.element, "D": q.shape[3], "DV": v.shape[3], "V_TRANSPOSED": False}
    return _find(kind, *_read_name(variant), **parameters)


def _read_name(variant):
    """The name of a source, and the parameters that stand behind it; of a text there are none."""
    if _variants.is_source(variant):
        return variant, ()
    name, *fields = variant.split()
    return name, tuple(tuple(field.split("=", 1)) for field in fields)


@functools.lru_cache(maxsize=256)
def _find(kind, name, named, **parameters):
    """The kernel of a source that ships, or of a text, or its form for the interpreter."""
    source = name if _variants.is_source(name) else _library.find_source(name)
    return kind(source, **dict(named), **parameters)
