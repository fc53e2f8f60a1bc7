"""Functions of scores and masks with what they capture: tensors and numbers of closures, defaults and globals, which become
arguments of the kernel.

`describe` reads a function without calling it. torch.compile traces through it, so that captured tensors are inputs of the
graph. What it returns is made of constants, and is what a source is known by: the code of functions, all that they name, and
numbers of what was found. `write` makes the source of that, and of nothing else. A framework has a Found of its own, which
knows its tensors.
"""

import builtins
import collections
import dis
import functools
import importlib.util
import operator
import sys
import types

from .._core import _library
from . import _listed, _math, _trace
from ._names import Names
from ._rebinding import Maker, is_library
from ._variant import ListedVariant, Mask, Variant

#: The element types of captured tensors, by their names. A condition is a byte in memory.
ELEMENTS = {element.torch: element.name for element in _library.ELEMENTS if not element.name.startswith("f8")} | {"bool": "i1"}
# Functions within functions, and functions in all.
_MOST_LEVELS, _MOST_FUNCTIONS = 24, 512
# What is the same wherever it is found.
_SINGLE = {type(None), type(Ellipsis), type(NotImplemented), str, types.BuiltinFunctionType}
# Names of a namedtuple's class that change nothing of what its elements say.
_NAMES_OF_NAMEDTUPLES = {
    *vars(collections.namedtuple("_Empty", ())), "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__",
    "__orig_bases__", "__dict__", "__static_attributes__", "__firstlineno__",
}  # fmt: skip


class Found:
    """The tensors and numbers that functions capture, in the order in which they are met."""

    #: What the framework's tensors are, their element types by its own, and types of values that stay as they are.
    tensors, elements, constants = (), {}, ()
    #: The types of tuples and lists.
    sequences = (tuple, list)

    def __init__(self):
        self.begin()

    def begin(self):
        """Forgets what was found."""
        self.values = []

    def begin_mod(self, asked):
        """Forgets what belongs to one mod: the numbers of its functions, its modules by their names, and the attributes that it
        asks of modules, which are `asked`."""
        self.functions, self.modules, self.asked = {}, {}, dict(asked)

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
        """Whether a compiler reads functions, which knows the values of tensors and numbers as little as their identity."""
        return False

    def get_attributes(self, function):
        """Of a function, by name."""
        return vars(function)

    def read_cell(self, cell):
        """What a variable of an enclosing function holds; ValueError where it has no value yet."""
        return cell.cell_contents

    def compute(self, function, *values):
        """function(*values), of what a compiler has constants for and cannot read."""
        return function(*values)


# ---- Reading functions, also under torch.compile


def describe(found, name, value, level=0):
    """A captured value as constants; `found` keeps tensors and numbers."""
    value = found.convert(value)
    if isinstance(value, bool):
        # Under torch.compile a comparison of lengths is a SymBool. The branch makes a constant of it.
        return "constant", True if value else False
    kind = type(value)
    if kind is float or kind is int:
        return "number", found.add(value), name, "i32" if kind is int else "f32"
    if kind in _SINGLE:
        return "constant", value
    if kind is types.FunctionType:
        return _describe_function(found, name, value, level)
    if isinstance(value, found.tensors):
        return _describe_tensor(found, name, value)
    if isinstance(value, types.ModuleType):
        return _describe_module(found, value, level)
    if kind in found.sequences:
        parts = tuple([describe(found, f"{name}_{i}", part, level + 1) for i, part in enumerate(value)])
        return ("list" if kind is list else "tuple"), parts
    if kind is functools.partial:
        return _describe_partial(found, name, value, level)
    if isinstance(value, type) and (library := found.compute(name_in_library, value)):
        return "constant", value, library
    if isinstance(value, found.constants):
        return "constant", value
    return _describe_other(found, name, value, level)


def _describe_other(found, name, value, level):
    kind = type(value)
    if isinstance(value, Mask):
        if value.arguments:
            return _refuse(name, "a Mask with arguments; pass it in a tessera.Variant")
        return describe(found, name, value.function, level)
    if isinstance(value, tuple) and hasattr(kind, "_fields") and found.compute(is_plain_namedtuple, kind):
        parts = [describe(found, f"{name}_{field}", part, level + 1) for field, part in zip(kind._fields, value)]
        return "namedtuple", kind, tuple(parts)
    # A scalar of numpy. That of a compiler is none.
    if not found.is_compiling() and kind.__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return describe(found, name, value.item(), level)
    return _refuse(
        name,
        f"a {kind.__name__}, whose parts may change: give what the function needs of it a name of its own, outside of the function",
    )


def name_in_library(kind):
    """The name of a type of a library, "" of another one. Types of JAX are equal to those of numpy, and have other names."""
    return f"{kind.__module__}.{kind.__qualname__}" if is_library(kind.__module__) else ""


def _refuse(name, problem):
    return "refused", f"'{name}' is {problem}"


def is_plain_namedtuple(kind):
    return all(vars(base).keys() <= {*_NAMES_OF_NAMEDTUPLES, *kind._fields} for base in kind.__mro__ if base not in (tuple, object))


def _describe_tensor(found, name, tensor):
    if tensor.dtype not in found.elements:
        return _refuse(name, f"a captured tensor of {tensor.dtype}; kernels take {_library.list_names(ELEMENTS)}")
    problem = found.find_problem(tensor)
    if problem is not None:
        return _refuse(name, f"a captured tensor {problem}")
    return "view", found.add(tensor), name, found.elements[tensor.dtype], tensor.ndim


def _describe_module(found, module, level):
    """A module as those of its attributes that the trace asks for."""
    own = module.__name__
    if own in found.modules:
        return ("same_module", own) if found.modules[own] is module else _refuse(own, "the name of two modules")
    found.modules[own] = module
    parts = [(name, _describe_attribute(found, module, name, level + 1)) for name in found.asked.get(own, ())]
    return "module", own, tuple(parts)


def _describe_attribute(found, module, name, level):
    """An attribute of a module; None where it has none of the name."""
    if not hasattr(module, name):
        return None
    value = getattr(module, name)
    is_of_library = is_library(module.__name__)
    if is_of_library and type(value) in (int, float):
        return "constant", value, repr(value)
    described = describe(found, name, value, level)
    # What a library calls by a name of its own.
    if described[0] == "refused" and is_of_library and callable(value) and is_library(getattr(value, "__module__", None) or "torch"):
        return "constant", value
    return described


def _describe_function(found, name, function, level):
    names, closure = _get_globals(found, function), function.__closure__
    module = names["__name__"] if "__name__" in names else ""
    if module == _math.__name__ or (closure is None and is_library(module)):
        return "constant", function
    if function in found.functions:
        return "same_function", found.functions[function]
    number = len(found.functions)
    if level > _MOST_LEVELS or number > _MOST_FUNCTIONS:
        return _refuse(name, "a function that calls itself, or one within too many others")
    found.functions[function] = number
    code, level = function.__code__, level + 1
    asked, imported = found.compute(list_globals, code)
    defaults, named, attributes = function.__defaults__, function.__kwdefaults__, found.get_attributes(function)
    return (
        "function", code, function.__name__, module, number,
        tuple([_describe_cell(found, *cell, level) for cell in zip(code.co_freevars, closure)]) if closure else (),
        tuple([describe(found, f"{name}_default", value, level) for value in defaults]) if defaults else (),
        _describe_items(found, named.items(), level) if named else (),
        _describe_items(found, _find_globals(names, asked), level),
        _describe_items(found, _find_imports(found, imported), level) if imported else (),
        _describe_items(found, attributes.items(), level) if attributes else (),
    )  # fmt: skip


def _get_globals(found, function):
    # A compiler knows no globals of functions that are made in what it compiles. functools.wraps names another module.
    if found.is_compiling() and not hasattr(function, "__wrapped__"):
        return vars(sys.modules[function.__module__])
    return function.__globals__


def _describe_items(found, items, level):
    return tuple([(name, describe(found, name, value, level)) for name, value in items])


_OF_PYTHON = vars(builtins)


def _find_globals(names, asked):
    """(name, value) of the globals that a function asks for; where its module has none of a name, those of Python."""
    return [
        (name, names[name] if name in names else _OF_PYTHON[name]) for name in asked if name in names or name in _OF_PYTHON
    ]


def _find_imports(found, imported):
    """(first name, module) of the modules that a function imports where it runs."""
    if not found.is_compiling():
        for name in imported:
            if name not in sys.modules and importlib.util.find_spec(name.partition(".")[0]) is not None:
                importlib.import_module(name)
    firsts = [name.partition(".")[0] for name in imported]
    return [(name, sys.modules[name]) for name in firsts if name in sys.modules]


def _describe_cell(found, name, cell, level):
    try:
        value = found.read_cell(cell)
    except ValueError:
        return _refuse(name, "a variable that has no value yet")
    return describe(found, name, value, level)


def _describe_partial(found, name, value, level):
    function = describe(found, name, value.func, level + 1)
    positional = tuple([describe(found, name, part, level + 1) for part in value.args])
    named = _describe_items(found, value.keywords.items(), level + 1)
    # A compiler knows no attributes of one. A function that asks for some is refused then.
    attributes = () if found.is_compiling() else _describe_items(found, vars(value).items(), level + 1)
    return "partial", function, positional, named, attributes


def find_code(function):
    """The code of a function behind a mask or partial arguments; None of anything else."""
    while isinstance(function, (Mask, _listed.Listed, functools.partial)):
        function = function.func if isinstance(function, functools.partial) else function.function
    return function.__code__ if isinstance(function, types.FunctionType) else None


def describe_mod(found, name, function, arguments, own):
    """(function, its arguments after `own` ones) as constants; None without a function. Of a mask whose blocks are listed,
    (what its table is, the same of its function)."""
    if isinstance(function, _listed.Listed):
        table = describe(found, "blocks", function.states) if function.needs_table else None
        described = describe_mod(found, name, function.function, function.arguments, own)
        return ("listed", function.indices, function.block, table), described
    if not isinstance(arguments, (tuple, list)):
        raise TypeError(f"argument '{name[:-3]}args' is a {type(arguments).__name__}; it is a tuple of arguments")
    if function is None:
        if arguments:
            raise ValueError(f"argument '{name[:-3]}args' is given without '{name}', which would take them")
        return None
    if not callable(function):
        raise TypeError(f"argument '{name}' is a {type(function).__name__}; it is a function")
    code = find_code(function)
    found.begin_mod(() if code is None else found.compute(list_asked, code))
    described = describe(found, name, function)
    names = function.__code__.co_varnames[own:] if isinstance(function, types.FunctionType) else ()
    names = (*names, *(f"{name}_argument" for _ in arguments))
    return described, tuple([describe(found, names[i], argument) for i, argument in enumerate(arguments)])


def _list_instructions(code):
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _list_instructions(constant)


def list_globals(code):
    """(the names of globals that a function asks for, and those within it, and the names of modules that they import)."""
    return _list_globals(code)  # Compilers do not take what has a cache for a function.


@functools.lru_cache(maxsize=1024)
def _list_globals(code):
    instructions = list(_list_instructions(code))
    names = dict.fromkeys(op.argval for op in instructions if op.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    imports = dict.fromkeys(op.argval for op in instructions if op.opname == "IMPORT_NAME")
    return tuple(names), tuple(imports)


# What traces have asked of modules, by the code of the functions: names of attributes by those of modules. Forgotten, it is
# asked again.
_asked, _MOST_CODES = {}, 1024


def list_asked(code):
    """(module, names of attributes) that traces of a function have asked for."""
    return tuple(_asked.get(code, {}).items())


def ask(codes, module, name):
    """Adds to what `list_asked` says of functions. Raises TraceError where it says so already."""
    codes = [code for code in codes if code is not None and name not in _asked.get(code, {}).get(module, ())]
    if not codes:
        raise _trace.TraceError(f"a function asks for '{name}' of '{module}' by a way that is not seen: name the module in it")
    if len(_asked) > _MOST_CODES:
        _asked.clear()
    for code in codes:
        known = _asked.setdefault(code, {})
        known[module] = (*known.get(module, ()), name)


class _Written:
    """A source, which of the things that were found its kernels take, and which of the views may have gradients. A graph
    reads its attributes as constants."""

    def __init__(self, variant, maker, constants):
        self.problem = self.needed = self.asked = None
        #: Which of what was found are numbers that Python needed, and what these were.
        self.constants = constants
        self.source, self.learnable = variant.source, variant.learnable
        asked = {index: name for index, name in maker.views.items() if variant.asks_for(name)}
        numbers = [
            {index: name for index, name in maker.numbers[kind].items() if variant.asks_for(name)} for kind in ("f32", "i32")
        ]
        self.views, self.numbers, self.integers = (tuple(part) for part in (asked, *numbers))
        self.names = Names(*[tuple(part.values()) for part in (asked, *numbers)])
        # (what was found, how much its dimension has to have, what is wrong otherwise), of indices that are constants.
        self.reach = tuple(
            (index, axis, constant + 1 if constant >= 0 else -constant,
             f"{place}index {constant} of '{label}' lies outside, as dimension {axis} has an extent of")
            for index, label, reach in maker.reach for place, axis, constant in reach
        )  # fmt: skip


class _NotWritten:
    """Why there is no source: a problem, numbers that Python needs while it traces, or an attribute that it asks of a module."""

    def __init__(self, problem=None, needed=None, asked=None):
        self.problem, self.needed, self.asked, self.reach = problem, needed, asked, ()


class _Question:
    """What `write` is asked: descriptions, and constants. Values that are known help to answer, and are no part of it."""

    def __init__(self, parts, values):
        self.parts, self.values = parts, values

    def __hash__(self):
        return hash(self.parts)

    def __eq__(self, other):
        return self.parts == other.parts


def write(score, mask, sinks, constants, values=None):
    """The source of functions as `describe_mod` says them, and of sinks as `describe` does; `constants` has indices of numbers,
    each with the integer or the bits of a float. `values` are what was found, where it is known."""
    return answer(_Question((score, mask, sinks, constants), values))


@functools.lru_cache(maxsize=256)
def answer(question):
    (score, mask, sinks, constants), values = question.parts, question.values
    question.values = None  # The question is kept, and with it tensors would be.
    maker = Maker({index: float.fromhex(number) if isinstance(number, str) else number for index, number in constants}, values)
    try:
        functions = {"score": maker.make_mod(score), "mask": maker.make_mod(mask), "sink": maker.make_sink(sinks)}
        is_listed = mask is not None and mask[0][0] == "listed"
        variant = ListedVariant(mask[0][1], functions) if is_listed else Variant(**functions)
        variant.check()
    except _trace.ConstantNeeded as error:
        return _NotWritten(needed=error.indices)
    except _trace.AttributeNeeded as error:
        return _NotWritten(asked=(error.module, error.name))
    except _trace.TraceError as error:
        return _NotWritten(problem=str(error))
    return _Written(variant, maker, constants)


def find(found, write, score_mod, score_args, mask_mod, mask_args, sinks=None):
    """A source, or what says why there is none, of functions and their further arguments, and of sinks of heads; `found` keeps
    captured tensors and numbers. `write` is the function above, or calls it."""
    while True:
        # What a mask captures has the same places whatever the score is.
        mask = describe_mod(found, "mask_mod", mask_mod, mask_args, 4)
        score = describe_mod(found, "score_mod", score_mod, score_args, 5)
        sink = None if sinks is None else describe(found, "sinks", sinks)
        written = _write_with_constants(found, write, score, mask, sink)
        if written.asked is None:
            break
        found.compute(ask, (find_code(mask_mod), find_code(score_mod)), *written.asked)
        found.begin()
    found.described = mask, score, sink
    for index, axis, least, problem in written.reach:
        extent = found.values[index].shape[axis]
        if extent < least:
            return _NotWritten(f"{problem} {extent}")
    return written


def write_number(number):
    """A number of a graph as a constant of it: floats that are equal may differ in their bits."""
    return number.hex() if isinstance(number, float) else operator.index(number)


def _write_with_constants(found, write, *described):
    """What `write` gives with the numbers that Python needs while it traces."""
    constants, values = (), None if found.is_compiling() else found.values
    written = write(*described, constants, values)
    while written.needed is not None:
        constants = (*constants, *((index, write_number(found.values[index])) for index in written.needed))
        written = write(*described, constants, values)
    return written
