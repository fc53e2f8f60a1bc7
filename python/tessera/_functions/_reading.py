"""Readers: what was described once of functions is recognised again, without another description (see _captured.py).

A reader is made of descriptions, as the text of one function of Python, since its calls would cost the host more than what they
compare. It says whether functions still have these descriptions, and gives what kernels take of what it meets. Where it says no,
which may also be because it does not know, the functions are described again.
"""

import builtins
import functools
import types
from typing import Any, NamedTuple

from . import _captured, _computed
from ._listed import Listed
from ._variant import Mask

_NUMBERS = {"i32": "int", "f32": "float"}
_HEAD = "def read(index, score_mod, score_args, mask_mod, mask_args, sinks):"
# What texts name beside what they keep.
_NAMES = {
    "FunctionType": types.FunctionType, "ModuleType": types.ModuleType, "partial": functools.partial, "Mask": Mask,
    "Listed": Listed, "of_python": vars(builtins), "absent": object(), "write_number": _captured.write_number,
    "give": _computed.give,
}  # fmt: skip
_FUNCTION = types.FunctionType


class _Known(NamedTuple):
    """What was written of functions, and what reads these."""

    written: Any
    read: Any
    #: By which they are known: no other code has these addresses as long as these are there.
    codes: tuple


# By codes of functions: those of one code differ in what they capture.
_known = {}
_MOST_CODES, _MOST_OF_CODE = 256, 8


def recall(index, score_mod, score_args, mask_mod, mask_args, sinks=None):
    """(what is written for functions, their further arguments and sinks, the views and the numbers that kernels take, all tensors
    and numbers in their order) where the same was written before; None where it is not known. `index` is the query's device."""
    # Most are plain functions or none, for which a call more would cost time.
    score_code = score_mod and (score_mod.__code__ if type(score_mod) is _FUNCTION else _captured.find_code(score_mod))
    mask_code = mask_mod and (mask_mod.__code__ if type(mask_mod) is _FUNCTION else _captured.find_code(mask_mod))
    for known in _known.get((id(score_code), id(mask_code)), ()):
        found = known.read(index, score_mod, score_args, mask_mod, mask_args, sinks)
        if found is not None:
            return known.written, *found
    return None


def remember(found, score_mod, mask_mod, written):
    """Keeps what was written for functions that `found` has described, if they can be read again."""
    try:
        read = _make(found, written)
    except KeyError:  # What is refused, and what no reader is for.
        return
    codes = _captured.find_code(score_mod), _captured.find_code(mask_mod)
    if len(_known) >= _MOST_CODES:
        _known.clear()
    key = tuple(map(id, codes))
    _known[key] = (_Known(written, read, codes), *_known.get(key, ())[: _MOST_OF_CODE - 1])


def _make(found, written):
    text, (mask, score, sinks) = _Text(found), found.described
    _read_mod(text, "mask_mod", "mask_args", mask)
    _read_mod(text, "score_mod", "score_args", score)
    _read_optional(text, "sinks", sinks)
    for index, number in written.constants:
        text.require(f"write_number({text.values[index][0]}) == {number!r}")
    for index, axis, least, _ in written.reach:
        text.require(f"{text.values[index][0]}.shape[{axis}] >= {least}")
    return text.compile(written)


class _Text:
    """That of a reader: lines, what they name, and what was met, by its number: the name of its value and that of a kernel."""

    def __init__(self, found):
        self.found, self.lines, self.names, self.values = found, [], dict(_NAMES), {}

    def keep(self, thing):
        """The name of a thing."""
        name = f"k{len(self.names)}"
        self.names[name] = thing
        return name

    def let(self, expression):
        """The name of a value."""
        name = f"x{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def require(self, *conditions):
        self.lines.append(f"if not ({' and '.join(conditions)}): return None")

    def compile(self, written):
        views = [self.values[index][1] for index in written.views]
        numbers = [self._compute(number) for number in (*written.numbers, *written.integers)]
        everything = [name for _, (name, _) in sorted(self.values.items())]
        self.lines.append(f"return {', '.join(_write_tuple(part) for part in (views, numbers, everything))}")
        body = "".join(f"        {line}\n" for line in self.lines)
        # A cell that is empty.
        exec(f"{_HEAD}\n    try:\n{body}    except ValueError: return None\n", self.names)
        return self.names["read"]

    def _compute(self, number):
        if not isinstance(number, tuple):
            return self.values[number][1]
        values = ", ".join(f"{index}: {self.values[index][0]}" for index in _computed.list_indices(number))
        return f"give({self.keep(number)}, {{{values}}})"


class _Scope:
    """Functions by their numbers, and modules by their names, of one mod."""

    def __init__(self):
        self.functions, self.modules = {}, {}


def _write_tuple(parts):
    return "(" + "".join(f"{part}, " for part in parts) + ")"


def _read(text, scope, value, part):
    """Reads a value of that name as its description has it; KeyError where no reader is for it."""
    kind, *described = part
    _READERS[kind](text, scope, value, *described)


def _read_optional(text, value, part):
    if part is None:
        text.require(f"{value} is None")
    else:
        _read(text, _Scope(), value, part)


def _read_each(text, scope, values, parts):
    """The elements of a sequence."""
    for index, part in enumerate(parts):
        _read(text, scope, text.let(f"{values}[{index}]"), part)


def _read_mod(text, function, arguments, described):
    if described is None:
        text.require(f"{function} is None", *_write_count(arguments, 0))
    elif described[0][0] == "listed":
        text.require(*_write_count(arguments, 0))
        _read_listed(text, function, *described)
    else:
        scope, (own, of_arguments) = _Scope(), described
        _read(text, scope, function, own)
        text.require(*_write_count(arguments, len(of_arguments)))
        _read_each(text, scope, arguments, of_arguments)


def _write_count(arguments, count):
    """The conditions of a tuple with so many elements. Lists are described in each call."""
    return f"type({arguments}) is tuple", f"len({arguments}) == {count}" if count else f"not {arguments}"


def _read_listed(text, listed, table, described):
    _, indices, block, states = table
    text.require(f"type({listed}) is Listed", f"({listed}.indices, {listed}.block) == {(indices, tuple(block))!r}")
    _read_optional(text, text.let(f"{listed}.states if {listed}.needs_table else None"), states)
    _read_mod(text, text.let(f"{listed}.function"), text.let(f"{listed}.arguments"), described)


def _read_constant(text, _, value, constant, written=None):
    known = text.keep(constant)
    if isinstance(constant, (bool, str, *text.found.constants)):
        text.require(f"({value} is {known} or (type({value}) is type({known}) and {value} == {known}))")
    elif isinstance(constant, (int, float)):
        text.require(f"type({value}) is type({known})", f"repr({value}) == {written!r}")
    else:
        text.require(f"{value} is {known}")


def _read_number(text, _, value, index, name, kind):
    text.values[index] = value, value
    text.require(f"type({value}) is {_NUMBERS[kind]}")


def _read_view(text, _, value, index, name, element, rank):
    text.require(*text.found.write_conditions(text.keep, value, element, rank))
    text.values[index] = value, text.found.write_view(text.keep, value, element, rank)


def _read_sequence(kinds, text, scope, value, parts):
    text.require(f"type({value}) in {text.keep(kinds)}", f"len({value}) == {len(parts)}")
    _read_each(text, scope, value, parts)


def _read_tuple(text, scope, value, parts):
    _read_sequence(tuple(kind for kind in text.found.sequences if kind is not list), text, scope, value, parts)


def _read_list(text, scope, value, parts):
    _read_sequence((list,), text, scope, value, parts)


def _read_namedtuple(text, scope, value, kind, parts):
    _read_sequence((kind,), text, scope, value, parts)


def _read_module(text, scope, value, own, parts):
    text.require(f"type({value}) is ModuleType", f"{value}.__name__ == {own!r}")
    scope.modules[own] = value
    for name, part in parts:
        if part is None:
            text.require(f"not hasattr({value}, {name!r})")
        else:
            _read(text, scope, text.let(f"getattr({value}, {name!r}, absent)"), part)


def _read_same_module(text, scope, value, own):
    text.require(f"{value} is {scope.modules[own]}")


def _read_same_function(text, scope, value, number):
    text.require(f"{value} is {scope.functions[number]}")


def _read_partial(text, scope, value, function, positional, named, attributes):
    if attributes:
        raise KeyError
    names = [name for name, _ in named]
    text.require(f"type({value}) is partial", f"len({value}.args) == {len(positional)}", f"list({value}.keywords) == {names!r}",
                 f"not vars({value})")  # fmt: skip
    _read(text, scope, text.let(f"{value}.func"), function)
    _read_each(text, scope, text.let(f"{value}.args"), positional)
    _read_items(text, scope, text.let(f"{value}.keywords"), named)


def _read_items(text, scope, items, parts):
    for name, part in parts:
        _read(text, scope, text.let(f"{items}[{name!r}]"), part)


def _read_function(text, scope, value, code, name, module, number, cells, defaults, keyword_defaults, outer, imports, attributes):
    if imports or attributes:
        raise KeyError
    own = text.let(f"{value}.function if type({value}) is Mask and not {value}.arguments else {value}")
    text.require(
        f"type({own}) is FunctionType", f"{own}.__code__ is {text.keep(code)}", f"{own}.__name__ == {name!r}",
        f"not {own}.__dict__", *(f"{own} is not {other}" for other in scope.functions.values()),
    )  # fmt: skip
    scope.functions[number] = own
    if cells:
        closure = text.let(f"{own}.__closure__")
        for index, part in enumerate(cells):
            _read(text, scope, text.let(f"{closure}[{index}].cell_contents"), part)
    _read_defaults(text, scope, own, defaults, keyword_defaults)
    _read_globals(text, scope, text.let(f"{own}.__globals__"), code, module, outer)


def _read_defaults(text, scope, own, positional, named):
    if not positional:
        text.require(f"not {own}.__defaults__")
    else:
        values = text.let(f"{own}.__defaults__ or ()")
        text.require(f"len({values}) == {len(positional)}")
        _read_each(text, scope, values, positional)
    if not named:
        text.require(f"not {own}.__kwdefaults__")
    else:
        values = text.let(f"{own}.__kwdefaults__ or {{}}")
        text.require(f"list({values}) == {[name for name, _ in named]!r}")
        _read_items(text, scope, values, named)


def _read_globals(text, scope, known, code, module, outer):
    """The globals that a function asks for; where its module has none of a name, those of Python."""
    absent = {*_captured.list_globals(code)[0]}.difference(name for name, _ in outer)
    conditions = (f"{name!r} not in {known} and {name!r} not in of_python" for name in sorted(absent))
    text.require(f"{known}.get('__name__', '') == {module!r}", *conditions)
    for name, part in outer:
        _read(text, scope, text.let(f"{known}[{name!r}] if {name!r} in {known} else of_python.get({name!r}, absent)"), part)


_READERS = {
    "constant": _read_constant, "number": _read_number, "view": _read_view, "tuple": _read_tuple, "list": _read_list,
    "namedtuple": _read_namedtuple, "module": _read_module, "same_module": _read_same_module,
    "same_function": _read_same_function, "partial": _read_partial, "function": _read_function,
}  # fmt: skip
