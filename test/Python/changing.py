"""Functions of scores that read what changes between calls, for the tests: `Changing` draws one of them from a seed.

Each is a module with `score(s, b, h, q, k)`, made of some READS. `change` binds something of what one of these reads anew.
"""

import collections
import functools
import itertools
import math
import operator
import sys
import types

Pair = collections.namedtuple("Pair", "left right")
_count = itertools.count()


# Of a score and a number.
TWOS = [operator.add, operator.sub, operator.mul]


class Framework:
    """What functions are made of: a module, names of functions that it has, whose results are bounded, and types for
    `convert`, in which $ is one of them."""

    def __init__(self, module, names, types=(), convert=None):
        self.module, self.types, self.convert = module, types, convert
        self.ones = [getattr(module, name) for name in names]

    def list_kinds(self):
        return [kind for kind in READS if self.types or kind != "conversion"]

    def one(self, random):
        return random.choice(self.ones)

    def number(self, random):
        return random.choice([0.25, 0.5, 0.75, 1.25, 2, 3])


class Read:
    """`text` is what a module has, with # for a number that makes names unique, and `value` an expression of x in it.
    `change(module, number, random, framework)` binds something anew; at first it is called too."""

    def __init__(self, text, value, change):
        self.text, self.value, self.change = text, value, change


def _bind(name, draw):
    def change(module, n, random, framework):
        vars(module)[name.replace("#", n)] = draw(random, framework)

    return change


def _draw_one(random, framework):
    return framework.one(random)


def _draw_number(random, framework):
    return framework.number(random)


def _shadow(module, n, random, framework):
    if "abs" in vars(module) and random.random() < 0.5:
        del module.abs
    else:
        module.abs = framework.one(random)


def _change_own_module(module, n, random, framework):
    own = sys.modules[f"{module.__name__}_own{n}"] = vars(module)[f"own{n}"] = types.ModuleType(f"{module.__name__}_own{n}")
    own.act, own.scale = framework.one(random), framework.number(random)


def _change_attribute_of_module(module, n, random, framework):
    if f"own{n}" not in vars(module):
        _change_own_module(module, n, random, framework)
    own = vars(module)[f"own{n}"]
    own.act, own.scale = framework.one(random), framework.number(random)


def _change_cells(module, n, random, framework):
    function = vars(module)[f"f{n}"]
    cells = dict(zip(function.__code__.co_freevars, function.__closure__))
    cells["act"].cell_contents, cells["scale"].cell_contents = framework.one(random), framework.number(random)


def _change_defaults(module, n, random, framework):
    function = vars(module)[f"f{n}"]
    function.__defaults__ = (framework.one(random), *function.__defaults__[1:])
    function.__kwdefaults__ = {"scale": framework.number(random)}


def _change_attributes(module, n, random, framework):
    vars(module)[f"f{n}"].act = framework.one(random)
    vars(module)[f"f{n}"].scale = framework.number(random)


def _change_partial(module, n, random, framework):
    vars(module)[f"p{n}"] = functools.partial(random.choice(TWOS), framework.number(random))


def _change_attribute_of_partial(module, n, random, framework):
    vars(module)[f"p{n}"].act = framework.one(random)


def _change_list(module, n, random, framework):
    vars(module)[f"l{n}"][random.randrange(2)] = framework.one(random)


def _change_code(module, n, random, framework):
    vars(module)[f"f{n}"].__code__ = random.choice([lambda x: x * 2, lambda x: x / 2, lambda x: 1 - x]).__code__


def _change_library(module, n, random, framework):
    framework.module.drawn_by_a_test = framework.one(random)


def _change_type(module, n, random, framework):
    vars(module)[f"t{n}"] = random.choice([int, float])


READS = {
    "function": Read("", "g#(x)", _bind("g#", _draw_one)),
    "operator": Read("", "g#(x, 0.5)", _bind("g#", lambda random, _: random.choice(TWOS))),
    "number": Read("", "x * g#", _bind("g#", _draw_number)),
    "sign": Read("", "x + math.copysign(0.5, g#)", _bind("g#", lambda random, _: random.choice([0.0, -0.0, 2.5, -1.5]))),
    "asked number": Read("", "x + round(g#) + len(f'{g#}')", _bind("g#", lambda random, _: random.choice([0.0, 2.5, -1.5, 3, 7]))),
    "flag": Read("", "x + (1 if g# else 2)", _bind("g#", lambda random, _: random.choice([True, False, None, "a"]))),
    "type": Read("", "x + t#(1.75) / 2 + isinstance(2, t#)", _change_type),
    "named": Read("", "g#.left(x) * g#.right", _bind("g#", lambda r, framework: Pair(framework.one(r), framework.number(r)))),
    "builtin": Read("", "abs(x)", _shadow),
    "module": Read("", "own#.act(x) * own#.scale", _change_own_module),
    "attribute of module": Read("", "own#.act(x) * own#.scale", _change_attribute_of_module),
    "attribute of library": Read("", "library.drawn_by_a_test(x)", _change_library),
    "import": Read(
        "def f#(x):\n    import math\n    from NAME_own# import act, scale as times\n    return act(x) * times + math.pi / 4",
        "f#(x)", _change_attribute_of_module,
    ),
    "closure": Read("def make#(act, scale):\n    return lambda x: act(x) * scale\nf# = make#(None, 1)", "f#(x)", _change_cells),
    "defaults": Read("def f#(x, act=None, b=1, *, scale=1):\n    return act(x) * scale + b", "f#(x)", _change_defaults),
    "attributes": Read("def f#(x):\n    return f#.act(x) * f#.scale", "f#(x)", _change_attributes),
    "partial": Read("", "p#(x)", _change_partial),
    "attribute of partial": Read("p# = functools.partial(max, 1)", "p#.act(x) * p#(0.5)", _change_attribute_of_partial),
    "list": Read("l# = [library.sin, library.cos]", "l#[0](x) - l#[1](x)", _change_list),
    "code": Read("def f#(x): return x", "f#(x)", _change_code),
    "deep": Read("def f#(x): return [y for y in [g#(x)]][0]\ndef e#(x): return f#(x) + 1", "e#(x)", _bind("g#", _draw_one)),
    "conversion": Read("", None, _bind("g#", lambda random, framework: random.choice(framework.types))),
}  # fmt: skip


def make_module(what):
    """An empty module of a name that no other one has."""
    name = f"changing_{what}_{next(_count)}"
    module = sys.modules[name] = types.ModuleType(name)
    return module


class Changing:
    """A module `module` with a function that is drawn; of a framework without types none converts."""

    def __init__(self, random, framework, kinds=None):
        self._random, self._framework = random, framework
        kinds = kinds or random.sample(framework.list_kinds(), 3)
        self.module = make_module("functions")
        vars(self.module).update(math=math, functools=functools, library=framework.module)
        self.kinds, lines = kinds, ["def score(s, b, h, q, k):", "    x = s"]
        for n, kind in enumerate(kinds):
            read = READS[kind]
            value = read.value or framework.convert.replace("$", "g#")
            lines.append("    x = " + value.replace("#", str(n)))
            exec(read.text.replace("#", str(n)).replace("NAME", self.module.__name__), vars(self.module))
            self._change(n)
        exec("\n".join([*lines, "    return x"]), vars(self.module))

    def _change(self, n):
        READS[self.kinds[n]].change(self.module, str(n), self._random, self._framework)

    def change(self):
        """Binds something anew. Returns what kind of thing."""
        n = self._random.randrange(len(self.kinds))
        self._change(n)
        return self.kinds[n]
