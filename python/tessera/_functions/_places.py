"""Where functions of scores and masks look at the batch and the head: what may be split over devices, or mapped over; and
whose gradients are single sums."""

import functools

from . import _facts

# The dimensions of attention whose extents are those of a part, by the index that counts in them.
_EXTENTS = {"B": "b", "H": "h", "HK": "h"}
# What the arguments of functions are.
_LETTERS = {"mask": "bhqk", "mask_by_data": "bhqk", "score": "sbhqk", "sink": "bh", "first_key": "bhq", "last_key": "bhq"}


def _name_place(place, letters):
    """The argument that an index is, "" where it is constant, and None where it is computed."""
    return letters[place["is"]] if place["is"] >= 0 else "" if place["fixed"] else None


@functools.lru_cache(maxsize=256)
def read(source):
    """({name of a view: what indexes each dimension, "b", "h" or None}, which of "b" and "h" functions use in other ways)."""
    loads, free = {}, set()
    for name, function in _facts.describe(source).items():
        if name not in _LETTERS:  # What calls it says what its arguments are.
            free.update("bh" if function["computes"] or function["loads"] else "")
            continue
        letters = _LETTERS[name]
        free.update(_EXTENTS[dim] for dim in function["extents"] if dim in _EXTENTS)
        free.update({"b", "h"}.intersection(letters[argument] for argument in function["computes"]))
        for load in function["loads"]:
            found = [_name_place(place, letters) for place in load["places"]]
            places = tuple(letter if letter in ("b", "h") else None for letter in found)
            loads.setdefault(load["view"], []).append(places)
            # A view of the heads that is looked at elsewhere.
            dims = zip(load["dims"], places)
            free.update(_EXTENTS[dim] for dim, place in dims if dim in _EXTENTS and place != _EXTENTS[dim])
    views = {}
    for name, places in loads.items():
        same = tuple(letters[0] if len(set(letters)) == 1 else None for letters in zip(*places))
        views[name] = tuple(letter if same.count(letter) == 1 else None for letter in same)
        free.update(letter for load in places for letter, known in zip(load, views[name]) if letter and letter != known)
    return views, frozenset(free)


@functools.lru_cache(maxsize=256)
def list_exact(source, letters):
    """The names of the views of which each element meets scores of one query only, each of them once: those that @score
    looks at in one place, and no sink, by the query, the indices of `letters`, the key and constants. Their gradients have one
    order of sums."""
    facts, loads = _facts.describe(source), {}
    for load in _facts.get(facts, "score")["loads"]:
        loads.setdefault(load["view"], []).append([_name_place(place, _LETTERS["score"]) for place in load["places"]])
    of_sink = {load["view"] for load in _facts.get(facts, "sink")["loads"]}
    needed = {"q", *letters}
    return tuple(
        name for name, [place, *others] in loads.items()
        if not others and None not in place and needed <= set(place) and name not in of_sink
    )  # fmt: skip
