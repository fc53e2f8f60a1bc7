"""Where functions of scores and masks look at the batch and the head: what may be split over devices, or mapped over; and
whose gradients are single sums.

Reads the lines that `_tracing` writes.
"""

import functools
import re

# The dimensions of attention whose extents are those of a part, by the index that counts in them.
_EXTENTS = {"B": "b", "H": "h", "HK": "h"}
_CAST = re.compile(r"  (%\w+) = arith\.index_cast %([bh]) : i32 to index")
_VIEW = re.compile(r'  (%\w+) = tile\.argument "([^"]+)" : !tile\.view<\[(.*)\], \w+>')
_LOAD = re.compile(r"  %\w+ = tile\.load (%\w+)\[(.*)\] : .*")
_EXTENT = re.compile(r'  %\w+ = tile\.dim "(\w+)"')


def _read_function(lines, loads, free):
    """Adds the places of loads by the names of views, and what is computed with."""
    casts, views = {}, {}
    for line in lines:
        if match := _CAST.fullmatch(line):
            casts[match[1]] = match[2]
        elif match := _VIEW.fullmatch(line):
            views[match[1]] = match[2], match[3].split(", ")
        elif match := _LOAD.fullmatch(line):
            name, dims = views[match[1]]
            places = tuple(casts.get(index) for index in match[2].split(", "))
            loads.setdefault(name, []).append(places)
            # A view of the heads that is looked at elsewhere.
            free.update(_EXTENTS[dim] for dim, place in zip(dims, places) if dim in _EXTENTS and place != _EXTENTS[dim])
        elif match := _EXTENT.fullmatch(line):
            free.update(_EXTENTS[match[1]] if match[1] in _EXTENTS else ())
        else:
            free.update({"%b": "b", "%h": "h"}[name] for name in re.findall(r"%[bh]\b", line))


@functools.lru_cache(maxsize=256)
def read(source):
    """({name of a view: what indexes each dimension, "b", "h" or None}, which of "b" and "h" functions use in other ways)."""
    loads, free = {}, set()
    for function in source.split("func.func ")[1:]:
        _read_function(function.splitlines()[1:], loads, free)
    views = {}
    for name, places in loads.items():
        same = tuple(letters[0] if len(set(letters)) == 1 else None for letters in zip(*places))
        views[name] = tuple(letter if same.count(letter) == 1 else None for letter in same)
        free.update(letter for load in places for letter, known in zip(load, views[name]) if letter and letter != known)
    return views, frozenset(free)


_INDEX = re.compile(r"  (%\w+) = arith\.index_cast (%\w+) : i32 to index")
_CONSTANT = re.compile(r"  (%\w+) = arith\.constant -?\d+ : i32")


@functools.lru_cache(maxsize=256)
def list_exact(source, letters):
    """The names of the views of which each element meets scores of one query only, each of them once: those that @score
    looks at in one place, and no sink, by the query, the indices of `letters`, the key and constants. Their gradients have one
    order of sums."""
    casts, views, loads = {}, {}, {}
    constants = {f"%{letter}": letter for letter in "bhqk"}
    for line in source.partition("func.func @score(")[2].partition("\n}")[0].splitlines():
        if match := _CONSTANT.fullmatch(line):
            constants[match[1]] = ""
        elif (match := _INDEX.fullmatch(line)) and match[2] in constants:
            casts[match[1]] = constants[match[2]]
        elif match := _VIEW.fullmatch(line):
            views[match[1]] = match[2]
        elif match := _LOAD.fullmatch(line):
            loads.setdefault(views[match[1]], []).append([casts.get(index) for index in match[2].split(", ")])
    needed, of_sink = {"q", *letters}, source.partition("func.func @sink(")[2]
    loads = {name: places for name, places in loads.items() if f'"{name}"' not in of_sink}
    return tuple(name for name, [place, *others] in loads.items() if not others and None not in place and needed <= set(place))
