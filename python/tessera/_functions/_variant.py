"""Attention whose scores and masks are Python functions: sources that import `attention.tile`."""

from __future__ import annotations

import json
import operator
import types
from collections.abc import Callable, Mapping, Sequence

from .._compiler import _choices, _compile, _explain
from .._compiler._program import Program, find_fact
from .._core import _library, _typing
from .._core._compare import Comparison
from .._core._errors import CompileError
from .._core._kernel import Kernel
from . import _facts, _mask_parts, _trace, _tracing

# What a source of a variant begins with: its template.
_HEAD = '$import "{}.tile"\n\n'
# The flag of code with **arguments: inspect.CO_VARKEYWORDS.
_VARKEYWORDS = 0x08
_PLACE = (("b", "i32"), ("h", "i32"), ("q", "i32"), ("k", "i32"))


# What a source says whose blocks are a list, and one whose lists are arguments.
_LISTED = 'param VISITS : name = "list"\n'
_KEPT = "param KEPT : bool = true\n"
# One whose mask takes many registers for each pair: a division has ten instructions or more.
_PIECES = "param PIECES : bool = true\n"
# One whose mask is two functions.
_BY_DATA = "param BY_DATA : bool = true\n"
# One whose scores add what depends on the key: products serve as references, with which 8 bits do not speculate.
_UNBIASED = 'param REFERENCE : name = $(BYTES ? "first" : "unbiased")\n'
# The same where the first block is next to the query, or scores are the products: for the narrow range of f16 its scores are the
# better references.
_UNBIASED_WIDE = 'param REFERENCE : name = $(T == f16 || BYTES ? "first" : "unbiased")\n'
# One whose walk begins with the last block.
_BACKWARD = "param BACKWARD : bool = true\n"
# One whose mask compares keys with lengths: nothing of V is read behind the last key that a tile sees.
_FROM_END = 'param ALIGN : name = "end"\n'
# One of gradients of views too; some of them by the factors of rows, and what the derivative of a score depends on.
_LEARNED = "param LEARNED : bool = true\n"
_FACTORS = "param FACTORS : bool = true\n"
_DERIVATIVE = 'param DERIVATIVE : name = "{}"\n'
# One whose rows see a sink.
_SINK = "param SINK : bool = true\n"


def takes_lists(source):
    """Whether the blocks that the mask of a source leaves are a list."""
    return _LISTED in source


def read_lists(source):
    """For what there are lists of the blocks of a source: LISTS of attention_visits.tile; None where there are none."""
    return next((name for name in ("head", "batch", "one") if f'param LISTS : name = "{name}"' in source), None)


def takes_batch(source):
    """Whether the mask of a source takes the batch. One that takes the head alone has lists for each batch nevertheless."""
    facts = _facts.describe(source)
    return any(_facts.B in _facts.get(facts, name)["uses"] for name in ("mask", "mask_by_data"))


def keeps_lists(source):
    """Whether the lists of a source are arguments, as `keep_lists` writes it."""
    return _KEPT in source


def keep_lists(source, **sizes):
    """A source whose lists are arguments of its kernels, in place of what each call makes. Its tiles have the sizes for which
    the lists are, by the names of their parameters."""
    lines = "".join(f"param {name} : int = {size}\n" for name, size in sizes.items())
    return source.replace(_LISTED, _LISTED + _KEPT + lines, 1)


# What a source says whose functions load for tiles: LOADS of attention_score.tile.
_LOADS = 'param LOADS : name = "{}"\n\n'
_KEYED = "param KEYED : bool = true\n\n"


def _join(parts):
    """(text, where Python asks for each line) of functions."""
    lines, places = parts[0] if parts else ([], [])
    for more, more_places in parts[1:]:
        lines, places = [*lines, "", *more], [*places, "", *more_places]
    return "".join(f"{line}\n" for line in lines), places


def _name_kind(kind):
    """What is written for the kind of an argument."""
    return kind.__name__ if isinstance(kind, type) else repr(kind)


class Mask:
    """Which queries see which keys: a function of (b, h, q, k) and of further arguments by name.

    Masks combine by &, | and ~. `arguments` says what the further arguments are: float, int, or the dimensions of a
    view of float32, as ("H",).
    """

    def __init__(
        self, function: Callable[..., _typing.Any], **arguments: type[float] | type[int] | tuple[str | int, ...]
    ) -> None:
        self.function, self.arguments = function, arguments
        self.__name__: str = getattr(function, "__name__", "mask")

    def __call__(
        self, b: _typing.Any, h: _typing.Any, q: _typing.Any, k: _typing.Any, **arguments: _typing.Any
    ) -> _typing.Any:
        return self.function(b, h, q, k, **{name: arguments[name] for name in self.arguments})

    def __repr__(self) -> str:
        arguments = "".join(f", {name}={_name_kind(kind)}" for name, kind in self.arguments.items())
        return f"tessera.Mask({self.__name__}{arguments})"

    def _combine(self, other, name, operation):
        other = other if isinstance(other, Mask) else Mask(other)

        def combined(b, h, q, k, **arguments):
            return operation(self(b, h, q, k, **arguments), other(b, h, q, k, **arguments))

        combined.__name__ = f"{self.__name__}_{name}_{other.__name__}"
        return Mask(combined, **_merge(self.arguments, other.arguments))

    def __and__(self, other: Mask | Callable[..., _typing.Any]) -> Mask:
        return self._combine(other, "and", lambda a, b: a & b)

    def __or__(self, other: Mask | Callable[..., _typing.Any]) -> Mask:
        return self._combine(other, "or", lambda a, b: a | b)

    def __invert__(self) -> Mask:
        def opposite(b, h, q, k, **arguments):
            return ~self(b, h, q, k, **arguments)

        opposite.__name__ = f"not_{self.__name__}"
        return Mask(opposite, **self.arguments)


def _merge(*all_arguments):
    merged = {}
    for arguments in all_arguments:
        for name, kind in arguments.items():
            if merged.setdefault(name, kind) != kind:
                raise ValueError(f"the argument '{name}' is {merged[name]} in one function and {kind} in another; "
                                 "choose another name")  # fmt: skip
    return merged


def _check_arguments(arguments):
    for name, kind in arguments.items():
        dims = kind if isinstance(kind, (tuple, list)) else ()
        if kind not in (float, int) and not (dims and all(isinstance(dim, (str, int)) for dim in dims)):
            raise TypeError(f"the argument '{name}' is {kind!r}; it is float, int, or the dimensions of a view, as ('H',)")


# What a source of gradients ends with: the gradients of views that a function asks for (attention_score.tile). Those of the scores
# of a query sum to 0 over its keys, but for a gradient of LSE and a sink's part; a factor of a row has that of the row's sum.
_SCORE_LEARNER = "argument_gradients(f32, i32, i32, i32, i32, f32)"
_FACTOR_LEARNER = "factor_gradients(f32, i32, i32, i32, i32, f32)"
_SINK_LEARNER = "sink_gradients(i32, i32, f32)"
_LEARNER = """
func.func private @{}
    attributes {{tile.gradient_of = @{}, tile.with_respect_to = [{}]}}
"""
_SCORE_LEARNERS = """
$if DLSE || SINK
func.func private @{0}
    attributes {{tile.gradient_of = @{1}, tile.with_respect_to = [{2}]}}
$else
func.func private @{0}
    attributes {{tile.gradient_of = @{1}, tile.with_respect_to = [{2}], tile.zero_sum_over = 4 : i64}}
$end
"""


def _read_function(source, name):
    """The text of one function of a source; empty where it has none of this name."""
    return source.partition(f"func.func @{name}(")[2].partition("\n}")[0]


def _describe_visits(source, *kernel):
    """What the compiler finds of the blocks that a mask leaves, in a kernel of the source or its only entry (`Program.visits`)."""
    try:
        return json.loads(find_fact("visits", source, [*kernel], lambda: Program(source, *kernel).visits))
    except CompileError:
        return {"loose": "", "end_moves": False, "work": ""}  # Whoever asks for the kernel gets the error.


def _name_lists(facts):
    """Of which indices a mask is a function: LISTS of attention_visits.tile."""
    uses = _facts.get(facts, "mask")["uses"]
    return "head" if _facts.H in uses else "batch" if _facts.B in uses else "one"


def _describe_lists(facts, mask, parts, lists):
    """The settings of a source whose blocks are a list, by what is known of its functions, the lines of its mask, its parts
    (`_mask_parts.split`) and LISTS."""
    settings = f'{_LISTED}param LISTS : name = "{lists}"\n'
    if _facts.get(facts, "mask")["divides"]:
        settings += _PIECES
    if parts is not None:
        settings += _BY_DATA
    by_place = mask if parts is None else parts[0][0] if len(parts) > 1 else []
    text = _HEAD.format("attention") + "".join(f"{line}\n" for line in by_place)
    return settings + (_describe_trend(text) if by_place else "")


def _describe_trend(source):
    """The setting that says which queries of a source see more keys, where the compiler finds that."""
    trend = _describe_visits(source)["work"]
    return f'param TREND : name = "{trend}"\n' if trend else ""


def _with_lists(head, source):
    """A source of gradients that begins with `head`, and says which queries see more keys. Comparisons with what is loaded for each
    query bound the keys of a query, and not the queries of a key: where these take all blocks, they are a list."""
    rest = source.removeprefix(_HEAD.format("attention"))
    body = _read_function(source, "mask")
    loads = "tile.load" in body and not takes_lists(source)
    text = _HEAD.format("attention_gradients") + rest
    if not loads or not _describe_visits(text, "attention_bwd_gradients")["loose"]:
        return head + ("" if takes_lists(source) or not body else _describe_trend(source)) + rest
    mask = f"func.func @mask({body}\n}}".split("\n")
    parts = _mask_parts.split(mask, [""] * len(mask))
    functions, _ = _join(parts)
    facts = _facts.describe(source)
    return head + _describe_lists(facts, mask, parts, _name_lists(facts)) + "\n" + rest.replace("\n".join(mask) + "\n", functions, 1)


def _write_learned(facts, learned, of_factor):
    parts = []
    for text, learner, function in (
        (_SCORE_LEARNERS, _SCORE_LEARNER, "score"), (_LEARNER, _FACTOR_LEARNER, "score"), (_LEARNER, _SINK_LEARNER, "sink"),
    ):  # fmt: skip
        loaded = _facts.list_loaded(facts, function)
        names = [name for name in learned if name in loaded]
        if function == "score":
            names = [name for name in names if (name in of_factor) == (learner == _FACTOR_LEARNER)]
        if names:
            parts.append(text.format(learner, function, ", ".join(f'"{name}"' for name in names)))
    return "".join(parts)


def to_gradients(source, fixed, learned=()):
    """The source of the gradients of a variant's source, as `Variant.write_gradients` says."""
    facts = _facts.describe(source)
    if fixed:
        return _with_lists(_HEAD.format("attention_gradients_fixed"), source) + _write_learned(facts, learned, ())
    derivative, alone = _facts.read_derivative(facts)
    of_factor = [name for name in learned if name in alone]
    head = _HEAD.format("attention_gradients") + _DERIVATIVE.format(derivative)
    if of_factor:
        head += _FACTORS
    if len(of_factor) < len(learned):
        head += _LEARNED
    return _with_lists(head, source) + _write_learned(facts, learned, of_factor)


def _takes(function, name):
    """Whether a function takes an argument by name."""
    if isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__
        takes_any = code.co_flags & _VARKEYWORDS
        return bool(takes_any) or name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    import inspect  # Of all that the package imports it would take the longest.

    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


class Variant:
    """Attention with a function of its scores, a mask, a sink, or several of them.

        variant = tessera.Variant(score=lambda s, b, h, q, k, cap: cap * tessera.tanh(s / cap),
                                  mask=tessera.masks.causal, cap=float)
        kernel = variant.compile(D=128)
        kernel(q, k, v, o, lse, scale=0.088, cap=30.0)

    score:     a function of (score, b, h, q, k): the scaled product of query q and key k, and its place.
    mask:      a function of (b, h, q, k), or a Mask: whether query q sees key k.
    sink:      a function of (b, h): the score of a key more that every query sees, with the value 0. LSE has it in it.
    arguments: what functions take further, by name: float, int, or the dimensions of a view of float32, as ("H",).
               The kernel gets them after its own. Numbers that a function finds elsewhere are constants.

    visits:    how the blocks of keys are found in which the mask leaves something: "interval", from the first to the last
               that its comparisons leave, also those with what is loaded for each query, or "list", by a kernel that
               computes the mask first. Unless it is given, a mask whose comparisons do not say it all takes a list
               (attention_visits.tile).

    Functions are traced: they compute with operators, comparisons, `abs`, and the functions of this package. Raises
    TraceError, with the line, for anything else.
    """

    def __init__(
        self,
        score: Callable[..., _typing.Any] | None = None,
        mask: Mask | Callable[..., _typing.Any] | None = None,
        visits: _typing.Literal["interval", "list"] | None = None,
        sink: Callable[..., _typing.Any] | None = None,
        **arguments: type[float] | type[int] | tuple[str | int, ...],
    ) -> None:
        for name, kind in arguments.items():
            if callable(kind) and not isinstance(kind, type):
                raise TypeError(f"a variant takes functions as score, mask and sink; '{name}' is none of these, and arguments of "
                                "functions are float, int, or the dimensions of a view, as ('H',)")  # fmt: skip
        for name, function in (("score", score), ("mask", mask), ("sink", sink)):
            if not (function is None or callable(function) or isinstance(function, Mask)):
                raise TypeError(f"the {name} is a {type(function).__name__}; it is a function")
        if score is None and mask is None and sink is None and visits != "list":
            raise ValueError("a variant has a score, a mask or a sink")
        if visits not in (None, "interval", "list"):
            raise ValueError(f"visits is {visits!r}; it is 'interval', 'list' or None")
        self.score, self.mask, self.sink, self._picture = score, mask, sink, None
        self.arguments = _merge(arguments, mask.arguments if isinstance(mask, Mask) else {})
        _check_arguments(self.arguments)
        parts = self._trace_functions()
        self._traced = [lines for lines, _ in parts]
        of_mask = parts[0][0] if self.mask is not None else []
        functions, places = _join(parts)
        self._facts, settings = _facts.describe(_HEAD.format("attention") + functions), ""
        learnable = [name for function in ("score", "sink") for name in _facts.list_loaded(self._facts, function)]
        #: The names of views with whose elements the score or the sink computes, so that they may have gradients.
        self.learnable: tuple[str, ...] = tuple(dict.fromkeys(learnable))
        is_list, begins_last = self._find_visits(visits, functions)
        if is_list:
            masks = None if mask is None else _mask_parts.split(*parts[0])
            if masks is not None:
                functions, places = _join([*masks, *parts[1:]])
            settings = _describe_lists(self._facts, of_mask, masks, self._name_lists()) + "\n"
        elif loads := _facts.name_loads(self._facts):
            settings = _LOADS.format(loads)
        elif _facts.loads_by_key(_facts.get(self._facts, "score")):
            settings = _KEYED
        if score is None and mask is not None:
            # A row may see few keys of the first block, or none, and those that it does not see are references as good.
            settings = _UNBIASED_WIDE + (settings or "\n")
        elif score is not None and _facts.adds_by_key(_facts.get(self._facts, "score")):
            reference = _UNBIASED_WIDE if is_list or begins_last else _UNBIASED
            settings = reference + (_BACKWARD if begins_last else "") + (settings or "\n")
        if not takes_lists(settings) and _facts.takes_lengths(_facts.get(self._facts, "mask")):
            settings = _FROM_END + (settings or "\n")
        if sink is not None:
            settings = _SINK + (settings or "\n")
        #: The text of the source, for `compile` and for a file.
        self.source: str = _HEAD.format("attention") + settings + functions
        if _BY_DATA not in settings:
            _facts.know(self.source, self._facts)
        self._places = [""] * (2 + settings.count("\n")) + places

    def __repr__(self) -> str:
        given = {"score": self.score, "mask": self.mask, "sink": self.sink}
        parts = [f"{name}={getattr(function, '__name__', function)}" for name, function in given.items() if function is not None]
        return f"tessera.Variant({', '.join(parts + [f'{name}={_name_kind(kind)}' for name, kind in self.arguments.items()])})"

    def _arguments_of(self, function):
        if isinstance(function, Mask):
            return function.arguments
        return {name: kind for name, kind in self.arguments.items() if _takes(function, name)}

    def _trace_functions(self):
        """(lines, where Python asks for each) of each function, the mask first."""
        parts = []
        if self.mask is not None:
            parts.append(_tracing.trace("mask", self.mask, _PLACE, "i1", self._arguments_of(self.mask)))
        if self.score is not None:
            parameters = (("s", "f32"), *_PLACE)
            parts.append(_tracing.trace("score", self.score, parameters, "f32", self._arguments_of(self.score)))
        if self.sink is not None:
            parts.append(_tracing.trace("sink", self.sink, _PLACE[:2], "f32", self._arguments_of(self.sink)))
        return parts

    def _find_visits(self, visits, functions):
        """(whether the blocks of keys are a list, whether the walk over an interval of them begins with the last one)."""
        if visits == "list" or self.mask is None:
            return visits == "list", False
        found = _describe_visits(_HEAD.format("attention") + functions)
        is_list = visits is None and found["loose"] != ""
        return is_list, found["end_moves"] and not is_list

    def _name_lists(self):
        """Of which indices there are lists: LISTS of attention_visits.tile."""
        return _name_lists(self._facts)

    def check(self) -> None:
        """Raises TraceError, with the line of Python, for what the compiler refuses whatever the parameters are."""
        def find():
            self.program()
            return ""

        try:
            find_fact("check", self.source, [], find)
        except CompileError as error:
            first = next((entry for entry in error.diagnostics if entry.severity == "error"), None)
            if first is None or first.file != "<source>":
                raise
            raise _trace.TraceError(f"{self._places[first.line - 1]}{first.message}") from None

    def sort_arguments(
        self, given: Mapping[str, _typing.Any]
    ) -> tuple[dict[str, _typing.Any], dict[str, float], dict[str, int]]:
        """(views, numbers, integers) by name, of what is given for the further arguments. Raises TypeError."""
        for name in (*given, *self.arguments):
            if name not in given or name not in self.arguments:
                known = ", ".join(self.arguments) or "nothing"
                raise TypeError(f"the variant takes {known} in `arguments`; '{name}' is missing or unknown")
        parts = {float: {}, int: {}, None: {}}
        for name, kind in self.arguments.items():
            parts[kind if kind in (float, int) else None][name] = given[name]
        return parts[None], parts[float], parts[int]

    def asks_for(self, name: str) -> bool:
        """Whether the kernel takes an argument of a name."""
        return f'tile.argument "{name}"' in self.source

    def compile(self, **options: _typing.Any) -> Kernel:
        """The kernel; options are those of `compile`: parameters of attention.tile, schedules and so on."""
        return _compile.compile(self.source, **options)

    def program(self, **parameters: object) -> Program:
        """The kernel on the CPU."""
        return Program(self.source, **parameters)

    def compare(
        self,
        function: Callable[..., _typing.Any],
        shapes: Mapping[str, int] | Sequence[Mapping[str, int]],
        *,
        parameters: Mapping[str, object] | None = None,
        **given: _typing.Any,
    ) -> list[Comparison]:
        """Compares the kernel on the CPU, of these parameters, with a function of numpy: `Program.compare`."""
        return self.program(**(parameters or {})).compare(function, shapes, **given)

    def write_gradients(self, fixed: bool = False, learned: Sequence[str] = ()) -> str:
        """The text of the source of the gradients, whose derivative of the score the compiler finds.

        fixed:   the same results in each run, for head dimensions to 256. Otherwise dQ is a sum over blocks in any order, for
                 head dimensions to 128 and scores whose derivative leaves enough registers.
        learned: names of views of the score and of the sink that have gradients too. That of "slopes" is added to the
                 argument "dslopes", of the same shape, in any order also with `fixed`. Only views whose elements change
                 these have one.
        """
        for name in learned:
            if name not in self.learnable:
                known = ", ".join(self.learnable) or "nothing"
                raise ValueError(
                    f"'{name}' in `learned` is no view with whose elements the score or the sink computes; it has {known}"
                )
        return to_gradients(self.source, fixed, learned)

    def compile_gradients(self, fixed: bool = False, learned: Sequence[str] = (), **options: _typing.Any) -> Kernel:
        """The kernels of the gradients: of (q, k, v, o, do, lse, dq, dk, dv, scale) and the variant's arguments by name, with
        `DLSE=True` of (q, k, v, o, do, lse, dlse, dq, dk, dv, scale). Raises what `compile` raises."""
        return _compile.compile(self.write_gradients(fixed, learned), **options)

    def gradients_program(self, fixed: bool = False, learned: Sequence[str] = (), **parameters: object) -> Program:
        """The kernels of the gradients on the CPU."""
        return Program(self.write_gradients(fixed, learned), **parameters)

    def explain(self, **options: _typing.Any) -> str:
        """What the compiler found: how elements are loaded, which blocks are visited, which need the mask, whether the kernel
        speculates or why it does not. For how many tiles of an input that holds, `find_fallbacks` says."""
        remarks = []
        _compile.compile(self.source, image="ptx", cache=False, on_diagnostic=remarks.append, **options)
        lines = [str(remark) for remark in remarks if remark.severity == "remark"]
        if any(": speculates: " in line for line in lines):
            lines.append("find_fallbacks(q, k, v, scale, ...) says for which tiles of an input speculation does not hold")
        return "\n".join(lines)

    def find_fallbacks(
        self, q: _typing.Any, k: _typing.Any, v: _typing.Any, scale: float, **given: _typing.Any
    ) -> _typing.Any:
        """Which tiles of queries the online softmax computes, as speculation does not hold for them: 1 or 0 for each tile, a tensor
        [B, H, TILES]. Takes tensors of torch, in 16 bits, and the variant's arguments by name. Those of a GPU run there, by a kernel
        that is compiled for it, and others are interpreted."""
        import torch

        sizes = {"D": q.shape[-1], "DV": v.shape[-1]}
        widths = {name: self._find_width(name, size) for name, size in sizes.items()}
        parameters = {**widths, "T": _library.TORCH_TYPES[str(q.dtype)], "PADDED": widths != sizes, "FALLBACKS": True}
        program = self.program(**parameters)
        tiles = -(-q.shape[2] // program.parameters["BM"])
        o, lse = q.new_empty((*q.shape[:3], v.shape[-1])), q.new_empty(q.shape[:3], dtype=torch.float32)
        fallbacks = q.new_zeros((*q.shape[:2], tiles), dtype=torch.int32)
        kernel = self.compile(**parameters) if q.is_cuda else program
        kernel(q, k, v, o, lse, scale=scale, fallbacks=fallbacks, **given)
        return fallbacks

    def _find_width(self, name, size):
        """That of tiles for a head dimension."""
        allowed = sorted(_choices.list_allowed(self.source, name))
        width = next((width for width in allowed if size <= width), None)
        if width is None:
            raise ValueError(f"a head dimension of {size} is more than kernels take, {allowed[-1]}")
        return width

    def explain_html(self, **options: _typing.Any) -> str:
        """A page that shows it, with a picture of the blocks that are visited; options are those of `tessera.explain`."""
        return _explain.explain(self.source, **options)

    def _repr_html_(self):
        """For notebooks: the source, and which blocks its mask leaves."""
        import html

        picture = ""
        if self.mask is not None:
            if self._picture is None:
                self._picture = _explain.draw_masks(self.source)
            picture = self._picture
        return f"<pre>{html.escape(self.source)}</pre>{picture}"

    def reference(
        self, q: _typing.Any, k: _typing.Any, v: _typing.Any, scale: float, **given: _typing.Any
    ) -> tuple[_typing.Any, _typing.Any]:
        """(o, lse) by definition, in the precision of numpy's float64, of arrays [B, H, S, D]. Raises TraceError where the functions
        say something else than when the variant was made, of which its source is."""
        import numpy

        if [lines for lines, _ in self._trace_functions()] != self._traced:
            raise _trace.TraceError("the functions say something else than when the variant was made: make another one")

        q, k, v = (numpy.asarray(x, dtype=numpy.float64) for x in (q, k, v))
        group = q.shape[1] // k.shape[1]
        k, v = numpy.repeat(k, group, axis=1), numpy.repeat(v, group, axis=1)
        (batch, heads, queries, _), keys = q.shape, k.shape[2]
        place = numpy.ogrid[:batch, :heads, :queries, :keys]
        extents = {"B": batch, "H": heads, "SQ": queries, "SK": keys}
        scores = numpy.einsum("bhqd,bhkd->bhqk", q, k) * scale

        def apply(function, *values):
            # Integers of Python, which do not wrap, as those that a kernel compares.
            kinds = self._arguments_of(function)
            arguments = {name: operator.index(given[name]) if kind is int else given[name] for name, kind in kinds.items()}
            return _tracing.evaluate(function, values, arguments, extents)

        if self.score is not None:
            scores = apply(self.score, scores, *place)
        if self.mask is not None:
            scores = numpy.where(apply(self.mask, *place), scores, -numpy.inf)
        sinks = -numpy.inf
        if self.sink is not None:
            sinks = numpy.asarray(apply(self.sink, *(index[..., :1, :1] for index in place[:2])), dtype=numpy.float64)
        highest = numpy.maximum(scores.max(axis=-1, keepdims=True), sinks)
        shift = numpy.where(numpy.isinf(highest), 0, highest)
        weights = numpy.exp(scores - shift)
        total = weights.sum(axis=-1, keepdims=True) + numpy.exp(sinks - shift)
        with numpy.errstate(divide="ignore"):
            lse = (shift + numpy.log(total))[..., 0]
        return numpy.einsum("bhqk,bhkd->bhqd", weights / numpy.where(total == 0, 1, total), v), lse


class ListedVariant(Variant):
    """One that takes lists of blocks whatever its mask, or without one: `indices` has those of "b" and "h" that they depend on,
    beside what the mask takes."""

    def __init__(self, indices: str, functions: Mapping[str, _typing.Any]) -> None:
        self._indices = indices
        super().__init__(visits="list", **functions)

    def _name_lists(self):
        if "h" in self._indices:
            return "head"
        of_mask = super()._name_lists()
        return "batch" if "b" in self._indices and of_mask == "one" else of_mask
