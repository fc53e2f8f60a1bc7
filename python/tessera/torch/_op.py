"""The ops `tessera::attention_forward` (output and LSE) and `tessera::attention_inference` (output).

Tensors are [B, H, S, D] views in any strides but the innermost, which is 1. The output has the order of q's storage,
so that a view of BSHD storage gives one. Causal masks and windows are aligned at the last row and the last key. The
scale is 1 / sqrt(head dimension) when it is None.
"""

import torch
from torch.utils.flop_counter import register_flop_formula

from .._attention import _recipes
from . import _compute, _native, _vmap
from ._problems import (  # noqa: F401
    check, check_derivatives, check_forms, check_interpreter, check_tangents, check_types, find_device_problem,
    find_form_problem, find_number_problem, find_other_device, find_place_problem, find_problem,
    find_scale_problem, find_sinks_problem, find_type_problem, may_have_tangents, raise_problem, require_grad, runs_on,
    separate, use_interpreter,
)  # fmt: skip

_SIGNATURE = (
    "(Tensor q, Tensor k, Tensor v, Tensor? alibi, str variant, float? scale=None, float softcap=0., SymInt left=-1, "
    "SymInt right=-1)"
)
_library = torch.library.Library("tessera", "DEF")
_tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides) if hasattr(torch.Tag, "needs_exact_strides") else (
    torch.Tag.pt2_compliant_tag,
)  # fmt: skip
_library.define(f"attention_forward{_SIGNATURE} -> (Tensor, Tensor)", tags=_tags)
_library.define(f"attention_inference{_SIGNATURE} -> Tensor", tags=_tags)
forward = torch.ops.tessera.attention_forward.default
inference = torch.ops.tessera.attention_inference.default


def mark_constant(function):
    """torch.compiler.assume_constant_result, which imports torch's compiler: that takes a second, and several from a cold disk."""
    function._dynamo_marked_constant = True
    return function


def allocate_results(q, v, lse=True):
    """[output] or [output, LSE] of q's device; the output is dense in the order of q's storage."""
    batch, heads, length, width = q.shape[0], q.shape[1], q.shape[2], v.shape[3]
    if q.stride(1) < q.stride(2):
        results = [q.new_empty((batch, length, heads, width)).transpose(1, 2)]
    else:
        results = [q.new_empty((batch, heads, length, width))]
    if lse:
        results.append(q.new_empty((batch, heads, length), dtype=torch.float32))
    return results


def _run(what, q, k, v, alibi, variant, scale=None, softcap=0.0, left=-1, right=-1):
    check(q, k, v, alibi)
    scale = q.shape[3] ** -0.5 if scale is None else scale
    text = _recipes.write(what, _recipes.NAMED, variant)
    return _compute.compute(text, (q, k, v, alibi), (scale, softcap), (left, right))


def get_sizes(q, k, v):
    return tuple(map(int, (*q.shape, k.shape[1], k.shape[2], v.shape[3])))


def _run_cpu(what, *arguments, **named):
    check_interpreter("q")
    return _run(what, *arguments, **named)


def _make_fake(what, q, k, v, alibi, *_, **__):
    check(q, k, v, alibi)
    return allocate_results(q, v, what == _recipes.OUTPUT_AND_LSE)


def _with_lse(function):
    return lambda *arguments, **named: tuple(function(_recipes.OUTPUT_AND_LSE, *arguments, **named))


def _without_lse(function):
    return lambda *arguments, **named: function(_recipes.OUTPUT, *arguments, **named)[0]


def _count_flops(q, k, v, *_, **__):
    """As torch counts its own attention: of all scores, masked or not."""
    (batch, heads, rows, width), keys = q, k[2]
    return 2 * batch * heads * rows * keys * (width + v[3])


def _register(name, op, wrap):
    if not has_native:
        _library.impl(name, wrap(_run), "CUDA")
    _library.impl(name, wrap(_run_cpu), "CPU")
    full_name = f"tessera::{name}"
    torch.library.register_fake(full_name, wrap(_make_fake), lib=_library)
    _vmap.register(_library, op, 3)
    register_flop_formula(op.overloadpacket)(_count_flops)


# From PyTorch 2.10 on the library has kernels for CUDA, of these ops and of those for gradients and functions of scores.
has_native = torch.version.cuda is not None and _native.register("tessera", "CUDA")
_register("attention_forward", forward, _with_lse)
_register("attention_inference", inference, _without_lse)
