"""Python functions of scores and indices as functions of a `.tile` source."""

from __future__ import annotations

import functools
import math
import sys
import threading

from .._core._errors import Error


class TraceError(Error, TypeError):
    """A function does with a traced value what a kernel cannot; the message names the line."""


class Needed(BaseException):
    """A function needs something while it is traced that is not known yet; none that catches exceptions catches it."""


class ConstantNeeded(Needed):
    """Captured numbers, by their indices."""

    def __init__(self, indices):
        self.indices = indices


class AttributeNeeded(Needed):
    """An attribute of a module, by their names."""

    def __init__(self, module, name):
        self.module, self.name = module, name


_state = threading.local()
#: Functions of traced values by the names that torch has for them; _math.py adds them.
FUNCTIONS = {}


def is_own(module):
    """Whether messages name no line of a module, by its name."""
    return module.partition(".")[0] in ("tessera", "torch", "jax")


def place():
    """File and line of the caller outside of this package, of torch and of JAX; of the function where it has returned."""
    frame = sys._getframe(1)
    while frame is not None and is_own(name := frame.f_globals.get("__name__", "")):
        if name == "tessera._tracing" and getattr(_state.current, "here", ""):
            return _state.current.here
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}: " if frame else ""


def stop(error):
    """Raises what ends a trace, also where the function catches it: what it does then is no answer."""
    traced = getattr(_state, "current", None)
    if isinstance(traced, Function):
        traced.stopped = error
    raise error


def fail(message):
    stop(TraceError(place() + message))


def _refuse_foreign():
    fail("a traced value of another run, as a cache or a variable outside of the function keeps it: compute it in each run")


# The first number that rounds to infinity.
_F32_END = 2.0**128 - 2.0**103
_WIDER = {
    ("i1", "i32"): "arith.extui", ("i1", "i64"): "arith.extui", ("i32", "i64"): "arith.extsi",
    ("i1", "f32"): "arith.uitofp", ("i32", "f32"): "arith.sitofp", ("i64", "f32"): "arith.sitofp",
}  # fmt: skip
_NARROWER = {("i64", "i32"): "arith.trunci", ("f32", "i32"): "arith.fptosi", ("f32", "i64"): "arith.fptosi"}


class Function:
    """Collects the lines of one function of a source, in one run of that of Python; `here` is where it is defined."""

    def __init__(self, arguments, here):
        self.lines, self.known, self.arguments, self.here, self._count = [], {}, arguments, here, 0
        #: The last exception that ends the trace.
        self.stopped = None
        #: Where Python asks for each line.
        self.places = []

    def name(self):
        self._count += 1
        return f"%t{self._count}"

    def emit(self, kind, text):
        """The value of an operation; equal operations are one."""
        if getattr(_state, "current", None) is not self:
            _refuse_foreign()
        if text not in self.known:
            value = Value(self, self.name(), kind)
            self.lines.append(f"  {value.name} = {text}")
            self.places.append(place())
            self.known[text] = value
        return self.known[text]

    def act(self, text):
        """An operation without a result, each time anew."""
        self.lines.append(f"  {text}")
        self.places.append(place())

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

    def length(self, dim):
        """The extent of a dimension of the kernel."""
        extent = self.emit("index", f'tile.dim "{dim}"')
        return self.emit("i32", f"arith.index_cast {extent.name} : index to i32")

    def lift(self, value, wide=False):
        if isinstance(value, Value):
            return value if value.function is self else _refuse_foreign()
        if isinstance(value, Unusable):
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


def _read_tensor(value):
    """A tensor that a function made itself is a constant; torch would ask for the same function again."""
    if isinstance(value, TRACED) or not hasattr(value, "item"):
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


def _refuse_among(values):
    """Refuses what a function of a framework got."""
    for value in values:
        if isinstance(value, (list, tuple)):
            _refuse_among(value)
        if isinstance(value, Unusable):
            value.refuse()


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

    def __repr__(self):
        made = next((text for text, value in self.function.known.items() if value is self), "given to the function")
        return f"<traced {self.kind}, a number in the kernel only, which tessera.print shows: {made}>"

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
        fail("a loop over a traced value, which is one number; numpy asks for one where an array is indexed by it: make the "
             "array an argument of the variant, as slopes=(\"H\",), and a parameter of the function")  # fmt: skip

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
            fail("a tensor is indexed by a traced value; make it outside of the function, and of tessera.Variant an argument, as "
                 "slopes=(\"H\",)")  # fmt: skip
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

    def __matmul__(self, _):
        fail("@ of traced values, which are numbers: their product is *")

    __rmatmul__ = __matmul__

    @property
    def device(self):
        return DEVICE

    @property
    def dtype(self):
        import torch  # which made the function that asks

        return {"f32": torch.float32, "i64": torch.int64, "i32": torch.int32, "i1": torch.bool}[self.kind]


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

    __slots__ = ("number", "maker")

    def __init__(self, function, kind, number, name, maker):
        super().__init__(function, kind, lambda: self._ask(name))
        #: What it is computed of, as _computed.py has it, and what makes others and knows what it is.
        self.number, self.maker = number, maker

    def _ask(self, name):
        if self.kind == "i1":
            return self.function.argument(name, "i32") != 0
        return self.function.argument(name, self.kind)

    def need(self):
        """The number, which becomes a constant."""
        return self.maker.read(self.number)

    def __getattr__(self, name):
        return getattr(self.need(), name) if hasattr(self.__class__, name) else super().__getattr__(name)

    @property
    def __class__(self):
        return {"f32": float, "i32": int, "i1": bool}[self.kind]


def _install_questions():
    """What Python asks of a number, as itself and by these names."""
    names = "bool index int float round trunc floor ceil hash str repr format divmod rdivmod"
    for name in (f"__{name}__" for name in names.split()):
        setattr(Number, name, lambda self, *others, name=name: getattr(self.need(), name)(*others))


_install_questions()


class Unusable:
    """What no function computes with as it is."""

    def refuse(self, *_, **__):
        """Says why."""
        raise NotImplementedError

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        self.refuse()

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        _refuse_among((*args, *(kwargs or {}).values()))


#: What functions compute with in place of numbers and arrays.
TRACED = (Value, Unusable)
#: What values say as their device, which `to` takes.
DEVICE = "traced"


def current():
    """The Function that is being traced."""
    return _state.current
