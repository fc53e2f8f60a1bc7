"""Recipes of attention by numbers of 8 bits: quantize.tile rounds Q, K and V, unless K and V have 8 bits already, and
attention_fp8.tile or the source of functions attends."""

import functools

from . import _library, _variants
from ._errors import CompileError
from ._layouts import MINUS_INFINITY, NOTHING, TENSOR, ZERO, Layout, Places, Recipe, list_strides, make_dense

#: The keys of a block that has one scale, for the larger of the head dimensions, of which a step of the kernel takes all.
#: Rotating 128 columns leaves registers for 64 rows.
BLOCKS = {64: 128, 96: 128, 128: 128, 192: 96, 256: 96}
_ROTATED_BLOCKS = {64: 128, 96: 128, 128: 64, 192: 64, 256: 64}
#: With a causal mask steps of 128 keys spill at 64 columns: (rows of a block, keys of a step).
_CAUSAL = {64: (192, 96)}
#: The same with functions, where they leave registers for so many, and where they do not.
_FUNCTION_BLOCKS = {64: (96, 64), 96: (128, 64), 128: (128, 64), 192: (64, 32), 256: (64, 32)}


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
    width, wider, is_rotated = q.shape[3], max(q.shape[3], v.shape[3]), rotation is not None
    most = _ROTATED_BLOCKS[width] if is_rotated else BLOCKS[width]
    parameters = {"D": width, "DV": v.shape[3], "OUT": q.element, "SCALES": "blocks", "V_TRANSPOSED": False}
    if _variants.is_source(variant):
        steps = [min(step, most) for step in _FUNCTION_BLOCKS[wider]]
        kernel, block = _find_fitting(kind, variant, steps, T="f8E4M3FN", **parameters)
    else:
        block = step = min(BLOCKS[wider], most)
        if "CAUSAL=true" in variant and wider in _CAUSAL:
            block, step = _CAUSAL[wider]
        kernel = _find(kind, *_read_name(variant), BN=step, **parameters)
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
    wider = max(q.shape[3], v.shape[3])
    parameters = {"T": k.element, "TQ": q.element, "OUT": q.element, "D": q.shape[3], "DV": v.shape[3], "V_TRANSPOSED": False}
    if not _variants.is_source(variant):
        return _find(kind, *_read_name(variant), **parameters)
    # A converted tile takes the shared memory of two, which at 256 columns leaves room for one warpgroup.
    rows = 64 if wider > 192 else 128
    return _find_fitting(kind, variant, _FUNCTION_BLOCKS[wider], BM=rows, **parameters)[0]


def _find_fitting(kind, source, steps, **parameters):
    """The kernel of a source with the most keys a step for which there are registers, and how many these are."""
    *more, fewest = steps
    for step in more:
        try:
            return _find(kind, source, (), BN=step, **parameters), step
        except CompileError as error:
            if not error.lacks_room:
                raise
    return _find(kind, source, (), BN=fewest, **parameters), fewest


def _read_name(variant):
    """The name of a source, and the parameters that stand behind it."""
    name, *fields = variant.split()
    return name, tuple(tuple(field.split("=", 1)) for field in fields)


@functools.lru_cache(maxsize=256)
def _find(kind, name, named, **parameters):
    """The kernel of a source that ships, or of a text, or its form for the interpreter."""
    source = name if _variants.is_source(name) else _library.find_source(name)
    return kind(source, **dict(named), **parameters)
