"""Makes functions anew whose captured tensors and numbers are arguments of a kernel, of what `_captured.describe` says.

A function that is made sees what its description has, and nothing else: neither the globals of its module nor Python's builtins.
So a description that leaves something out makes a function that fails, and none that computes with what it was.
"""

import builtins
import functools
import inspect
import re
import types

from . import _computed, _listed, _trace, _views

# Modules whose functions and classes stay as they are, and whose numbers are constants.
_LIBRARIES = ("tessera", "torch", "jax", "jaxlib", "ml_dtypes", "math", "numpy", "builtins", "operator", "functools", "collections",
              "numbers", "itertools", "typing", "warnings")
# Functions that find values which nothing here sees, or for which traced values are none, and what to write instead.
_HIDING = {
    **dict.fromkeys(
        (f"builtins.{name}" for name in ("globals", "locals", "vars", "dir", "eval", "exec", "__import__", "input")),
        "name the values that it needs",
    ),
    **dict.fromkeys(("io.open", "_io.open"), "read files outside of the function"), "builtins.type": "use isinstance",
    "torch.is_tensor": "what a kernel computes with are numbers",
}  # fmt: skip
# Attributes that lead to values which nothing here sees.
_HIDING_ATTRIBUTES = {
    "__globals__", "__dict__", "__closure__", "__builtins__", "__subclasses__", "tb_frame", "gi_frame", "f_back", "f_globals",
    "f_locals", "is_tensor",
}  # fmt: skip


def is_library(module):
    return module.partition(".")[0] in _LIBRARIES


@functools.lru_cache(maxsize=1024)
def _find_hiding_attribute(code):
    """The attribute that leads a function's code to values which are not captured; None where none does."""
    parts = (_find_hiding_attribute(part) for part in code.co_consts if isinstance(part, types.CodeType))
    return next(iter(_HIDING_ATTRIBUTES.intersection(code.co_names)), None) or next(filter(None, parts), None)


def _find_problem(value):
    """Why functions do not see what stays as it is; None where they do."""
    if not callable(value):
        return None
    name = getattr(value, "__name__", "")
    way = _HIDING.get(f"{getattr(value, '__module__', '')}.{name}")
    if way is not None:
        return f"asks for '{name}', which does not see what a kernel takes: {way}"
    if not isinstance(value, types.BuiltinFunctionType):
        return None
    owner = value.__self__
    if owner is not None and not isinstance(owner, (types.ModuleType, type)):
        return f"'{name}' is a method of a {type(owner).__name__}, whose parts may change: call it by the name of that"
    # torch._C says of some functions no module, and Python's own begin with an underscore.
    if not is_library((value.__module__ or "torch").lstrip("_")):
        return f"'{name}' is a function of '{value.__module__}', whose results may change: call it outside of the function"
    return None


def _is_instance(value, kinds):
    """isinstance as functions see it, which does not say whether a traced value is an array: a framework's function has one
    there."""
    if isinstance(kinds, _views.Refused):
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


class _Module:
    """A module with those of its attributes that a trace has asked for."""

    def __init__(self, name):
        self.__module, self.__absent = name, set()

    def __getattr__(self, name):
        if name not in self.__absent:
            _trace.stop(_trace.AttributeNeeded(self.__module, name))
        raise AttributeError(f"module '{self.__module}' has no attribute '{name}'")

    def fill(self, parts):
        """`parts` are its attributes by name, None where it has none of the name."""
        self.__absent.update(name for name, part in parts if part is None)
        vars(self).update({name: part for name, part in parts if part is not None})


def _make_importer(modules):
    """What `import` calls in a function whose imports are `modules`, by the first of their names."""

    def find(name, of_caller=None, of_function=None, attributes=(), level=0):
        # What libraries import in C while they are called, who give a list where a statement of Python has a tuple or None.
        if isinstance(attributes, list):
            return builtins.__import__(name, of_caller, of_function, attributes, level)
        first, *rest = name.split(".")
        if level or modules.get(first) is None:
            _trace.fail(f"imports '{'.' * level}{name}' where it runs, which is no module that is imported: import it outside of the "
                        "function")  # fmt: skip
        if not attributes:
            return modules[first]
        module = functools.reduce(getattr, rest, modules[first])
        for attribute in attributes:
            getattr(module, attribute)  # Python would look for a module of this name behind it.
        return module

    return find


def _read_cell(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _make_name(name, index):
    """A name that no other argument has; kernels have none of their own that ends so."""
    return f"{re.sub('[^A-Za-z0-9_]', '_', name)}_{index}"


class Maker:
    """Makes functions of descriptions; each kind of these has a method."""

    def __init__(self, constants, values):
        #: Numbers that are constants by their indices, those that became some since, and what was found, where it is known.
        self._constants, self._needed, self._values = constants, {}, values
        #: Names of arguments by the indices of what was found: of views, and of numbers by their types.
        self.views, self.numbers = {}, {"f32": {}, "i32": {}}
        #: The constants that are indices of views, as View has them.
        self.reach = []
        self._begin()

    def _begin(self):
        """For a run: what is made, and how to read what the run may not change, by names."""
        self._functions, self._modules, self._watched = {}, {}, []

    def make(self, part):
        kind, *rest = part
        return getattr(self, f"_make_{kind}")(*rest)

    def _make_named_parts(self, parts):
        return {name: self.make(part) for name, part in parts}

    def _make_constant(self, value, _=""):
        if value is builtins.isinstance:
            return _is_instance
        problem = _find_problem(value)
        return value if problem is None else _views.Refused(problem)

    def _make_refused(self, message):
        return _views.Refused(message)

    def _make_tuple(self, parts):
        return tuple(map(self.make, parts))

    def _make_list(self, parts):
        made = list(map(self.make, parts))
        self._watched.append(("changes a list", lambda: dict(enumerate(made))))
        return made

    def _make_partial(self, function, positional, named, attributes):
        made = functools.partial(self.make(function), *map(self.make, positional), **self._make_named_parts(named))
        vars(made).update(self._make_named_parts(attributes))
        self._watched.append(("assigns '{}'", lambda: vars(made)))
        return made

    def _make_number(self, index, name, kind):
        if index in self._constants:
            return self._constants[index]
        return self.make_argument(kind, index, _make_name(name, index))

    def read(self, number):
        """What Python needs a number for. The run goes on where it is known: it may need more."""
        indices = _computed.list_indices(number)
        if self._values is None:
            _trace.stop(_trace.ConstantNeeded(indices))
        self._needed.update(dict.fromkeys(indices))
        return _computed.compute(number, self._values)

    def make_argument(self, kind, number, name=None):
        """A number that a kernel takes; one that the host computes has a name that no other one has."""
        named = self.numbers["i32" if kind == "i1" else kind]
        name = named.setdefault(number, name or f"computed_{len(named)}_{kind}")
        return _trace.Number(_trace.current(), kind, number, name, self)

    def _make_view(self, index, name, element, rank):
        function = _trace.current()
        self.views[index] = _make_name(name, index)
        dims = tuple(f"N{index}_{axis}" for axis in range(rank))
        if dims:
            view = _views.View(function, self.views[index], dims, element, name)
            self.reach.append((index, name, view.reach))
            return view
        number = _views.View(function, self.views[index], (1,), element, name)
        return _trace.Late(function, number.kind, lambda: number[0])

    def _make_namedtuple(self, kind, parts):
        return kind(*map(self.make, parts))

    def _make_module(self, name, parts):
        module = self._modules[name] = _Module(name)
        module.fill([(attribute, part and self.make(part)) for attribute, part in parts])
        self._watched.append((f"assigns '{{}}' of '{name}'", lambda: vars(module)))
        return module

    def _make_same_module(self, name):
        return self._modules[name]

    def _make_same_function(self, number):
        return self._functions[number]

    def _make_function(self, code, name, module, number, cells, defaults, keyword_defaults, outer, imports, attributes):
        builtin = {"__build_class__": builtins.__build_class__}
        names = {"__builtins__": builtin, "__name__": module}
        closure = tuple(types.CellType() for _ in cells)
        function = types.FunctionType(code, names, name, None, closure)
        hidden = _find_hiding_attribute(code)
        place = f"function '{code.co_name}' ({code.co_filename}:{code.co_firstlineno})"
        # What is behind may call it.
        made = self._functions[number] = function
        if hidden is not None:
            made = self._functions[number] = _views.Refused(
                f"{place} asks for '{hidden}', which does not see what a kernel takes: name the values that it needs"
            )
        for cell, part in zip(closure, cells):
            cell.cell_contents = self.make(part)
        function.__defaults__ = tuple(map(self.make, defaults))
        function.__kwdefaults__ = self._make_named_parts(keyword_defaults)
        names.update(self._make_named_parts(outer))
        builtin["__import__"] = _make_importer(self._make_named_parts(imports))
        vars(function).update(self._make_named_parts(attributes))

        def read():
            of_cells = dict(zip(code.co_freevars, map(_read_cell, closure)))
            # A warning about a line of the function leaves the registry.
            of_module = {name: value for name, value in names.items() if name != "__warningregistry__"}
            return {**of_module, **of_cells, **(function.__kwdefaults__ or {}), **vars(function)}

        self._watched.append((f"{place} assigns '{{}}'", read))
        return made

    def make_mod(self, mod):
        """The function that a Variant traces."""
        if mod is None:
            return None
        part, arguments = mod
        if part[0] == "listed":
            return self._make_listed(part, arguments)

        def run(*values):
            self._begin()
            function = self.make(part)
            given = (*values, *map(self.make, arguments))
            _check_count(function, given, len(values))
            before = [dict(read()) for _, read in self._watched]
            try:
                result = function(*given)
                for (what, read), old in zip(self._watched, before):
                    _check_unchanged(what, old, read())
                return result
            finally:
                # With these as constants it may say something else.
                if self._needed:
                    _trace.stop(_trace.ConstantNeeded(tuple(self._needed)))

        run.__code_of__ = part[1] if part[0] == "function" else None
        return run

    def make_sink(self, part):
        """The function of the sinks, a tensor with one for each head."""
        return None if part is None else lambda b, h: self.make(part)[h]

    def _make_listed(self, part, mod):
        """A mask whose blocks are listed, as far as lists do not say it."""
        _, indices, block, table = part
        function = self.make_mod(mod)
        if table is None:
            return function

        def run(*place):
            return _listed.make_mask(self.make(table), block, indices, function)(*place)

        run.__code_of__ = getattr(function, "__code_of__", None)
        return run


def _check_unchanged(what, before, after):
    for name in {**before, **after}:
        if name not in before or name not in after or before[name] is not after[name]:
            _trace.fail(f"{what.format(name)} outside of itself, and runs once for all calls: return what it computes")


def _check_count(function, given, own):
    if not isinstance(function, (types.FunctionType, functools.partial)):
        return  # It says itself what it takes.
    try:
        inspect.signature(function).bind(*given)
    except TypeError as error:
        names = "b, h, q, k" if own == 4 else "score, b, h, q, k"
        further = f" and {len(given) - own} further arguments" if len(given) > own else ""
        code = getattr(function, "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
        raise _trace.TraceError(
            f"{place}a {'mask' if own == 4 else 'score'} is called with ({names}){further}; this one takes others: {error}"
        ) from None
