"""The ops `tessera::variant_forward` and `tessera::variant_backward`: attention with functions of scores and masks. The
functions travel as the text of a source, so that graphs mean the same in another process. Tensors are [B, H, S, D] views."""

import functools
import itertools
import operator
from typing import NamedTuple

import torch
from torch.utils.flop_counter import register_flop_formula

from .._attention import _block_lists, _gradient_kernels, _recipes
from .._compiler import _frontend
from .._functions import _names
from .._functions._names import Names
from .._functions._variant import takes_lists
from . import _backward, _captured, _compute, _direct, _kernels, _native, _op, _vmap
from ._types import TYPES

# What functions take besides a score and its place: views, numbers of f32, and integers. `names` is the text of their names.
_GIVEN = "Tensor[] views, float[] numbers, SymInt[] integers, str names"
_op._library.define(
    f"variant_forward(Tensor q, Tensor k, Tensor v, {_GIVEN}, str source, float scale) -> (Tensor, Tensor)",
    tags=_op._tags,
)
_op._library.define(
    f"variant_backward(Tensor grad, Tensor? grad_lse, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, {_GIVEN}, "
    "str learned, str source, float scale, bool deterministic=False) -> (Tensor, Tensor, Tensor, Tensor[])",
    tags=_op._tags,
)
forward = torch.ops.tessera.variant_forward.default
backward = torch.ops.tessera.variant_backward.default


_are_transforms_active = torch._C._are_functorch_transforms_active


def _run_forward(q, k, v, views, numbers, integers, names, source, scale):
    _op.check(q, k, v, None)
    text = _recipes.write(_recipes.OUTPUT_AND_LSE, _names.read(names), source)
    return tuple(_compute.compute(text, (q, k, v, *views), (scale, *numbers), integers))


def _run_forward_cpu(*arguments):
    _op.check_interpreter("q")
    return _run_forward(*arguments)


def _allocate_learned(views, names, learned):
    """The gradients of the views that are learned, of float32, in their order."""
    given = dict(zip(_names.read(names).views, views))
    return [torch.zeros(given[name].shape, dtype=torch.float32, device=given[name].device) for name in _names.read_list(learned)]


def _run_backward(
    grad, grad_lse, q, k, v, out, lse, views, numbers, integers, names, learned, source, scale, deterministic=False
):  # fmt: skip
    order = _recipes.name_gradients(_direct.find_order(deterministic), _names.read_list(learned))
    text = _recipes.write(order, _names.read(names), source)
    results = _compute.compute(text, (q, k, v, out, grad, lse, grad_lse, *views), (scale, *numbers), integers)
    return (*results[:3], results[3:])


def _run_backward_cpu(*arguments):
    _op.check_interpreter("grad")
    return _run_backward(*arguments)


def _make_fake_forward(q, k, v, *_):
    _op.check(q, k, v, None)
    return tuple(_op.allocate_results(q, v))


def _make_fake_backward(grad, grad_lse, q, k, v, out, lse, views, numbers, integers, names, learned, *_):
    return (*_backward.allocate(q, k, v), _allocate_learned(views, names, learned))


if not _op.has_native:
    _op._library.impl("variant_forward", _run_forward, "CUDA")
    _op._library.impl("variant_backward", _run_backward, "CUDA")
_op._library.impl("variant_forward", _run_forward_cpu, "CPU")
_op._library.impl("variant_backward", _run_backward_cpu, "CPU")
torch.library.register_fake("tessera::variant_forward", _make_fake_forward, lib=_op._library)
torch.library.register_fake("tessera::variant_backward", _make_fake_backward, lib=_op._library)
_vmap.register_functions(_op._library, forward, 3, False, _recipes.unfold)
_vmap.register_functions(_op._library, backward, 7, True, _recipes.unfold)
register_flop_formula(forward.overloadpacket)(_op._count_flops)
register_flop_formula(backward.overloadpacket)(_backward._count_flops)


def _forward(q, k, v, *arguments):
    return _native.call(forward, q, k, v, None, q, k, v, *arguments)


class _Asked(NamedTuple):
    """What calls have in common that differ in tensors and numbers alone."""

    source: str
    #: The names of lists of blocks that kernels take behind the views of functions.
    listed: tuple
    gradient_source: str
    gradient_listed: tuple
    names: Names
    #: The views that have gradients.
    learned: tuple
    deterministic: bool

    @classmethod
    def of(cls, stripped):
        source, listed, gradient_source, gradient_listed, names, *others = stripped
        return cls(source, listed, gradient_source, gradient_listed, Names(*names), *others)

    def strip(self):
        """The same as tuples of no class, which functions of autograd take in graphs."""
        return (*self[:4], tuple(self.names), *self[5:])

    def count_views(self):
        """Views of functions, the same with the lists of attention, and with those of the gradients too."""
        return tuple(itertools.accumulate(map(len, (self.names.views, self.listed, self.gradient_listed))))

    def sort(self, numbers):
        """(scale, numbers, integers) of what a call gives in one tuple."""
        count = 1 + len(self.names.numbers)
        return numbers[0], list(numbers[1:count]), list(numbers[count:])


def _run_forward_op(asked, numbers, q, k, v, *views):
    _, count, _ = asked.count_views()
    scale, *others = asked.sort(numbers)
    names = _names.write(asked.names.add_views(asked.listed))
    return _forward(q, k, v, list(views[:count]), *others, names, asked.source, scale)


def _keep_tensors(asked, q, k, v, out, lse, *views):
    """What the backward pass gets."""
    own, both, _ = asked.count_views()
    return q, k, v, out, lse, *views[:own], *views[both:]


def _run_backward_op(asked, saved, numbers, grad, grad_lse):
    """The gradients of the inputs of a function of autograd: numbers, q, k, v, views and lists."""
    q, k, v, out, lse, *views = saved
    own, _, count = asked.count_views()
    if grad is None:
        grad = torch.zeros_like(out)
    scale, *others = asked.sort(numbers)
    names, learned = _names.write(asked.names.add_views(asked.gradient_listed)), ",".join(asked.learned)
    given = views, *others, names, learned, asked.gradient_source, scale, asked.deterministic
    *gradients, sums = _native.call(backward, q, k, v, None, grad, grad_lse, q, k, v, out, lse, *given)
    gradients = _backward.mark_gradients((*gradients, *sums), grad, q, k, v, *views)
    of_views = dict(zip(asked.learned, gradients[3:]))
    of_views = [
        of_views[name].to(view.dtype) if name in of_views else None
        for name, view in zip(asked.names.views, views)
    ]
    return None, *gradients[:3], *of_views, *(None for _ in range(count - own))


class _Attention(torch.autograd.Function):
    """Output and LSE, also under transforms of torch.func. Views are those of the functions, then lists of blocks for attention,
    then those for the gradients."""

    generate_vmap_rule = True

    @staticmethod
    def forward(asked, numbers, q, k, v, *views):
        return _run_forward_op(_Asked.of(asked), numbers, q, k, v, *views)

    @staticmethod
    def setup_context(ctx, inputs, output):
        asked, ctx.numbers, q, k, v, *views = inputs
        ctx.asked = _Asked.of(asked)
        ctx.save_for_backward(*_keep_tensors(ctx.asked, q, k, v, *output, *views))
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad, grad_lse):
        return None, *_run_backward_op(ctx.asked, ctx.saved_tensors, ctx.numbers, grad, grad_lse)


def _list_kinds(names):
    """What tuples of numbers have, as `_direct.make` has it."""
    return "s" + "f" * len(names.numbers) + "i" * len(names.integers)


@functools.lru_cache(maxsize=None)
def _find_function(source, names):
    """The function of calls past the dispatcher, None where there is none."""
    text = _recipes.write(_recipes.OUTPUT_AND_LSE, names, source)
    return _direct.make(text, 3 + len(names.views), _list_kinds(names)) if _op.has_native else None


def _make_apply(asked, return_lse):
    """Attention that differs in tensors and numbers alone, where nothing sees ops."""
    own, names, learned = asked.names, asked.names.add_views(asked.gradient_listed), asked.learned
    calls = _direct.describe_attention(
        _list_kinds(own), *(3 + views for views in asked.count_views()), return_lse,
        _recipes.write(_recipes.OUTPUT_AND_LSE, own.add_views(asked.listed), asked.source),
        lambda order: _recipes.write(_recipes.name_gradients(order, learned), names, asked.gradient_source),
        tuple(3 + own.views.index(name) for name in learned),
    )  # fmt: skip

    def call_forward(ctx, numbers, q, k, v, *views):
        out, lse = _run_forward_op(asked, numbers, q, k, v, *views)
        ctx.save_for_backward(*_keep_tensors(asked, q, k, v, out, lse, *views))
        ctx.numbers = numbers
        if not return_lse:
            return out
        ctx.set_materialize_grads(False)
        return out, lse

    def call_backward(saved, numbers, grad, grad_lse=None):
        return _run_backward_op(asked, saved, numbers, grad, grad_lse)

    return _direct.make_apply(calls, None, asked.deterministic, call_forward, call_backward)


# Those that were made, without the LSE and with it.
_applies = {}
# Where there are too many no other one is made.
_MOST_APPLIES = 256


def _find_apply(asked, return_lse):
    apply = _applies.get((asked, return_lse))
    if apply is None and len(_applies) < _MOST_APPLIES:
        apply = _applies.setdefault((asked, return_lse), _make_apply(asked, return_lse))
    return apply


def _list_learned(names, views, learnable):
    """The names of the views whose gradients are wanted and exist."""
    return tuple([name for name, view in zip(names.views, views) if name in learnable and _op.require_grad(view)])


def _check_view(name, dims, value, device):
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"argument '{name}' of the variant is a view of dimensions {dims}, got a {type(value).__name__}")
    if value.dtype != torch.float32 or value.dim() != len(dims):
        raise TypeError(
            f"argument '{name}' of the variant is {value.dtype} of shape {tuple(value.shape)}; it is a float32 view of "
            f"dimensions {dims}"
        )
    if value.device != device:
        raise ValueError(f"argument '{name}' of the variant is on {value.device} and 'q' on {device}; they must be equal")


def is_view(tensor, dims, device):
    """Whether `_check_view` says nothing of a tensor, on a device of so many."""
    return tensor.dtype is torch.float32 and tensor.dim() == len(dims) and tensor.get_device() == device


def _read_number(name, value):
    _op.raise_problem(_op.find_number_problem(name, value, f"give the variant a view of one element, `{name}=(1,)`"))
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"argument '{name}' of the variant is {value!r}; it is a number")
    return float(value)


def _read_integer(name, value):
    # Of a SymInt `operator.index` would make a constant.
    if isinstance(value, (int, torch.SymInt)):
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"argument '{name}' of the variant is {value!r}; it is an integer") from None


def read_variant(q, variant, given):
    """(views, numbers, integers, their names) of what the functions of a tessera.Variant take, which `given` has by name."""
    views, numbers, integers = variant.sort_arguments(given)
    for name, value in views.items():
        _check_view(name, variant.arguments[name], value, q.device)
    numbers = {name: _read_number(name, value) for name, value in numbers.items()}
    integers = {name: _read_integer(name, value) for name, value in integers.items()}
    return *(list(part.values()) for part in (views, numbers, integers)), name_arguments(variant)


def name_arguments(variant):
    """The names of the views, numbers and integers that a tessera.Variant takes."""
    return Names(*map(tuple, variant.sort_arguments(variant.arguments)))


def read_mods(q, mods, sinks=None):
    """What is written for functions of Python and sinks, and captured tensors and numbers, which kernels take as arguments."""
    written, found = _captured.find(q.device, *mods, sinks)
    if written.problem is not None:
        _captured.refuse(written.problem)
    return written, found


def attention(q, k, v, variant, given, scale, return_lse, deterministic=False):
    """Output, and LSE where it is asked for, with the functions of a tessera.Variant, whose arguments `given` has by name."""
    given = read_variant(q, variant, given)
    return _call(q, k, v, variant.source, variant.learnable, *given, scale, return_lse, deterministic)


def attention_of_mods(q, k, v, mods, scale, return_lse, deterministic=False, block_mask=None, sinks=None):
    """The same with functions of Python, and sinks. `block_mask` has the lists of the mask's blocks; None where calls make them."""
    written, found = read_mods(q, mods, sinks)
    given = _captured.list_given(written, found)
    results = _call(
        q, k, v, written.source, written.learnable, *given, written.names, scale, return_lse, deterministic, block_mask
    )  # fmt: skip
    if return_lse and sinks is not None and k.shape[2] == 0:  # No kernel runs.
        return results[0], torch.logaddexp(results[1], sinks.float()[:, None])
    return results


def keep(source, device, element_type, sizes, learned, deterministic=False, block=None):
    """Of attention and of its gradients, (source, lists of blocks that its kernels take): names by what the arguments begin
    with. Sizes are those of `_op.get_sizes`; `learned` are the views that have gradients, None where nothing has; `block` is that
    of a BlockMask."""
    is_cpu = device.type == "cpu"
    forward = _block_lists.keep_forward(source, element_type, sizes, not is_cpu, block)
    if learned is None:
        return forward, (source, ())
    fixed, kind = _backward.is_fixed(deterministic), _kernels.find_kind(is_cpu)
    return forward, _block_lists.keep_gradients(kind, source, learned, fixed, element_type, sizes[3], sizes[6], block)


@_op.mark_constant
def _keep(source, device, *others):
    return keep(source, torch.device(device), *others)


# Those of a call that keeps a device busy, as `_op.get_sizes` has them, but for head dimensions.
_ANY_SIZES = (16, 16, 4096, None, 16, 4096, None)


def _name_lists(lists):
    return tuple([name + of for name, _ in lists for of in ("_lists", "_counts")])


def _ask(source, lists, gradient_source, gradient_lists, *others):
    sources = (_recipes.fold(source), _name_lists(lists), _recipes.fold(gradient_source), _name_lists(gradient_lists))
    return _Asked(*sources, *others)


class _Form:
    """How calls are computed that have something in common: by a function past the dispatcher, or without and with the LSE by
    functions of autograd; None where there is none. `tensors` are lists of blocks."""

    def __init__(self, asked, tensors=()):
        self.asked, self.tensors = asked, tensors
        self.function, self.applies = None, {}
        #: Of what calls the gradients are known to exist, as `describe` has them.
        self.checked = set()

    def prepare(self):
        self.function = _find_function(self.asked.source, self.asked.names.add_views(self.asked.listed))
        return self

    def __reduce__(self):  # Copies of what keeps it find their own.
        return type(None), ()

    def find_apply(self, return_lse):
        if return_lse not in self.applies:
            self.applies[return_lse] = _find_apply(self.asked, return_lse)
        return self.applies[return_lse]


@functools.lru_cache(maxsize=1024)
def find_form(source, *others):
    """The _Form of calls without lists that are given: of the names of what functions take, of the views that have gradients, and
    whether sums have one order."""
    return _Form(_ask(source, (), source, (), *others)).prepare()


def _make_listed_form(q, k, v, source, names, learned, deterministic, block_mask):
    """That of calls with a block mask, which may have lists."""
    _op.check(q, k, v, None)
    block_mask.check(q, k)
    others = names, learned or (), deterministic
    if not takes_lists(source):
        return _Form(_ask(source, (), source, (), *others))
    # Of a graph lengths may be any.
    sizes = _ANY_SIZES if torch.compiler.is_compiling() else _op.get_sizes(q, k, v)
    sizes = (*sizes[:3], operator.index(q.shape[3]), *sizes[4:6], operator.index(v.shape[3]))
    forms = _keep(source, str(q.device), TYPES[q.dtype], sizes, learned, deterministic, block_mask.block)
    lists = [*forms[0][1], *forms[1][1]]
    return _Form(_ask(*forms[0], *forms[1], *others), block_mask.find([name for _, name in lists], *q.shape[:2]))


def make_key(q, k, v, source, names, learned, deterministic):
    """What the _Form of a call with a block mask depends on beside the mask."""
    fixed = learned is not None and _backward.is_fixed(deterministic)
    return source, names, learned, deterministic, fixed, q.dtype, q.get_device(), q.shape, k.shape, v.shape


def find_learned(q, k, v, views, names, learnable):
    """The names of the views that get gradients, None where nothing does, in a call that nothing sees."""
    if not torch.is_grad_enabled():
        return None
    learned = _list_learned(names, views, learnable) if any([view.requires_grad for view in views]) else ()
    return learned if learned or q.requires_grad or k.requires_grad or v.requires_grad else None


def _find_learned_seen(q, k, v, views, names, learnable):
    """The same wherever it is."""
    if not torch.is_grad_enabled():
        return None
    learned = _list_learned(names, views, learnable)
    return learned if learned or _op.require_grad(q, k, v) else None


@_op.mark_constant
def _find_gradient_problem(source, learned):
    return _gradient_kernels.find_gradient_problem(source, learned)


@_op.mark_constant
def _find_room_problem(source, learned, *sizes):
    return _gradient_kernels.find_room_problem(source, learned, *sizes)


def describe(q, v):
    """What it depends on whether there are gradients, beside the functions."""
    return q.dtype, q.shape[0] > 1, q.shape[1] > 1, q.shape[3], v.shape[3]


def _check_gradients(q, k, v, source, learned, deterministic, has_lists):
    """Refuses what the backward pass would refuse. Kernels with lists are compiled by this call in any case."""
    problem = _find_gradient_problem(source, learned)
    if not problem and learned and not has_lists and q.is_cuda and _frontend.may_compile():
        _op.check(q, k, v, None)
        fixed = _backward.is_fixed(deterministic)
        problem = _find_room_problem(source, learned, fixed, TYPES[q.dtype], q.shape[-1], v.shape[-1])
    if problem:
        _captured.refuse(problem)
    if deterministic:
        _recipes.check_order(learned, source, q, _recipes.ASKED)


def _call(q, k, v, source, learnable, views, numbers, integers, names, scale, return_lse, deterministic, block_mask=None):
    if _op.may_have_tangents():
        _op.check_tangents(("q", "k", "v", *map(_names.find_label, names.views)), q, k, v, *views)
    is_seen = _direct.is_watched() or _are_transforms_active()
    learned = (_find_learned_seen if is_seen else find_learned)(q, k, v, views, names, learnable)
    given = source, names, learned, deterministic
    if learned is not None and (is_seen or block_mask is not None):
        _check_gradients(q, k, v, source, learned, deterministic, block_mask is not None)
    if block_mask is None and is_seen:
        _op.check(q, k, v, None)
        form = _Form(_ask(source, (), source, (), names, learned or (), deterministic))
    elif block_mask is None:
        form = find_form(source, names, learned or (), deterministic)
        if learned is not None and (kind := describe(q, v)) not in form.checked:
            _check_gradients(q, k, v, source, learned, deterministic, False)
            form.checked.add(kind)
    elif is_seen:
        form = _make_listed_form(q, k, v, *given, block_mask)
    else:
        form = block_mask.remember(make_key(q, k, v, *given), lambda: _make_listed_form(q, k, v, *given, block_mask).prepare())
    inputs = (scale, *numbers, *integers), q, k, v, *views, *form.tensors
    if learned is None:
        results = None if form.function is None else form.function(*inputs[1:], inputs[0])
        if results is None:
            results = _run_forward_op(form.asked, *inputs)
        return results if return_lse else results[0]
    apply = None if is_seen else form.find_apply(return_lse)
    if apply is not None:
        return apply(*inputs)
    results = _Attention.apply(form.asked.strip(), inputs[0], *_op.separate(*inputs[1:]))
    return results if return_lse else results[0]
