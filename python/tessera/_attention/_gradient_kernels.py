"""Which kernels compute the gradients of an attention: forms by widths, masks, groups of heads, order of sums and length."""

import functools
import re
import warnings

from .._compiler import _choices, _compile, _frontend
from .._compiler._program import Program, find_fact
from .._core import _library
from .._core._errors import CompileError, raise_problem
from .._functions import _names
from .._functions._variant import keeps_lists, to_gradients
from . import _variants

#: What `find_group` finds.
GROUPS = (1, 2, 4, 8)


def find_group(heads, kv_heads):
    """How many query heads share a key head, as far as kernels depend on it: one of `GROUPS`, that which is not exceeded, the
    last one for more."""
    group = heads // kv_heads if kv_heads else 1
    return next((size for size in GROUPS if group <= size), GROUPS[-1])


def find_sizes(batch, heads, rows, d, kv_heads, keys, dv):
    """What the form of gradients depends on of a call: (D, DV, group, extents), as `describe_gradients` has these."""
    extents = ("B", batch), ("H", heads), ("HK", kv_heads), ("SK", keys), ("SQ", rows)
    return d, dv, find_group(heads, kv_heads), extents


def _find_least_group(source, parameters, group):
    """The smallest of `GROUPS` for which a source has the kernel that it has for `group`: of those that are the same there is one.
    Kernels are the same whose other parameters are, and what rules choose of their schedules."""

    def describe(size):
        chosen = _choices.choose(source, {**parameters, "GROUP": size})
        schedules = {name: choice["value"] for name, choice in chosen["schedules"].items()}
        return {**_choices.read_values(chosen), "GROUP": None}, schedules

    def find():
        wanted = describe(group)
        return str(next(size for size in GROUPS if describe(size) == wanted))

    return int(find_fact("least group", source, {**_frontend.to_texts(parameters), "GROUP": str(group)}, find))


def describe_gradients(text, element_type, d, dv, lse=False, fixed=False, group=1, extents=None, card=None):
    """(source, arguments of `compile`, names of arguments after the scale) of the gradients of a variant, for tensors of head
    dimensions d and dv.

    lse:   with the gradient of the LSE.
    fixed: the same results in each run. Otherwise dQ is a sum over blocks in any order, but where registers forbid it.
    group: for so many query heads a key head, as `find_group` has it; others are right for these too.
    extents: for calls with these, (name, extent) of each dimension; others are right for these too.
    card: the GPU, None for any.
    """
    name, *fields = text.split()
    if name not in ("attention_fwd", "attention_variants"):
        raise ValueError(f"there are no gradients of '{name}'; there are of attention_fwd, attention_variants and sources")
    fields = dict(field.split("=", 1) for field in fields)
    widths = _variants.describe_widths(d, dv)
    parameters = {**fields, **widths, "T": element_type, "DLSE": lse}
    if name == "attention_fwd":
        source, extras, unordered = _library.find_source("attention_bwd"), [], parameters
        parameters = {**parameters, "FIXED": fixed}
    else:
        source = _library.find_source("attention_variants_bwd" + ("_fixed" if fixed else ""))
        extras, unordered = _variants.list_extras_of(fields), parameters
    chosen = _choices.choose(source, parameters, extents or (), card)
    if form := _choices.find_form(chosen):
        return form, unordered, []
    is_causal = "true" == fields.get("CAUSAL") or fields.get("MASK") == "causal"
    # attention_gradients_fixed.tile adds nothing up over blocks.
    sums = name == "attention_fwd" or not fixed
    least = _find_least_group(source, parameters, group) if group > 1 and is_causal and sums else 1
    if least > 1:
        parameters["GROUP"] = least
    return source, {**parameters, **_choices.choose_for_extents(source, parameters, extents, card)}, extras


# How texts name gradients, by whether they are the same in each run, and what is learned.
_GRADIENTS = {False: "gradients", True: "deterministic gradients"}
_GRADIENTS_OF = re.compile(r"((?:deterministic )?gradients)(?: by (\S+))? of ")


def name_gradients(text, fixed, learned=()):
    """The text for the gradients of a variant, and of the views that are learned."""
    by = f" by {','.join(learned)}" if learned else ""
    return f"{_GRADIENTS[fixed]}{by} of {text}"


def read_gradients(text):
    """(text of the variant, `fixed`, `learned`) of what `name_gradients` gives, None for other texts."""
    named = _GRADIENTS_OF.match(text)
    if named is None:
        return None
    return text[named.end() :], named[1] == _GRADIENTS[True], _names.read_list(named[2] or "")


@functools.lru_cache(maxsize=None)
def _make(kind, source, arguments):
    return kind(source, **_list_arguments(kind, arguments))


def _list_arguments(kind, arguments):
    """Of pairs; the interpreter's form has no schedule."""
    return {name: value for name, value in arguments if name != "schedule" or kind is not Program}


@functools.lru_cache(maxsize=4096)
def find_gradients(kind, text, fixed, element_type, sizes, lse, learned=()):
    """(kernels, or the interpreter's form, by `kind`; names of arguments after the scale) as `describe_gradients` has it,
    of functions of scores and masks too, with the gradients of the views that `learned` names. `sizes` are (D, DV,
    heads a key head, extents) as `find_sizes` has them."""
    d, dv, group, extents = sizes
    if _variants.is_source(text):
        by_extents = choose_of_source(kind, text, learned, fixed, element_type, sizes, lse)
        return find_gradients_of_source(kind, text, learned, fixed, element_type, d, dv, lse, by_extents), []
    source, parameters, extras = describe_gradients(
        text, element_type, d, dv, lse, fixed, group, extents, _choices.find_card(kind)
    )
    try:
        return _make(kind, source, tuple(parameters.items())), extras
    except CompileError:
        # Where nothing may be compiled, what is there does.
        if extents is None or _frontend.may_compile():
            raise
        return find_gradients(kind, text, fixed, element_type, (d, dv, group, None), lse)


def choose_of_source(kind, source, learned, fixed, element_type, sizes, lse):
    """What rules choose for a call's extents in the gradients of a variant's source, pairs of `choose_for_extents`; `sizes` as of
    `find_gradients`."""
    d, dv, _, extents = sizes
    if fixed or extents is None or (keeps_lists(source) and has_fixed_lists(source)):
        return ()
    parameters = {**_variants.describe_widths(d, dv), "T": element_type, "DLSE": lse}
    text = to_gradients(source, False, learned)
    return tuple(_choices.choose_for_extents(text, parameters, extents, _choices.find_card(kind)).items())


@functools.lru_cache(maxsize=None)
def find_gradients_of_source(kind, source, learned, fixed, element_type, d, dv, lse, by_extents=()):
    """The kernels of the gradients of a variant's source, and of the views that `learned` names, or the interpreter's form:
    where results are to be the same in each run, or the faster form does not compile, attention_gradients_fixed.tile.
    by_extents: of `choose_of_source`."""
    parameters = {**_variants.describe_widths(d, dv), "T": element_type, "DLSE": lse}
    if by_extents:
        try:
            return _make_of_source(kind, source, learned, fixed, parameters, by_extents)
        except CompileError:
            # Where nothing may be compiled, what is there does.
            if _frontend.may_compile():
                raise
    return _make_of_source(kind, source, learned, fixed, parameters)


def _make_of_source(kind, source, learned, fixed, parameters, by_extents=()):
    own = {**parameters, **_list_arguments(kind, by_extents)}
    if keeps_lists(source):
        return kind(to_gradients(source, has_fixed_lists(source), learned), "attention_gradients", **own)
    if fixed:
        return kind(to_gradients(source, True, learned), **parameters)
    try:
        return kind(to_gradients(source, False, learned), **own)
    except CompileError as error:
        # What is wrong with the functions themselves, the other form refuses too.
        kernel = kind(to_gradients(source, True, learned), **parameters)
        warnings.warn(f"gradients take attention_gradients_fixed.tile, with more products: {error}", RuntimeWarning)
        return kernel


def _list_labels(names):
    """What users call views, without the index that makes each name differ from others."""
    return ", ".join(f"'{_names.find_label(name)}'" for name in names)


@functools.lru_cache(maxsize=256)
def find_gradient_problem(source, learned):
    """Why the functions of a source have no gradients by the score and by the views that `learned` names, and what to do;
    empty where they have."""

    def find_error(names):
        text = to_gradients(source, False, names)

        def find():
            try:
                Program(text)
            except CompileError as error:
                return str(error).splitlines()[0]
            return ""

        return find_fact("gradients", text, [], find)

    error = find_error(learned)
    if not error:
        return ""
    own = find_error(())
    if own:
        return f"the score has no gradient: {own}; detach query, key and value, and what the functions take"
    guilty = [name for name in learned if find_error((name,))] or learned
    return f"{_list_labels(guilty)} can have no gradient: {find_error(tuple(guilty))}; detach {_list_labels(guilty)}"


@functools.lru_cache(maxsize=None)
def list_gradients_of_source(kind, source, learned, *given):
    """The kernels that `find_gradients_of_source` finds: one, or where none has the registers for the gradients by all that is
    learned, one for each of these views, which make those of Q, K and V too."""
    try:
        return (find_gradients_of_source(kind, source, learned, *given),)
    except CompileError as error:
        if not error.lacks_room or len(learned) < 2:
            raise
        reason = str(error).splitlines()[0]
    kernels = tuple(find_gradients_of_source(kind, source, (name,), *given) for name in learned)
    warnings.warn(f"gradients of {_list_labels(learned)} take a kernel each: {reason}", RuntimeWarning)
    return kernels


@functools.lru_cache(maxsize=256)
def find_room_problem(source, learned, fixed, element_type, d, dv):
    """Why no kernels have the registers for the gradients by the views that `learned` names, and what to do; empty where some
    have. They are compiled for that, as the backward pass would."""
    try:
        list_gradients_of_source(_compile.compile, source, learned, fixed, element_type, d, dv, False)
    except CompileError as error:
        if not error.lacks_room:
            return ""  # The backward pass says it.
        reason = str(error).splitlines()[0]
        each = "" if len(learned) == 1 else "one of "
        return f"gradients of {each}{_list_labels(learned)} take more registers than there are: {reason}; detach what has many numbers"
    return ""


def has_fixed_lists(source):
    """Whether the lists that a source of `keep_gradients` takes are those of attention_gradients_fixed.tile."""
    return "param GQM :" in source


def warm_up(text, element_type, d, dv, lse, gradients, fixed):
    """Compiles the kernels of a named variant for all shapes; with `gradients` what makes the LSE, and its gradients, which are
    the same in each run if `fixed`."""
    for name, size in (("head_dim", d), ("value_dim", dv)):
        if not isinstance(size, int):
            raise TypeError(f"argument '{name}' is {size!r}; it is an integer")
        raise_problem(_variants.find_head_problem(name, size, (_variants.WIDTHS if gradients else _variants.FORWARD_WIDTHS)[-1]))
    _variants.find_variant(text, element_type, d, dv, lse or gradients).compile_all()
    for group in GROUPS if gradients else ():
        find_gradients(_compile.compile, text, fixed, element_type, (d, dv, group, None), False)
