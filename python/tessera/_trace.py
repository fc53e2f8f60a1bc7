"""Python functions of scores and indices as functions of a `.tile` source."""

from __future__ import annotations

import functools
import math
import sys
import threading

from . import _computed, _typing
from ._errors import Error


class TraceError(Error, TypeError):
    """A function does with a traced value what a kernel cannot; the message names the line."""


class ConstantNeeded(BaseException):
    """A function needs a captured number, by its index, while it is traced; none that catches exceptions catches it."""

    def __init__(self, index):
        self.index = index


_state = threading.local()
#: Functions of traced values by the names that torch has for them; _math.py adds them.
FUNCTIONS = {}


def _place():
    """File and line of the caller outside of this package, of torch and of JAX."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("tessera", "torch", "jax"):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}: " if frame else ""


def _stop(error):
    """Raises what ends a trace, also where the function catches it: what it does then is no answer."""
    traced = getattr(_state, "current", None)
    if isinstance(traced, Function):
        traced.stopped = error
    raise error


def fail(message):
    _stop(TraceError(_place() + message))


# The first number that rounds to infinity.
_F32_END = 2.0**128 - 2.0**103
_WIDER = {
    ("i1", "i32"): "arith.extui", ("i1", "i64"): "arith.extui", ("i32", "i64"): "arith.extsi",
    ("i1", "f32"): "arith.uitofp", ("i32", "f32"): "arith.sitofp", ("i64", "f32"): "arith.sitofp",
}  # fmt: skip
_NARROWER = {("i64", "i32"): "arith.trunci", ("f32", "i32"): "arith.fptosi", ("f32", "i64"): "arith.fptosi"}


class Function:
    """Collects the lines of one function of a source."""

    def __init__(self, arguments):
        self.lines, self.known, self.arguments, self._count = [], {}, arguments, 0
        #: The last exception that ends the trace.
        self.stopped = None
        #: Where Python asks for each line.
        self.places = []

    def name(self):
        self._count += 1
        return f"%t{self._count}"

    def emit(self, kind, text):
        """The value of an operation; equal operations are one."""
        if text not in self.known:
            value = Value(self, self.name(), kind)
            self.lines.append(f"  {value.name} = {text}")
            self.places.append(_place())
            self.known[text] = value
        return self.known[text]

    def constant(self, number, wide=False):
        """A number of Python; `wide` allows an integer of 64 bits."""
        if isinstance(number, bool):
            return self.emit("i1", f"arith.constant {str(number).lower()}")
        if isinstance(number, int):
            if -(2**31) <= number < 2**31:
                return self.emit("i32", f"arith.constant {number} : i32")
            if not wide or not -(2**63) <= number < 2**63:
                fail(f"{number} does not fit in 32 bits, which indices have")
            return self.emit("i64", f"arith.constant {number} : i64")
        if abs(number) >= _F32_END:
            number = math.copysign(math.inf, number)
        if math.isnan(number) or math.isinf(number):
            bits = "0x7FC00000" if math.isnan(number) else "0x7F800000" if number > 0 else "0xFF800000"
            return self.emit("f32", f"arith.constant {bits} : f32")
        return self.emit("f32", f"arith.constant {number:.9e} : f32")

    def argument(self, name, kind):
        return self.emit(kind, f'tile.argument "{name}" : {kind}')

    def lift(self, value, wide=False):
        if isinstance(value, Value):
            return value
        if isinstance(value, (View, Refused)):
            value.refuse()
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
            value = value.item()
        if isinstance(value, (bool, int, float)):
            return self.constant(value, wide)
        shape = f" of shape {tuple(value.shape)}" if hasattr(value, "shape") else ""
        fail(f"a {type(value).__name__}{shape} meets a traced value; there are numbers, and arguments of the kernel")

    def cast(self, value, kind):
        """The value as one of a kind that has its numbers."""
        if value.kind == kind:
            return value
        operation = _WIDER.get((value.kind, kind))
        if operation is None:
            fail(f"a value of {value.kind} is no {kind}")
        return self.emit(kind, f"{operation} {value.name} : {value.kind} to {kind}")

    def convert(self, value, kind):
        """The value as torch's `to` makes it."""
        if kind == "i1" and value.kind != "i1":
            return value != 0
        operation = _NARROWER.get((value.kind, kind))
        if operation is None:
            return self.cast(value, kind)
        return self.emit(kind, f"{operation} {value.name} : {value.kind} to {kind}")


def common(a, b, function):
    """Two values of one kind, that of the wider one."""
    wide = any(isinstance(value, Value) and value.kind == "i64" for value in (a, b))
    a, b = function.lift(a, wide), function.lift(b, wide)
    kind = next(kind for kind in ("f32", "i64", "i32", "i1") if kind in (a.kind, b.kind))
    return function.cast(a, kind), function.cast(b, kind), kind


_ARITHMETIC = {
    "add": ("arith.addf", "arith.addi"), "sub": ("arith.subf", "arith.subi"), "mul": ("arith.mulf", "arith.muli"),
    "min": ("arith.minimumf", "arith.minsi"), "max": ("arith.maximumf", "arith.maxsi"),
}  # fmt: skip
# Of two conditions, as torch and JAX have it.
_OF_CONDITIONS = {"add": "or", "max": "or", "mul": "and", "min": "and"}
_COMPARISONS = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_LOGIC = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}
_SHIFTS = {"lshift": "arith.shli", "rshift": "arith.shrsi"}


def binary(function, operation, a, b):
    """The value of a binary operator of Python, of `min` or `max`; one of `a` and `b` is traced."""
    if operation == "pow" and isinstance(a, Number):
        a.need()  # Whether a power is an integer depends on its value.
    if operation in ("floordiv", "mod", "pow", *_SHIFTS) and isinstance(b, Number) and not isinstance(a, Number):
        b.need()  # By a constant these take a few instructions.
    if all(isinstance(value, (Number, int, float)) for value in (a, b)):
        return _combine(operation, a, b)
    if operation == "pow":
        from ._math import power

        return power(function, a, b)
    right = b
    a, b, kind = common(a, b, function)
    if operation in _LOGIC:
        if kind == "f32":
            fail("&, | and ^ combine conditions or integers; numbers are compared first, in parentheses")
        return function.emit(kind, f"{_LOGIC[operation]} {a.name}, {b.name} : {kind}")
    if operation in _COMPARISONS:
        if kind == "f32":
            predicate = "une" if operation == "ne" else "o" + operation
            return function.emit("i1", f"arith.cmpf {predicate}, {a.name}, {b.name} : f32")
        if kind == "i1" and operation not in ("eq", "ne"):
            a, b, kind = function.cast(a, "i32"), function.cast(b, "i32"), "i32"
        return function.emit("i1", f"arith.cmpi {_COMPARISONS[operation]}, {a.name}, {b.name} : {kind}")
    if operation == "div":
        a, b = function.cast(a, "f32"), function.cast(b, "f32")
        return function.emit("f32", f"arith.divf {a.name}, {b.name} : f32")
    if kind == "i1":
        if operation not in _OF_CONDITIONS:
            fail(f"{operation} of two conditions; combine them by &, | and ^, or make integers of them by where(condition, 1, 0)")
        return function.emit("i1", f"{_LOGIC[_OF_CONDITIONS[operation]]} {a.name}, {b.name} : i1")
    if kind == "f32" and operation in ("floordiv", "mod", *_SHIFTS):
        fail("//, %, << and >> take integers; of numbers of f32 write the quotient by / ")
    if operation in _SHIFTS:
        return _shift(function, operation, a, b, kind, right)
    if operation in ("floordiv", "mod"):
        if not isinstance(right, Value) and right == 0:
            fail("a division of integers by 0")
        return _divide_integers(function, operation, a, b, kind)
    return function.emit(kind, f"{_ARITHMETIC[operation][kind != 'f32']} {a.name}, {b.name} : {kind}")


def _combine(operation, a, b):
    """What the host computes of captured numbers and constants."""
    number = a if isinstance(a, Number) else b
    parts = [value.number if isinstance(value, Number) else ("constant", value) for value in (a, b)]
    kinds = [
        value.kind if isinstance(value, Number) else "i1" if isinstance(value, bool) else "i32" if isinstance(value, int) else "f32"
        for value in (a, b)
    ]
    return number.make(_computed.find_kind(operation, kinds), (operation, *parts))


def _shift(function, operation, a, b, kind, amount):
    """A shift by as many places as there are or more leaves nothing but signs, and so does one backwards, as in torch."""
    if isinstance(amount, Value):
        a, b = function.cast(a, "i64"), function.cast(b, "i64")
        inside, far = (b >= 0) & (b < 64), a >> 63 if operation == "rshift" else 0
        near = function.emit("i64", f"{_SHIFTS[operation]} {a.name}, {(b & 63).name} : i64")
        return FUNCTIONS["where"](inside, near, far)
    if not 0 <= amount < int(kind[1:]):
        fail(f"a shift of an integer of {kind[1:]} bits by {amount} places")
    return function.emit(kind, f"{_SHIFTS[operation]} {a.name}, {b.name} : {kind}")


def _divide_integers(function, operation, a, b, kind):
    quotient = function.emit(kind, f"arith.floordivsi {a.name}, {b.name} : {kind}")
    return quotient if operation == "floordiv" else a - quotient * b


def _read_tensor(value):
    """A tensor that a function made itself is a constant; torch would ask for the same function again."""
    if isinstance(value, (Value, View, Refused)) or not hasattr(value, "item"):
        return value
    return value.item() if value.ndim == 0 else _state.current.lift(value)


def call(label, name, arguments, named):
    """The function `label` of a framework, that `name` is in FUNCTIONS, of values of which one is traced."""
    _refuse_among((*arguments, *named.values()))
    if name not in FUNCTIONS:
        fail(f"{label} of a traced value is unknown; there are {_list_functions()}")
    try:
        return FUNCTIONS[name](*map(_read_tensor, arguments), **named)
    except TypeError as error:
        if isinstance(error, Error):
            raise
        fail(f"{label} of a traced value with these arguments: {error}")


def _list_functions():
    """The functions that are known, without those that operators stand for."""
    return ", ".join(sorted(name for name in FUNCTIONS if not hasattr(Value, f"__{name}__")))


class Value:
    """A number that a kernel computes: a score, an index or a condition."""

    __slots__ = ("function", "name", "kind")
    __hash__ = object.__hash__
    __array_priority__ = 1000

    def __init__(self, function, name, kind):
        self.function, self.name, self.kind = function, name, kind

    def __bool__(self):
        fail("a condition on a traced value, which is known in the kernel only; use where(condition, a, b), and "
             "&, | and ~ in place of `and`, `or` and `not`")  # fmt: skip

    def __index__(self):
        fail("a traced value as a Python integer, as in range() or the index of a list; it is known in the kernel only. "
             "Declare a view as an argument of the variant and index it")  # fmt: skip

    def __float__(self):
        fail("a traced value as a Python float; functions of it are those of tessera or torch, as tessera.tanh(x)")

    __int__ = __round__ = __trunc__ = __floor__ = __ceil__ = __float__

    def __iter__(self):
        fail("a loop over a traced value, which is one number")

    __len__ = __iter__

    def __getitem__(self, index):
        fail("an index on a traced value, which is one number")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in FUNCTIONS:
            fail(f"a traced value has no '{name}'; there are operators, comparisons, and {_list_functions()}")
        return functools.partial(FUNCTIONS[name], self)

    def __array_ufunc__(self, ufunc, *args, **kwargs):
        fail(f"numpy.{ufunc.__name__} of a traced value; functions of it are those of tessera, as tessera.tanh(x)")

    @property
    def __jax_array__(self):
        fail("a function or an array of JAX meets a traced value; functions of it are those of jax.numpy and of tessera")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", str(function)).strip("_")
        if name == "getitem":
            fail("a tensor that the function makes is indexed by a traced value; make it outside of the function")
        return call(f"torch.{name}", name, args, kwargs or {})

    def __neg__(self):
        if self.kind == "f32":
            return self.function.emit("f32", f"arith.negf {self.name} : f32")
        if self.kind == "i1":
            fail("- of a condition; its opposite is ~")
        return 0 - self

    def __pos__(self):
        return self

    def __invert__(self):
        if self.kind == "f32":
            fail("~ takes a condition or an integer")
        return self ^ (True if self.kind == "i1" else -1)

    def __abs__(self):
        if self.kind == "i1":
            return self
        operation = "math.absf" if self.kind == "f32" else "math.absi"
        return self.function.emit(self.kind, f"{operation} {self.name} : {self.kind}")

    @property
    def device(self):
        return DEVICE

    @property
    def dtype(self):
        import torch  # which made the function that asks

        return {"f32": torch.float32, "i64": torch.int64, "i32": torch.int32, "i1": torch.bool}[self.kind]


def _install(python, operation, reflected):
    def forward(self, other):
        return binary(self.function, operation, self, other)

    def backward(self, other):
        return binary(self.function, operation, other, self)

    setattr(Value, f"__{python}__", forward)
    if reflected:
        setattr(Value, f"__r{python}__", backward)


_OPERATORS = {"truediv": "div"}
_OPERATORS |= {name: name for name in ("add", "sub", "mul", "floordiv", "mod", "pow", *_SHIFTS, *_LOGIC)}
for _python, _operation in _OPERATORS.items():
    _install(_python, _operation, True)
for _operation in _COMPARISONS:
    _install(_operation, _operation, False)


class Late(Value):
    """A value that is emitted where it is first used."""

    __slots__ = ("_emit",)

    def __init__(self, function, kind, emit):
        self.function, self.kind, self._emit = function, kind, emit

    @property
    def name(self):
        return self._emit().name


class Number(Late):
    """A captured number, or one computed of such: an argument of the kernel, unless Python itself asks what it is."""

    __slots__ = ("number", "make")

    def __init__(self, function, kind, number, name, make):
        super().__init__(function, kind, lambda: self._ask(name))
        #: What it is computed of, as _computed.py has it, and what makes others, of a kind and a number.
        self.number, self.make = number, make

    def _ask(self, name):
        if self.kind == "i1":
            return self.function.argument(name, "i32") != 0
        return self.function.argument(name, self.kind)

    def need(self, *_):
        _stop(ConstantNeeded(_computed.find_index(self.number)))

    __bool__ = __index__ = __int__ = __float__ = __round__ = __trunc__ = __floor__ = __ceil__ = need
    __hash__ = __str__ = __repr__ = __format__ = __divmod__ = __rdivmod__ = need

    def __getattr__(self, name):
        return self.need() if hasattr(self.__class__, name) else super().__getattr__(name)

    @property
    def __class__(self):
        return {"f32": float, "i32": int, "i1": bool}[self.kind]


def _refuse_among(values):
    """Refuses what a function of torch got."""
    for value in values:
        if isinstance(value, (list, tuple)):
            _refuse_among(value)
        if isinstance(value, (View, Refused)):
            value.refuse()


class Refused:
    """A captured object that no kernel takes; any use of it says why."""

    def __init__(self, message):
        self._message = message

    def refuse(self, *_, **__):
        fail(self._message)

    __call__ = __iter__ = __len__ = __bool__ = __contains__ = refuse

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        fail(self._message)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        _refuse_among((*args, *(kwargs or {}).values()))


class View:
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

    __iter__ = __bool__ = __len__ = refuse

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        fail(f"'{name}' of the view '{self.label}', of which a kernel takes elements: index it first")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        _refuse_among((*args, *(kwargs or {}).values()))

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
            self.reach[_place(), axis, index] = None
            if index < 0:
                value = self.extent(self.dims[axis]) + index
        return function.emit("index", f"arith.index_cast {value.name} : {value.kind} to index").name

    def extent(self, dim):
        """The extent of a dimension."""
        if isinstance(dim, int):
            return self.function.constant(dim)
        self._ask()  # The kernel has a dimension by the view.
        return length_of(self.function, dim)

    def _ask(self):
        """(the view as an argument of the kernel, the type of its elements, its own)."""
        element = _STORED.get(self.element, self.element)
        kind = f"!tile.view<[{', '.join(map(str, self.dims))}], {element}>"
        return self.function.argument(self.name, kind), element, kind

    @property
    def kind(self):
        """The kind of an element as a value."""
        return {"f16": "f32", "bf16": "f32", "i8": "i32"}.get(self.element, self.element)

    @property
    def shape(self):
        return tuple(self.extent(dim) for dim in self.dims[len(self._places) :])

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def _load(self, places):
        """An element as a value that is computed with."""
        function, (view, stored, kind) = self.function, self._ask()
        value = function.emit(stored, f"tile.load {view.name}[{places}] : {kind} -> {stored}")
        if self.element in ("f16", "bf16"):
            return function.emit("f32", f"arith.extf {value.name} : {stored} to f32")
        if stored == "i8":
            value = function.emit("i32", f"arith.extsi {value.name} : i8 to i32")
        return value != 0 if self.element == "i1" else value


#: What functions compute with in place of numbers and arrays.
TRACED = (Value, View, Refused)


def _install_refusals():
    for python in (*_OPERATORS, *(f"r{name}" for name in _OPERATORS), *_COMPARISONS, "neg", "pos", "abs", "invert"):
        for kind in (View, Refused):
            setattr(kind, f"__{python}__", kind.refuse)
    for kind in (View, Refused):
        kind.__jax_array__ = property(kind.refuse)
    Refused.__getitem__ = Refused.refuse


_install_refusals()
#: What a condition is in memory.
_STORED = {"i1": "i8"}
#: What values say as their device, which `to` takes.
DEVICE = "traced"


def current():
    """The Function that is being traced."""
    return _state.current


def length_of(function, dim):
    extent = function.emit("index", f'tile.dim "{dim}"')
    return function.emit("i32", f"arith.index_cast {extent.name} : index to i32")


def length(name: str) -> _typing.Any:
    """The extent of a dimension of the kernel: "SQ" queries, "SK" keys, "H" heads, "B" batches."""
    where = getattr(_state, "current", None)
    if not isinstance(where, Function):
        if where is None:
            raise TraceError("length() is for functions of scores and masks, while they are traced or evaluated")
        return where[name]
    return length_of(where, name)


def evaluate(function, values, arguments, extents):
    """The function on numbers or arrays, with the extents of the kernel's dimensions."""
    _state.current = extents
    try:
        return function(*values, **arguments)
    finally:
        _state.current = None


def _find_place(function):
    """File and line where a function is defined."""
    code = getattr(function, "__code_of__", None) or getattr(getattr(function, "function", function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}: " if code else ""


_KINDS = {float: "f32", int: "i32"}


def trace(name, function, parameters, result, declared):
    """(lines of `func.func @name`, where Python asks for each): parameters are (name, kind), `declared` arguments name: float,
    int or dimensions."""
    traced = _trace_once(name, function, parameters, result, declared)
    # A kernel has what one run of the function says. What another run says otherwise is drawn, counted or read from a clock.
    if _trace_once(name, function, parameters, result, declared) != traced:
        raise TraceError(f"{_find_place(function)}the {name} says something else each time that it runs, as with random numbers; "
                         "make these outside of it and give them as arguments or tensors")  # fmt: skip
    return traced


def _trace_once(name, function, parameters, result, declared):
    body = Function(declared)
    values = [Value(body, f"%{parameter}", kind) for parameter, kind in parameters]
    given = {
        argument: body.argument(argument, _KINDS[kind]) if kind in (float, int) else View(body, argument, kind)
        for argument, kind in declared.items()
    }
    _state.current = body
    try:
        value = body.lift(function(*values, **given))
        value.name  # A value that is emitted late is one of this function.
    except RecursionError:
        raise TraceError(f"{_find_place(function)}the {name} calls a function that calls itself without end") from None
    except Exception:
        # JAX says in words of its own that a traced value refused what it did.
        if body.stopped is None:
            raise
    finally:
        _state.current = None
    if body.stopped is not None:
        raise body.stopped from None
    if result == "i1" and value.kind != "i1":
        raise TraceError(f"{_find_place(function)}the mask gives a {value.kind}; a mask is a condition, as a comparison gives "
                         "it")  # fmt: skip
    value = body.cast(value, result)
    signature = ", ".join(f"%{parameter}: {kind}" for parameter, kind in parameters)
    lines = [f"func.func @{name}({signature}) -> {result} {{", *body.lines, f"  func.return {value.name} : {result}", "}"]
    here = _find_place(function)
    return lines, [here, *body.places, *[here] * (len(lines) - len(body.places) - 1)]
