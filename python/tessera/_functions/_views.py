"""Arguments of a kernel whose elements functions take, and captured objects that no kernel takes."""

from .._core import _library
from ._operations import COMPARISONS, OPERATORS
from ._trace import Unusable, Value, fail, place


class Refused(Unusable):
    """A captured object that no kernel takes; any use of it says why."""

    def __init__(self, message):
        self._message = message

    def refuse(self, *_, **__):
        fail(self._message)

    __call__ = __contains__ = __getitem__ = refuse


class View(Unusable):
    """An argument of the kernel whose elements a function takes by index."""

    def __init__(self, function, name, dims, element="f32", label=None, places=(), reach=None):
        self.function, self.name, self.dims, self.element, self._places = function, name, dims, element, places
        #: The constants that are indices, by their places: lines of Python, and numbers of dimensions.
        self.reach = {} if reach is None else reach
        #: What the user calls it.
        self.label = label or name

    def refuse(self, *_, **__):
        if self._places:
            fail(f"the view '{self.label}' has {len(self.dims)} dimensions and is used with {len(self._places)} indices; a "
                 "function computes with elements")  # fmt: skip
        fail(f"the view '{self.label}' is used without an index; write {self.label}[...]")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        fail(f"'{name}' of the view '{self.label}', of which a kernel takes elements: index it first")

    def __getitem__(self, indices):
        indices = indices if isinstance(indices, tuple) else (indices,)
        rank = len(self.dims) - len(self._places)
        if len(indices) > rank:
            fail(f"'{self.label}' has {len(self.dims)} dimensions ({', '.join(map(str, self.dims))}), got "
                 f"{len(indices) + len(self._places)} indices")  # fmt: skip
        places = (*self._places, *map(self._read_index, indices, range(len(self._places), len(self.dims))))
        if len(indices) < rank:
            return View(self.function, self.name, self.dims, self.element, self.label, places, self.reach)
        return self._load(", ".join(places))

    def _read_index(self, index, axis):
        """The name of an index of a dimension; a negative constant counts from the end."""
        if index is None or index is Ellipsis or isinstance(index, slice):
            fail(f"an index of '{self.label}' is a slice, None or ...; a function takes one element, by integers")
        function, value = self.function, self.function.lift(index)
        if value.kind not in ("i32", "i64"):
            fail(f"an index is an integer, got {value.kind}")
        if isinstance(index, int) and not isinstance(index, Value):
            self.reach[place(), axis, index] = None
            if index < 0:
                value = self.extent(self.dims[axis]) + index
        return function.emit("index", f"arith.index_cast {value.name} : {value.kind} to index").name

    def extent(self, dim):
        """The extent of a dimension."""
        if isinstance(dim, int):
            return self.function.constant(dim)
        self._ask()  # The kernel has a dimension by the view.
        return self.function.length(dim)

    def _ask(self):
        """(the view as an argument of the kernel, the type of its elements, its own)."""
        element = _STORED.get(self.element, self.element)
        kind = f"!tile.view<[{', '.join(map(str, self.dims))}], {element}>"
        return self.function.argument(self.name, kind), element, kind

    @property
    def kind(self):
        """The kind of an element as a value."""
        return _COMPUTED.get(self.element, self.element)

    @property
    def shape(self):
        return tuple(self.extent(dim) for dim in self.dims[len(self._places) :])

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def _load(self, places):
        """An element as a value that is computed with."""
        function, (view, stored, kind) = self.function, self._ask()
        value = function.emit(stored, f"tile.load {view.name}[{places}] : {kind} -> {stored}")
        if wide := _COMPUTED.get(stored):
            value = function.emit(wide, f"arith.{'extf' if wide == 'f32' else 'extsi'} {value.name} : {stored} to {wide}")
        return value != 0 if self.element == "i1" else value


#: What a condition is in memory.
_STORED = {"i1": "i8"}
#: What elements of fewer bits are computed in.
_COMPUTED = {element.name: "f32" if element.is_float else "i32" for element in _library.ELEMENTS if element.size < 4}


def _install_refusals():
    names = (*OPERATORS, *(f"r{name}" for name in OPERATORS), *COMPARISONS, "neg", "pos", "abs", "invert", "iter", "len", "bool")
    for name in (*names, "matmul", "rmatmul"):
        setattr(Unusable, f"__{name}__", lambda self, *_: self.refuse())
    Unusable.__jax_array__ = property(lambda self: self.refuse())


_install_refusals()
