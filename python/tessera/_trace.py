"""Python functions of scores and indices as functions of a `.tile` source."""

import math
import sys
import threading

from ._errors import Error


class TraceError(Error, TypeError):
    """A function does with a traced value what a kernel cannot; the message names the line."""


_HERE = __file__
_state = threading.local()


def _place():
    """File and line of the caller outside of this package's tracing."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == _HERE:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}: " if frame else ""


def _fail(message):
    raise TraceError(_place() + message)


class Function:
    """Collects the lines of one function of a source."""

    def __init__(self, arguments):
        self.lines, self.loaded, self.known, self.arguments, self._count = [], {}, {}, arguments, 0

    def name(self):
        self._count += 1
        return f"%t{self._count}"

    def emit(self, kind, text):
        """The value of an operation; equal operations are one."""
        if text not in self.known:
            value = Value(self, self.name(), kind)
            self.lines.append(f"  {value.name} = {text}")
            self.known[text] = value
        return self.known[text]

    def constant(self, number):
        if isinstance(number, bool):
            return self.emit("i1", f"arith.constant {str(number).lower()}")
        if isinstance(number, int):
            if not -(2**31) <= number < 2**31:
                _fail(f"{number} does not fit in 32 bits, which indices have")
            return self.emit("i32", f"arith.constant {number} : i32")
        if math.isnan(number) or math.isinf(number):
            bits = "0x7FC00000" if math.isnan(number) else "0x7F800000" if number > 0 else "0xFF800000"
            return self.emit("f32", f"arith.constant {bits} : f32")
        return self.emit("f32", f"arith.constant {number:.9e} : f32")

    def argument(self, name, kind):
        return self.emit(kind, f'tile.argument "{name}" : {kind}')

    def lift(self, value):
        if isinstance(value, Value):
            return value
        if isinstance(value, View):
            _fail(f"the view '{value.name}' is used without an index; write {value.name}[...]")
        if isinstance(value, (bool, int, float)):
            return self.constant(value)
        _fail(f"a {type(value).__name__} meets a traced value; there are numbers, and arguments that the variant declares")

    def cast(self, value, kind):
        if value.kind == kind:
            return value
        operation = {
            ("i1", "i32"): "arith.extui", ("i32", "f32"): "arith.sitofp", ("i1", "f32"): "arith.uitofp",
            ("f32", "i32"): "arith.fptosi",
        }.get((value.kind, kind))  # fmt: skip
        if operation is None:
            _fail(f"a value of {value.kind} is no {kind}")
        return self.emit(kind, f"{operation} {value.name} : {value.kind} to {kind}")


def _common(a, b, function):
    """Two values of one kind: numbers take that of the other."""
    a, b = function.lift(a), function.lift(b)
    kind = next(kind for kind in ("f32", "i32", "i1") if kind in (a.kind, b.kind))
    return function.cast(a, kind), function.cast(b, kind), kind


_ARITHMETIC = {
    "add": ("arith.addf", "arith.addi"), "sub": ("arith.subf", "arith.subi"), "mul": ("arith.mulf", "arith.muli"),
    "min": ("arith.minnumf", "arith.minsi"), "max": ("arith.maxnumf", "arith.maxsi"),
}  # fmt: skip
_COMPARISONS = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}
_LOGIC = {"and": "arith.andi", "or": "arith.ori", "xor": "arith.xori"}


def _binary(function, operation, a, b):
    a, b, kind = _common(a, b, function)
    if operation in _LOGIC:
        if kind != "i1":
            _fail("&, | and ^ combine conditions; numbers are compared first, in parentheses")
        return function.emit("i1", f"{_LOGIC[operation]} {a.name}, {b.name} : i1")
    if operation in _COMPARISONS:
        if kind == "f32":
            predicate = "une" if operation == "ne" else "o" + operation
            return function.emit("i1", f"arith.cmpf {predicate}, {a.name}, {b.name} : f32")
        return function.emit("i1", f"arith.cmpi {_COMPARISONS[operation]}, {a.name}, {b.name} : {kind}")
    if kind == "i1":
        a, b, kind = function.cast(a, "i32"), function.cast(b, "i32"), "i32"
    if operation == "div":
        a, b = function.cast(a, "f32"), function.cast(b, "f32")
        return function.emit("f32", f"arith.divf {a.name}, {b.name} : f32")
    if operation in ("floordiv", "mod"):
        if kind != "i32":
            _fail("// and % take indices; of numbers of f32 write the quotient by / ")
        quotient = function.emit("i32", f"arith.floordivsi {a.name}, {b.name} : i32")
        return quotient if operation == "floordiv" else a - quotient * b
    return function.emit(kind, f"{_ARITHMETIC[operation][kind != 'f32']} {a.name}, {b.name} : {kind}")


class Value:
    """A number that a kernel computes: a score, an index or a condition."""

    __slots__ = ("function", "name", "kind")
    __hash__ = object.__hash__
    __array_priority__ = 1000

    def __init__(self, function, name, kind):
        self.function, self.name, self.kind = function, name, kind

    def __bool__(self):
        _fail("a condition on a traced value, which is known in the kernel only; use where(condition, a, b), and "
              "&, | and ~ in place of `and`, `or` and `not`")  # fmt: skip

    def __index__(self):
        _fail("a traced value as a Python integer, as in range() or the index of a list; it is known in the kernel only. "
              "Declare a view as an argument of the variant and index it")  # fmt: skip

    def __float__(self):
        _fail("a traced value as a Python float; functions of it are those of tessera, as tessera.tanh(x)")

    __int__ = __float__

    def __iter__(self):
        _fail("a loop over a traced value, which is one number")

    def __getitem__(self, index):
        _fail("an index on a traced value, which is one number")

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        _fail(f"a traced value has no '{name}'; there are operators, comparisons, and the functions of tessera "
              "(where, minimum, maximum, exp, exp2, log, log2, tanh, sqrt, rsqrt, sin, cos)")  # fmt: skip

    def __array_ufunc__(self, ufunc, *args, **kwargs):
        _fail(f"numpy.{ufunc.__name__} of a traced value; functions of it are those of tessera, as tessera.tanh(x)")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        known = _FUNCTIONS.get(getattr(function, "__name__", ""))
        if known is None or kwargs:
            _fail(f"torch.{getattr(function, '__name__', function)} of a traced value is unknown; there are "
                  + ", ".join(sorted(_FUNCTIONS)))  # fmt: skip
        return known(*args)

    def __neg__(self):
        if self.kind == "f32":
            return self.function.emit("f32", f"arith.negf {self.name} : f32")
        return 0 - self

    def __invert__(self):
        if self.kind != "i1":
            _fail("~ takes a condition")
        return self ^ True

    def __abs__(self):
        operation = "math.absf" if self.kind == "f32" else "math.absi"
        return self.function.emit(self.kind, f"{operation} {self.name} : {self.kind}")

    def abs(self):
        return abs(self)


def _install(python, operation, reflected):
    def forward(self, other):
        return _binary(self.function, operation, self, other)

    def backward(self, other):
        return _binary(self.function, operation, other, self)

    setattr(Value, f"__{python}__", forward)
    if reflected:
        setattr(Value, f"__r{python}__", backward)


for _python, _operation in {"truediv": "div", **{name: name for name in ("add", "sub", "mul", "floordiv", "mod",
                                                                           "and", "or", "xor")}}.items():  # fmt: skip
    _install(_python, _operation, True)
for _operation in _COMPARISONS:
    _install(_operation, _operation, False)


class View:
    """An argument of the kernel whose elements a function takes by index."""

    def __init__(self, function, name, dims):
        self.function, self.name, self.dims = function, name, dims

    def __getitem__(self, indices):
        indices = indices if isinstance(indices, tuple) else (indices,)
        if len(indices) != len(self.dims):
            _fail(f"'{self.name}' has {len(self.dims)} dimensions ({', '.join(map(str, self.dims))}), got {len(indices)} "
                  "indices")  # fmt: skip
        function, places = self.function, []
        for index in indices:
            value = function.lift(index)
            if value.kind != "i32":
                _fail(f"an index is an integer, got {value.kind}")
            places.append(function.emit("index", f"arith.index_cast {value.name} : i32 to index").name)
        kind = f"!tile.view<[{', '.join(map(str, self.dims))}], f32>"
        view = function.argument(self.name, kind)
        return function.emit("f32", f"tile.load {view.name}[{', '.join(places)}] : {kind} -> f32")


def _is_traced(values):
    return any(isinstance(value, Value) for value in values)


def _unary(name, operation):
    def apply(x):
        if isinstance(x, Value):
            value = x.function.cast(x, "f32")
            return x.function.emit("f32", f"{operation} {value.name} : f32")
        import numpy

        return 1 / numpy.sqrt(x) if name == "rsqrt" else getattr(numpy, name)(x)

    apply.__name__ = name
    apply.__doc__ = f"{name} of a score or an index, traced or of numpy."
    return apply


exp, exp2, log, log2, sqrt, rsqrt, sin, cos, floor = (
    _unary(name, f"math.{name}") for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "floor")
)
#: The exact tanh; `fast_tanh` is the machine's, to 2^-11.
tanh = _unary("tanh", "math.tanh")


def fast_tanh(x):
    """tanh to 2^-11 of itself, by one instruction."""
    if not isinstance(x, Value):
        return tanh(x)
    value = x.function.cast(x, "f32")
    return x.function.emit("f32", f"math.tanh {value.name} fastmath<afn> : f32")


def where(condition, a, b):
    """`a` where the condition holds, else `b`."""
    if not _is_traced((condition, a, b)):
        import numpy

        return numpy.where(condition, a, b)
    function = next(value.function for value in (condition, a, b) if isinstance(value, Value))
    condition = function.lift(condition)
    if condition.kind != "i1":
        _fail("where takes a condition, as a comparison gives it")
    a, b, kind = _common(a, b, function)
    return function.emit(kind, f"arith.select {condition.name}, {a.name}, {b.name} : {kind}")


def _extreme(name, operation):
    def apply(a, b):
        if _is_traced((a, b)):
            return _binary(next(value.function for value in (a, b) if isinstance(value, Value)), operation, a, b)
        import numpy

        return getattr(numpy, name)(a, b)

    apply.__name__ = name
    apply.__doc__ = f"The {name} of two numbers."
    return apply


minimum, maximum = _extreme("minimum", "min"), _extreme("maximum", "max")


def length(name):
    """The extent of a dimension of the kernel: "SQ" queries, "SK" keys, "H" heads, "B" batches."""
    current = getattr(_state, "current", None)
    if not isinstance(current, Function):
        if current is None:
            raise TraceError("length() is for functions of scores and masks, while they are traced or evaluated")
        return current[name]
    extent = current.emit("index", f'tile.dim "{name}"')
    return current.emit("i32", f"arith.index_cast {extent.name} : index to i32")


_FUNCTIONS = {
    function.__name__: function
    for function in (exp, exp2, log, log2, sqrt, rsqrt, sin, cos, floor, tanh, where, minimum, maximum)
}
_FUNCTIONS["abs"] = abs


def evaluate(function, values, arguments, extents):
    """The function on numbers or arrays, with the extents of the kernel's dimensions."""
    _state.current = extents
    try:
        return function(*values, **arguments)
    finally:
        _state.current = None


_KINDS = {float: "f32", int: "i32"}


def trace(name, function, parameters, result, declared):
    """The text of `func.func @name`: parameters are (name, kind), `declared` arguments name: float, int or dimensions."""
    body = Function(declared)
    values = [Value(body, f"%{parameter}", kind) for parameter, kind in parameters]
    given = {
        argument: body.argument(argument, _KINDS[kind]) if kind in (float, int) else View(body, argument, kind)
        for argument, kind in declared.items()
    }
    _state.current = body
    try:
        value = body.lift(function(*values, **given))
    finally:
        _state.current = None
    if result == "i1" and value.kind != "i1":
        raise TraceError(f"the mask {getattr(function, '__name__', 'function')} gives a {value.kind}; a mask is a condition, "
                         "as a comparison gives it")  # fmt: skip
    value = body.cast(value, result)
    signature = ", ".join(f"%{parameter}: {kind}" for parameter, kind in parameters)
    lines = [f"func.func @{name}({signature}) -> {result} {{", *body.lines, f"  func.return {value.name} : {result}", "}"]
    return "\n".join(lines) + "\n"
