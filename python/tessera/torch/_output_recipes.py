"""What gradients launch of what outputs of state-space duality have beside those of the state: output_gradients.tile."""

from __future__ import annotations

import functools

from .._attention import _recipes
from .._attention._recurrences import find_source
from .._compiler import _choices
from .._compiler._program import Program
from .._core._layouts import Places, Recipe
from . import _walk_recipes
from ._walk_recipes import make_plain

OUTPUTS = "gradients of outputs"


@functools.lru_cache(maxsize=256)
def write(names, device):
    """The text of a call with the gradient of the outputs, [B, T, H, V], and tensors of these names:

    y, z:   the outputs before z, and z, by whose silu they are multiplied.
    v:      the values, which pass by a number of each element.
    begins: where packed sequences begin.
    """
    return f"{OUTPUTS}\n{','.join(names)}||\n{device}"


def list_names(names):
    """(those of a text, what it gives), of a walk of tensors of these names, of which the gate of outputs comes with these, and what has a
    number of each element with values."""
    own = *(("y", "z") if "z" in names else ()), *(("v",) if "v" in names else ())
    results = *(("dz", "dy") if "z" in names else ()), *(("dskip",) if "v" in names else ())
    return (*own, *(("begins",) if "begins" in names else ())), results


def make(kind, names, text, tensors):
    """The Recipe of a text. Results are the gradients of z and of the outputs before it, where it is given, and of numbers of each element,
    [H, V], where values are."""
    given, is_cpu = dict(zip(("d", *names[0]), tensors)), kind is Program
    places = Places(names, tensors, ("d",), plain=names[0])
    batch, tokens, heads, columns = given["d"].shape
    own = {name: _join_heads(places, name, x) for name, x in given.items() if name != "begins"}
    results, form = {}, {"T": given["d"].element, "GATED": "z" in given, "ELEMENTS": "v" in given, "PACKED": "begins" in given}
    if form["GATED"]:
        form["GATE"] = given["z"].element
        results.update(dz=make_plain(*given["z"].shape, element=form["GATE"]), dy=make_plain(*given["d"].shape, element=form["T"]))
    if form["ELEMENTS"]:
        results["dskip"] = make_plain(heads, columns)
    if form["PACKED"]:
        begins = given["begins"]
        form["BEGIN"] = begins.element
        if begins.strides != (1,):
            places.copy("begins", make_plain(*begins.shape, element=begins.element))
    places.add_results(*results)
    own.update({name: places.view(name, results[name].join(2)) for name in ("dz", "dy") if name in results})
    (of_part,) = _choices.list_allowed(find_source("output_gradients"), "TOKENS")
    steps, count = [], -(-tokens // of_part)
    if form["ELEMENTS"]:
        places.add_temporary("parts", make_plain(batch, count, heads * columns))
        own["dskip"] = places.places["parts"]
    steps.append(places.bind(_walk_recipes.find_kernel(is_cpu, "output_gradients", **form), **own))
    if form["ELEMENTS"]:
        parts = places.view("parts", make_plain(1, batch * count, heads, columns))
        sums = places.view("dskip", make_plain(1, heads, columns))
        steps.append(places.bind(_walk_recipes.find_kernel(is_cpu, "part_sums", D=columns), parts=parts, sums=sums))
    return Recipe(tuple(steps), tuple(results.values()), tuple(places.temporaries), tuple(places.copies), tuple(places.views))


def _join_heads(places, name, x):
    """The place of [B, T, H, V] with all heads in a row, of a copy where they do not follow each other."""
    joined = x.join(2) if x.has_rows() else None
    if joined is None:
        dense = x.make_dense()
        places.copy(name, dense)
        joined = dense.join(2)
    return places.view(name, joined)


_recipes.MAKERS[OUTPUTS] = make
