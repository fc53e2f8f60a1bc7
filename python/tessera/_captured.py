"""Functions of scores and masks with what they capture: tensors and numbers of closures, defaults and globals, which become
arguments of the kernel.

`describe` reads a function without calling it. torch.compile traces through it, so that captured tensors are inputs of the
graph. What it returns is made of constants: the code of functions, and numbers of what was found. `write` makes the
source of that. A framework has a Found of its own, which knows its tensors.
"""

import dis
import functools
import inspect
import operator
import re
import sys
import types

from . import _math, _trace
from ._variant import Mask, Variant

#: The element types of captured tensors, by their names. A condition is a byte in memory.
ELEMENTS = {
    "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int8": "i8", "bool": "i1",
}  # fmt: skip
# Functions within functions, and functions in all.
_MOST_LEVELS, _MOST_FUNCTIONS = 24, 512
# Modules that stay as they are, with their functions and classes.
_LIBRARIES = ("tessera", "torch", "jax", "jaxlib", "ml_dtypes", "math", "numpy", "builtins", "operator", "functools", "collections",
              "numbers")
# What a function may import where it runs.
_IMPORTED = (*_LIBRARIES, "__future__", "itertools", "typing", "warnings")
# Names behind which a function would find values that nothing here sees, and `type`, for which traced values are none.
_HIDING = {"globals", "locals", "vars", "eval", "exec", "__import__", "type", "is_tensor"}
_HIDING_ATTRIBUTES = {"__globals__", "__dict__", "__closure__", "is_tensor"}
_WAYS = {"type": "use isinstance", "is_tensor": "what a kernel computes with are numbers"}


class Found:
    """The tensors and numbers that functions capture, in the order in which they are met."""

    #: What the framework's tensors are, their element types by its own, and types of values that stay as they are.
    tensors, elements, constants = (), {}, ()

    def __init__(self):
        self.values = []
        #: The functions of one mod, in the order in which they are met.
        self.functions = []

    def add(self, value):
        self.values.append(value)
        return len(self.values) - 1

    def convert(self, value):
        """What a value is taken for."""
        return value

    def find_problem(self, tensor):
        """What keeps kernels from taking a captured tensor of a type that they know, or None."""
        return None

    def is_compiling(self):
        """Whether functions are read by a compiler, whose globals are not those of the module."""
        return False

    def list_globals(self, code):
        """The names of globals that a function asks for, in one text."""
        return " ".join(find_globals(code))


# ---- Reading functions, also under torch.compile


def describe(found, name, value, level=0):
    """A captured value as constants; `found` keeps tensors and numbers."""
    value = found.convert(value)
    if not found.is_compiling() and _is_scalar_of_numpy(value):
        value = value.item()
    if isinstance(value, found.tensors):
        return _describe_tensor(found, name, value)
    if isinstance(value, bool):
        # Under torch.compile a comparison of lengths is a SymBool. The branch makes a constant of it.
        return "constant", True if value else False
    if value is None or isinstance(value, str):
        return "constant", value
    if isinstance(value, (int, float)):
        return "number", found.add(value), name, "i32" if isinstance(value, int) else "f32"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _describe_named(found, name, value, level)
    if isinstance(value, (tuple, list)):
        parts = [describe(found, f"{name}_{i}", part, level + 1) for i, part in enumerate(value)]
        return ("list" if isinstance(value, list) else "tuple"), tuple(parts)
    if isinstance(value, Mask):
        if value.arguments:
            return _refuse(name, "a Mask with arguments; pass it in a tessera.Variant")
        return describe(found, name, value.function, level)
    if isinstance(value, types.FunctionType):
        return _describe_function(found, name, value, level)
    if isinstance(value, functools.partial):
        return _describe_partial(found, name, value, level)
    if _is_plain(found, value):
        return "constant", value
    return _refuse_parts(name, value)


def _refuse_parts(name, value):
    return _refuse(
        name,
        f"a {type(value).__name__}, whose parts may change: give what the function needs of it a name of its own, outside of "
        "the function",
    )


def _describe_named(found, name, value, level):
    """A namedtuple. Methods of one might see what nothing here does."""
    kind = type(value)
    if any(key not in kind._fields for key in vars(kind) if not key.startswith("_")):
        return _refuse_parts(name, value)
    parts = [describe(found, f"{name}_{field}", part, level + 1) for field, part in zip(kind._fields, value)]
    return "named", kind, tuple(parts)


def _is_scalar_of_numpy(value):
    return type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0


def _is_plain(found, value):
    """Whether a value stays what it is, with all its parts."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _LIBRARIES
    if isinstance(value, type):
        return value.__module__.partition(".")[0] in _LIBRARIES
    return isinstance(value, (types.BuiltinFunctionType, *found.constants))


def _stays(found, value):
    """Whether functions see a value of a module as it is."""
    return found.convert(value) is value and _is_plain(found, value)


def _refuse(name, problem):
    return "refused", f"'{name}' is {problem}"


def _describe_tensor(found, name, tensor):
    if tensor.dtype not in found.elements:
        return _refuse(name, f"a captured tensor of {tensor.dtype}; kernels take float32, float16, bfloat16, int64, int32, "
                             "int8 and bool")  # fmt: skip
    problem = found.find_problem(tensor)
    if problem is not None:
        return _refuse(name, f"a captured tensor {problem}")
    return "view", found.add(tensor), name, found.elements[tensor.dtype], tensor.ndim


def _describe_function(found, name, function, level):
    module = function.__module__
    closure = function.__closure__ or ()
    if module == _math.__name__ or (not closure and module is not None and module.partition(".")[0] in _LIBRARIES):
        return "constant", function
    if not found.is_compiling():
        for number, other in enumerate(found.functions):
            if other is function:
                return "again", number
    number = len(found.functions)
    if level > _MOST_LEVELS or number > _MOST_FUNCTIONS:
        return _refuse(name, "a function that calls itself, or one within too many others")
    if module not in sys.modules:
        return _refuse(name, f"a function of '{module}', which is no module that is imported")
    code, names = function.__code__, vars(sys.modules[module])
    if not found.is_compiling() and function.__globals__ is not names:
        return _refuse(name, f"a function that says to be of '{module}' and is of another module")
    found.functions.append(function)
    cells = [_describe_cell(found, cell_name, cell, level + 1) for cell_name, cell in zip(code.co_freevars, closure)]
    defaults = [describe(found, f"{name}_default", value, level + 1) for value in function.__defaults__ or ()]
    keyword_defaults = [
        (key, describe(found, key, value, level + 1)) for key, value in (function.__kwdefaults__ or {}).items()
    ]
    outer = [
        (global_name, describe(found, global_name, names[global_name], level + 1))
        for global_name in found.list_globals(code).split()
        if global_name in names and not _stays(found, names[global_name])
    ]
    attributes = [] if found.is_compiling() else [
        (key, describe(found, key, value, level + 1)) for key, value in vars(function).items() if not key.startswith("__")
    ]
    parts = (tuple(part) for part in (cells, defaults, keyword_defaults, outer, attributes))
    return "function", code, module, number, *parts


def _describe_cell(found, name, cell, level):
    try:
        value = cell.cell_contents
    except ValueError:
        return _refuse(name, "a variable that has no value yet")
    return describe(found, name, value, level)


def _describe_partial(found, name, value, level):
    function = describe(found, name, value.func, level + 1)
    positional = tuple(describe(found, name, part, level + 1) for part in value.args)
    named = tuple((key, describe(found, key, part, level + 1)) for key, part in value.keywords.items())
    return "partial", function, positional, named


def describe_mod(found, name, function, arguments, own):
    """(function, its arguments after `own` ones) as constants; None without a function."""
    if not isinstance(arguments, (tuple, list)):
        raise TypeError(f"argument '{name[:-3]}args' is a {type(arguments).__name__}; it is a tuple of arguments")
    if function is None:
        if arguments:
            raise ValueError(f"argument '{name[:-3]}args' is given without '{name}', which would take them")
        return None
    if not callable(function):
        raise TypeError(f"argument '{name}' is a {type(function).__name__}; it is a function")
    found.functions = []
    described = describe(found, name, function)
    names = function.__code__.co_varnames[own:] if isinstance(function, types.FunctionType) else ()
    names = (*names, *(f"{name}_argument" for _ in arguments))
    return described, tuple(describe(found, names[i], argument) for i, argument in enumerate(arguments))


@functools.lru_cache(maxsize=1024)
def find_globals(code):
    """The names of globals that a function asks for, and those within it."""
    names = {op.argval: None for op in dis.get_instructions(code) if op.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(dict.fromkeys(find_globals(constant)))
    return tuple(names)


@functools.lru_cache(maxsize=1024)
def find_hidden(code):
    """What of a function's code finds or changes values that are not captured, in words; None where nothing does."""
    for op in dis.get_instructions(code):
        name = str(op.argval)
        if op.opname == "IMPORT_NAME" and name.partition(".")[0] not in _IMPORTED:
            return f"imports '{name}' where it runs, whose values would stay as they are now: import it outside of the function"
        hiding = {"LOAD_GLOBAL": _HIDING, "LOAD_NAME": _HIDING, "LOAD_ATTR": _HIDING_ATTRIBUTES, "LOAD_METHOD": _HIDING_ATTRIBUTES}
        if name in hiding.get(op.opname, ()):
            way = _WAYS.get(name, "name the values that it needs")
            return f"asks for '{name}', which does not see what a kernel takes: {way}"
        if op.opname == "STORE_GLOBAL" or (op.opname == "STORE_DEREF" and name in code.co_freevars):
            return f"assigns '{name}' outside of itself, and runs once for all calls: return what it computes"
    return next(filter(None, (find_hidden(part) for part in code.co_consts if isinstance(part, types.CodeType))), None)


# ---- Making functions that are traced


def _is_instance(value, kinds):
    """isinstance as functions see it, which does not say whether a traced value is an array: a framework's function has one
    there."""
    if isinstance(kinds, _trace.Refused):
        kinds.refuse()
    if isinstance(value, _trace.Number):
        return issubclass(value.__class__, kinds)
    if isinstance(value, _trace.TRACED):
        pending = [kinds]
        while pending:
            kind = pending.pop()
            if isinstance(kind, tuple):
                pending += kind
            elif getattr(kind, "__module__", None) != "builtins":
                _trace.fail(f"isinstance of a traced value and {getattr(kind, '__name__', kind)}; what it is in the kernel is a number")
    return isinstance(value, kinds)


class _Maker:
    """Makes functions whose captured tensors and numbers are arguments of the kernel."""

    def __init__(self, constants):
        self._constants = constants
        #: Names of arguments by the indices of what was found: of views, and of numbers by their types.
        self.views, self.numbers = {}, {"f32": {}, "i32": {}}
        #: The constants that are indices of views, as View has them.
        self.reach = []
        self._functions = {}

    def make(self, part):
        kind, *rest = part
        return getattr(self, f"_make_{kind}")(*rest)

    def _make_constant(self, value):
        return value

    def _make_refused(self, message):
        return _trace.Refused(message)

    def _make_tuple(self, parts):
        return tuple(map(self.make, parts))

    def _make_list(self, parts):
        return list(map(self.make, parts))

    def _make_partial(self, function, positional, named):
        made = self.make(function)
        return functools.partial(made, *map(self.make, positional), **{key: self.make(part) for key, part in named})

    def _make_number(self, index, name, kind):
        if index in self._constants:
            return self._constants[index]
        return self._make_argument(kind, index, _make_name(name, index))

    def _make_argument(self, kind, number, name=None):
        """A number that a kernel takes; one that the host computes has a name that no other one has."""
        named = self.numbers["i32" if kind == "i1" else kind]
        name = named.setdefault(number, name or f"computed_{len(named)}_{kind}")
        return _trace.Number(_trace.current(), kind, number, name, self._make_argument)

    def _make_view(self, index, name, element, rank):
        function = _trace.current()
        self.views[index] = _make_name(name, index)
        dims = tuple(f"N{index}_{axis}" for axis in range(rank))
        if dims:
            view = _trace.View(function, self.views[index], dims, element, name)
            self.reach.append((index, name, view.reach))
            return view
        number = _trace.View(function, self.views[index], (1,), element, name)
        return _trace.Late(function, number.kind, lambda: number[0])

    def _make_named(self, kind, parts):
        return kind(*map(self.make, parts))

    def _make_again(self, number):
        return self._functions[number]

    def _make_function(self, code, module, number, cells, defaults, keyword_defaults, outer, attributes):
        names = {"isinstance": _is_instance, **vars(sys.modules[module])}
        closure = tuple(types.CellType() for _ in cells)
        function = types.FunctionType(code, names, code.co_name, None, closure)
        hidden = find_hidden(code)
        place = f"function '{code.co_name}' ({code.co_filename}:{code.co_firstlineno})"
        # What is behind may call it.
        made = self._functions[number] = function if hidden is None else _trace.Refused(f"{place} {hidden}")
        for cell, part in zip(closure, cells):
            cell.cell_contents = self.make(part)
        function.__defaults__ = tuple(map(self.make, defaults))
        function.__kwdefaults__ = {name: self.make(part) for name, part in keyword_defaults}
        names.update({name: self.make(part) for name, part in outer})
        vars(function).update({name: self.make(part) for name, part in attributes})
        return made

    def make_mod(self, mod):
        """The function that a Variant traces."""
        if mod is None:
            return None
        part, arguments = mod

        def run(*values):
            self._functions = {}
            function = self.make(part)
            given = (*values, *map(self.make, arguments))
            _check_count(function, given, len(values))
            return function(*given)

        run.__code_of__ = part[1] if part[0] == "function" else None
        return run


def _make_name(name, index):
    """A name that no other argument has; kernels have none of their own that ends so."""
    return f"{re.sub('[^A-Za-z0-9_]', '_', name)}_{index}"


def _check_count(function, given, own):
    if not isinstance(function, (types.FunctionType, functools.partial)):
        return  # It says itself what it takes.
    try:
        inspect.signature(function).bind(*given)
    except TypeError as error:
        names = "b, h, q, k" if own == 4 else "score, b, h, q, k"
        code = getattr(function, "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
        raise _trace.TraceError(
            f"{place}{error}; the function is called with ({names}) and {len(given) - own} further arguments"
        ) from None


class _Written:
    """A source, which of the things that were found its kernels take, and which of the views may have gradients. A graph
    reads its attributes as constants."""

    def __init__(self, variant, maker):
        self.problem, self.needed = None, None
        self.source, self.learnable = variant.source, variant.learnable
        asked = {index: name for index, name in maker.views.items() if variant.asks_for(name)}
        numbers = [
            {index: name for index, name in maker.numbers[kind].items() if variant.asks_for(name)} for kind in ("f32", "i32")
        ]
        self.views, self.numbers, self.integers = (tuple(part) for part in (asked, *numbers))
        self.names = "|".join(",".join(part.values()) for part in (asked, *numbers))
        # (what was found, how much its dimension has to have, what is wrong otherwise), of indices that are constants.
        self.reach = tuple(
            (index, axis, constant + 1 if constant >= 0 else -constant,
             f"{place}index {constant} of '{label}' lies outside, as dimension {axis} has an extent of")
            for index, label, reach in maker.reach for place, axis, constant in reach
        )  # fmt: skip


class _NotWritten:
    """Why there is no source: a problem, or a number that Python needs while it traces."""

    def __init__(self, problem=None, needed=None):
        self.problem, self.needed, self.reach = problem, needed, ()


@functools.lru_cache(maxsize=256, typed=True)
def write(score, mask, constants):
    """The source of functions as `describe_mod` says them; `constants` are indices of numbers, and these."""
    maker = _Maker(dict(zip(constants[::2], constants[1::2])))
    try:
        variant = Variant(score=maker.make_mod(score), mask=maker.make_mod(mask))
        variant.check()
    except _trace.ConstantNeeded as error:
        return _NotWritten(needed=error.index)
    except _trace.TraceError as error:
        return _NotWritten(problem=str(error))
    return _Written(variant, maker)


def find(found, write, score_mod, score_args, mask_mod, mask_args):
    """A source, or what says why there is none, of functions and their further arguments; `found` keeps captured tensors
    and numbers. `write` is the function above, or calls it."""
    # What a mask captures has the same places whatever the score is.
    mask = describe_mod(found, "mask_mod", mask_mod, mask_args, 4)
    score = describe_mod(found, "score_mod", score_mod, score_args, 5)
    constants = ()
    written = write(score, mask, constants)
    while written.needed is not None:
        number = found.values[written.needed]
        # An integer of a graph becomes a constant of it.
        number = number if isinstance(number, float) else operator.index(number)
        constants = (*constants, written.needed, number)
        written = write(score, mask, constants)
    for index, axis, least, problem in written.reach:
        extent = found.values[index].shape[axis]
        if extent < least:
            return _NotWritten(f"{problem} {extent}")
    return written
