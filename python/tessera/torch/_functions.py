"""The ops `tessera::variant_forward` and `tessera::variant_backward`: attention with functions of scores and masks. The
functions travel as the text of a source, so that graphs mean the same in another process. Tensors are [B, H, S, D] views."""

import operator

import torch
from torch.utils.flop_counter import register_flop_formula

from .. import _block_lists, _compile, _recipes
from .._program import Program
from .._trace import TraceError
from .._variant import takes_lists
from . import _backward, _captured, _compute, _native, _op, _vmap
from ._types import TYPES

# What functions take besides a score and its place: views, numbers of f32, and integers, whose names `names` has in this
# order, separated by commas, and the three lists by bars.
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


def _run_forward(q, k, v, views, numbers, integers, names, source, scale):
    _op.check(q, k, v, None)
    text = _recipes.write(_recipes.OUTPUT_AND_LSE, names, source)
    return tuple(_compute.compute(text, (q, k, v, *views), (scale, *numbers), integers))


def _run_forward_cpu(*arguments):
    _op.check_interpreter("q")
    return _run_forward(*arguments)


def _split(names):
    return names.split(",") if names else []


def _list_labels(names):
    """What users call the views, without the index that makes each name differ from others."""
    return [name.rpartition("_")[0] or name for name in _split(names.partition("|")[0])]


def _allocate_learned(views, names, learned):
    """The gradients of the views that are learned, of float32, in their order."""
    given = _captured.name_given(views, (), (), names)
    return [torch.zeros(given[name].shape, dtype=torch.float32, device=given[name].device) for name in _split(learned)]


def _run_backward(
    grad, grad_lse, q, k, v, out, lse, views, numbers, integers, names, learned, source, scale, deterministic=False
):  # fmt: skip
    text = _recipes.write(_recipes.name_gradients(_backward.find_order(deterministic), _split(learned)), names, source)
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


class _Attention(torch.autograd.Function):
    """Views are those of the functions, then lists of blocks by the names `listed`, for attention, then those for the
    gradients."""

    generate_vmap_rule = True

    @staticmethod
    def forward(q, k, v, source, listed, _, __, scale, numbers, integers, names, ___, ____, *views):
        both = len(_split(names.partition("|")[0])) + len(_split(listed))
        return _forward(q, k, v, views[:both], numbers, integers, _add_views(names, listed), source, scale)

    @staticmethod
    def setup_context(ctx, inputs, output):
        q, k, v, _, listed, gradient_source, gradient_listed, scale, numbers, integers, names, learned, deterministic, *views = inputs
        own = len(_split(names.partition("|")[0]))
        both = own + len(_split(listed))
        ctx.save_for_backward(q, k, v, *output, *views[:own], *views[both:])
        ctx.given = numbers, integers, _add_views(names, gradient_listed), learned, gradient_source, scale, deterministic
        ctx.own_views, ctx.lists = own, len(views) - own
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad, grad_lse):
        q, k, v, out, lse, *views = ctx.saved_tensors
        if grad is None:
            grad = torch.zeros_like(out)
        *gradients, sums = _native.call(backward, q, k, v, None, grad, grad_lse, q, k, v, out, lse, views, *ctx.given)
        gradients = _backward.mark_gradients((*gradients, *sums), grad, q, k, v, *views)
        gradients, sums = gradients[:3], gradients[3:]
        _, _, names, learned, *_ = ctx.given
        of_views = dict(zip(_split(learned), sums))
        of_views = [
            of_views[name].to(view.dtype) if name in of_views else None
            for name, view in zip(_split(names.partition("|")[0])[: ctx.own_views], views)
        ]
        return (*gradients, *(None for _ in range(10)), *of_views, *(None for _ in range(ctx.lists)))


def _add_views(names, more):
    """`names` with those of further views, behind the others."""
    views, bar, rest = names.partition("|")
    return ",".join(filter(None, (views, more))) + bar + rest


def _list_learned(names, views, learnable):
    """The names of the views whose gradients are wanted and exist, separated by commas."""
    names = _split(names.partition("|")[0])
    return ",".join(name for name, view in zip(names, views) if name in learnable and _op.require_grad(view))


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


def _read_number(name, value):
    problem = _op.find_number_problem(name, value, f"give the variant a view of one element, `{name}=(1,)`")
    if problem is not None:
        raise problem
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
    names = "|".join(",".join(part) for part in (views, numbers, integers))
    return *(list(part.values()) for part in (views, numbers, integers)), names


def read_mods(q, mods):
    """What is written for functions of Python, and their captured tensors and numbers, which kernels take as arguments."""
    written, found = _captured.find(q.device, *mods)
    if written.problem is not None:
        raise TraceError(written.problem)
    return written, found


def attention(q, k, v, variant, given, scale, deterministic=False):
    """Output and LSE with the functions of a tessera.Variant, whose arguments `given` has by name."""
    given = read_variant(q, variant, given)
    return _call(q, k, v, variant.source, variant.learnable, *given, scale, deterministic=deterministic)


def attention_of_mods(q, k, v, mods, scale, block_mask=None, deterministic=False):
    """Output and LSE with functions of Python. `block_mask` has the lists of the mask's blocks; None where calls make them."""
    written, found = read_mods(q, mods)
    if block_mask is not None:
        _op.check(q, k, v, None)
        block_mask.check(q, k)
    given = _captured.list_given(written, found)
    return _call(q, k, v, written.source, written.learnable, *given, written.names, scale, block_mask, deterministic)


def keep(source, device, element_type, sizes, learned, deterministic=False, block=None):
    """Of attention and of its gradients, (source, lists of blocks that its kernels take): names by what the arguments begin
    with. Sizes are those of `_op.get_sizes`; `learned` are the views that have gradients, None where nothing has; `block` is that
    of a BlockMask."""
    is_cpu = device.type == "cpu"
    forward = _block_lists.keep_forward(source, element_type, sizes, not is_cpu, block)
    if learned is None:
        return forward, (source, ())
    fixed, kind = _backward.is_fixed(deterministic), Program if is_cpu else _compile.compile
    return forward, _block_lists.keep_gradients(kind, source, learned, fixed, element_type, sizes[3], sizes[6], block)


@_op.mark_constant
def _keep(source, device, *others):
    return keep(source, torch.device(device), *others)


def _name_lists(lists):
    return ",".join(f"{name}_lists,{name}_counts" for name, _ in lists)


def _call(q, k, v, source, learnable, views, numbers, integers, names, scale, block_mask=None, deterministic=False):
    _op.check_tangents(("q", "k", "v", *_list_labels(names)), q, k, v, *views)
    learned = None
    if torch.is_grad_enabled():
        learned = _list_learned(names, views, learnable)
        if not learned and not _op.require_grad(q, k, v):
            learned = None
    gradient_source, lists, gradient_lists, tensors = source, (), (), []
    if block_mask is not None and takes_lists(source):
        of_views = None if learned is None else tuple(_split(learned))
        sizes = _op.get_sizes(q, k, v)
        forms = _keep(source, str(q.device), TYPES[q.dtype], sizes, of_views, deterministic, block_mask.block)
        (source, lists), (gradient_source, gradient_lists) = forms
        tensors = block_mask.find([name for _, name in (*lists, *gradient_lists)], *q.shape[:2])
    listed = _name_lists(lists)
    if learned is None:
        return _forward(q, k, v, [*views, *tensors], numbers, integers, _add_views(names, listed), _recipes.fold(source), scale)
    q, k, v, *views = _op.separate(q, k, v, *views, *tensors)
    return _Attention.apply(
        q, k, v, _recipes.fold(source), listed, _recipes.fold(gradient_source), _name_lists(gradient_lists), scale, numbers, integers, names,
        learned, deterministic, *views,
    )  # fmt: skip
