"""Tensors of calls, memory that calls make, and recipes: what a call launches, and where the arguments of kernels come from
(tessera-c/Calls.h)."""

from __future__ import annotations

from typing import NamedTuple

from . import _library

# tessera_call_source
TENSOR, RESULT, TEMPORARY, COPY, NUMBER, INTEGER, CONSTANT, VIEW = range(8)
# tessera_call_fill
NOTHING, ZERO, MINUS_INFINITY = range(3)
# Rows that tiles are loaded from begin at multiples of so many bytes.
_ROW_BYTES = 16
_BYTES = {element.name: element.size for element in _library.ELEMENTS}


def element_bytes(element):
    return _BYTES[element]


def has_rows(shape, strides, element_size, is_aligned):
    """Whether rows lie as kernels move them: dense, and at multiples of 16 bytes."""
    unit = _ROW_BYTES // element_size
    steps = (step for step, size in zip(strides[:-1], shape) if size > 1)
    is_dense = strides[-1] == 1 or shape[-1] == 1
    return is_dense and not any(step % unit for step in steps) and is_aligned


class Layout(NamedTuple):
    """A tensor of a call, or memory that a call makes. Strides are in elements."""

    shape: tuple
    strides: tuple
    #: The name of the element type in sources.
    element: str
    #: Of a tensor, whether it begins at a multiple of 16 bytes.
    is_aligned: bool = True
    #: What memory holds at first.
    fill: int = NOTHING

    def permute(self, *dims):
        return self._replace(shape=tuple(self.shape[i] for i in dims), strides=tuple(self.strides[i] for i in dims))

    def split(self, dim, inner):
        """A dimension as two, of which the last one has so many elements."""
        shape, step = self.shape[dim], self.strides[dim]
        parts = (shape // inner, inner), (step * inner, step)
        return self._replace(**{
            name: (*own[:dim], *new, *own[dim + 1 :])
            for name, own, new in zip(("shape", "strides"), (self.shape, self.strides), parts)
        })  # fmt: skip

    def take(self, element, first, count):
        """So many elements of another type of each row, from its byte `first` on."""
        own, size = _BYTES[self.element], _BYTES[element]
        if first + count * size > own * self.shape[-1] or any(own * step % size for step in self.strides[:-1]):
            raise ValueError(f"rows of {self.shape[-1]} {self.element} have no {count} {element} at byte {first}")
        strides = *(own * step // size for step in self.strides[:-1]), 1
        return self._replace(shape=(*self.shape[:-1], count), strides=strides, element=element)

    def insert(self, dim):
        """With a dimension more, of one element."""
        shape, strides = ((*own[:dim], number, *own[dim:]) for number, own in ((1, self.shape), (0, self.strides)))
        return self._replace(shape=shape, strides=strides)

    def join(self, dim):
        """A dimension and the next one as one; None where their rows do not follow each other."""
        (outer, inner), (step, own) = self.shape[dim : dim + 2], self.strides[dim : dim + 2]
        if outer != 1 and inner != 1 and step != inner * own:
            return None
        joined = (outer * inner,), (step if inner == 1 else own,)
        return self._replace(**{
            name: (*known[:dim], *new, *known[dim + 2 :])
            for name, known, new in zip(("shape", "strides"), (self.shape, self.strides), joined)
        })  # fmt: skip

    def make_dense(self):
        """Rows one after another."""
        return Layout(self.shape, list_strides(self.shape), self.element)

    def has_rows(self):
        return has_rows(self.shape, self.strides, _BYTES[self.element], self.is_aligned)

    def drop(self, dim):
        """Without a dimension of one element."""
        return self.permute(*(i for i in range(len(self.shape)) if i != dim))


class Recipe(NamedTuple):
    """What a call launches."""

    #: Kernels, or forms for the interpreter, each with a place for each of its arguments: (TENSOR or others, which one).
    steps: tuple = ()
    results: tuple = ()
    #: Memory for the time of the call.
    temporaries: tuple = ()
    #: Tensors that are taken in another layout: (which one, Layout).
    copies: tuple = ()
    #: Memory in layouts of its own: (place, Layout, bytes before its first element).
    views: tuple = ()
    #: Numbers of tensors that may be others, and numbers of the recipe that follow them (_free.py).
    free: tuple = ()
    followings: tuple = ()
    #: Calls like this one need not ask again.
    is_final: bool = True
    #: Which steps may run beside those behind them, up to the first that takes what they store or stores what they take.
    beside: tuple = ()


def make_dense(x, *shape, element=None, fill=NOTHING):
    """Memory of a shape [B, H, S, ...] that is dense in the order of the storage of `x`, whose rows may hold all heads."""
    batch, heads, rows, *width = shape
    inner = width[0] if width else 1
    by_row = bool(width) and x.strides[1] < x.strides[2]
    of_head, of_row = (inner, heads * inner) if by_row else (rows * inner, inner)
    strides = (heads * rows * inner, of_head, of_row, *(1 for _ in width))
    return Layout(tuple(shape), strides, element or x.element, fill=fill)


def list_strides(shape):
    """Those of rows one after another."""
    strides = [1] * len(shape)
    for dim in range(len(shape) - 1, 0, -1):
        strides[dim - 1] = strides[dim] * shape[dim]
    return tuple(strides)


class Places:
    """Where the arguments of kernels come from, by their names, and the tensors that are copied first."""

    def __init__(self, names, tensors, own, plain=()):
        """`names` are those of views, numbers and integers, and `own` those of the tensors before the views. Views that are `plain`
        are taken as they lie."""
        views, numbers, integers = names
        self.tensors, self.copies, self.temporaries, self.views = tensors, [], [], []
        self.places = {name: (TENSOR, index) for index, name in enumerate((*own, *views))}
        self.places |= {name: (NUMBER, index) for index, name in enumerate(("scale", *numbers))}
        self.places |= {name: (INTEGER, index) for index, name in enumerate(integers)}
        for index, name in enumerate(views, len(own)):
            if index < len(tensors) and tensors[index] is not None and name not in plain:
                self.align(name, tensors[index])

    def align(self, name, view):
        """The layout of a view, of a copy where its rows do not begin where kernels load them that take tiles or rows of it."""
        unit = _ROW_BYTES // _BYTES[view.element]
        if view.is_aligned and all(step % unit == 0 for step in view.strides[:-1]):
            return view
        return self._copy_rows(name, view)

    def _copy_rows(self, name, view):
        """The layout of a copy: rows one after another, each of which begins where kernels load it."""
        unit = _ROW_BYTES // _BYTES[view.element]
        shape = *view.shape[:-1], -(-view.shape[-1] // unit) * unit
        layout = Layout(view.shape, list_strides(shape), view.element)
        self.copy(name, layout)
        return layout

    def copy(self, name, layout):
        """Takes a tensor in another layout."""
        _, index = self.places[name]
        self.places[name] = COPY, len(self.copies)
        self.copies.append((index, layout))

    def join(self, name, layout):
        """A layout of a tensor whose first two dimensions are one, of a copy where their rows do not follow each other."""
        joined = layout.join(0)
        return self._copy_rows(name, layout).join(0) if joined is None else joined

    def add_results(self, *names):
        self.places |= {name: (RESULT, index) for index, name in enumerate(names)}

    def add_temporary(self, name, layout):
        self.places[name] = TEMPORARY, len(self.temporaries)
        self.temporaries.append(layout)

    def view(self, name, layout, offset=0):
        """The place of what a name stands for in another layout, from so many bytes on."""
        self.views.append((self.places[name], layout, offset))
        return VIEW, len(self.views) - 1

    def bind(self, kernel, **others):
        """A step of a recipe. `others` are places by names of the kernel that are no names of the call."""
        places = tuple(others[name] if name in others else self.places[name] for name in kernel.names)
        if any(source == TENSOR and self.tensors[index] is None for source, index in places):
            raise ValueError("argument 'alibi' is None; this variant needs slopes")
        return kernel, places
