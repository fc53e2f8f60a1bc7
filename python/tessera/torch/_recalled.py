"""Calls of attention with options that are like earlier ones: one look at what they are given, and one call of the library.

What an earlier call has found out is known here by all that it has looked at. A call that anything sees, and whatever differs, is
left to the usual way, which says what is wrong.
"""

import functools
import math
from typing import NamedTuple

import torch

from .._functions import _reading
from .._functions._variant import Variant
from . import _backward, _direct, _functions
from ._block_mask import BlockMask

# What is looked up in modules in each call costs the host time.
_is_grad_enabled, _is_seen, _recall = torch.is_grad_enabled, _direct.is_seen, _reading.recall
_find_learned = _functions.find_learned


def attention(q, k, v, causal, scale, return_lse, options):
    """The results of `attention` with its further options, None where they have to be looked at."""
    if _is_seen():
        return None
    if scale is None:
        scale = q.shape[-1] ** -0.5
    elif type(scale) is not float or not 0 < scale < math.inf:
        return None
    if "layout" in options:
        return _attend_in_layout(q, k, v, causal, scale, return_lse, **options)
    if "score_mod" in options or "mask_mod" in options or "block_mask" in options:
        return None if causal else _attend_mods(q, k, v, scale, return_lse, **options)
    if "variant" in options:
        return None if causal else _attend_variant(q, k, v, scale, return_lse, **options)
    return _attend_named(q, k, v, causal, scale, return_lse, **options)


def _attend_in_layout(q, k, v, causal, scale, return_lse, layout, **options):
    if layout == "BHSD":
        return attention(q, k, v, causal, scale, return_lse, options)
    if layout != "BSHD":
        return None
    results = attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), causal, scale, return_lse, options)
    if results is None:
        return None
    return (results[0].transpose(1, 2), results[1]) if return_lse else results.transpose(1, 2)


def _attend_mods(
    q, k, v, scale, return_lse, score_mod=None, score_args=(), mask_mod=None, mask_args=(), block_mask=None, deterministic=False,
    alibi=None, sinks=None, **others,
):  # fmt: skip
    if others or not alibi is sinks is None:
        return None
    if block_mask is not None:
        if type(block_mask) is not BlockMask or mask_mod is not None or mask_args:
            return None
        mask_mod, mask_args = block_mask.mods
    known = _recall(q.get_device(), score_mod, score_args, mask_mod, mask_args)
    if known is None:
        return None
    written, views, numbers, values = known
    if block_mask is not None and not block_mask.has_values(values):
        return None
    return _attend(q, k, v, written, views, (scale, *numbers), return_lse, deterministic, block_mask)


def _attend_variant(q, k, v, scale, return_lse, variant, arguments=None, deterministic=False, **others):
    known = None if others else read_variant(q.get_device(), variant, arguments)
    if known is None:
        return None
    functions, views, numbers = known
    return _attend(q, k, v, functions, views, (scale, *numbers), return_lse, deterministic)


def read_variant(device, variant, arguments):
    """What has the attributes of _Functions, views and numbers of a variant with arguments that it takes; None of others."""
    arguments = arguments or {}
    if type(variant) is not Variant or len(arguments) != len(variant.arguments):
        return None
    parts = {float: [], int: [], None: []}
    for name, kind in variant.arguments.items():
        value = arguments.get(name)
        if kind is float or kind is int:
            if type(value) is not kind:
                return None
            parts[kind].append(value)
        elif type(value) is torch.Tensor and _functions.is_view(value, kind, device):
            parts[None].append(value)
        else:
            return None
    return _name_functions(variant), parts[None], (*parts[float], *parts[int])


class _Functions(NamedTuple):
    """Those of a source, with the names of what they take and of the views that may have gradients."""

    source: str
    learnable: tuple
    names: str


@functools.lru_cache(maxsize=256)
def _name_functions(variant):
    return _Functions(variant.source, variant.learnable, _functions.name_arguments(variant))


def _attend(q, k, v, functions, views, numbers, return_lse, deterministic, block_mask=None):
    """With what has the attributes of _Functions. The first number is the scale."""
    source, names = functions.source, functions.names
    learned = _find_learned(q, k, v, views, names, functions.learnable) if _is_grad_enabled() else None
    if block_mask is None:
        form = _functions.find_form(source, names, learned or (), deterministic)
        if learned is not None and _functions.describe(q, v) not in form.checked:
            return None
    else:
        form = block_mask.recall(_functions.make_key(q, k, v, source, names, learned, deterministic))
        if form is None:
            return None
    if learned is None:
        results = form.function and form.function(q, k, v, *views, *form.tensors, numbers)
        return results if return_lse or results is None else results[0]
    apply = form.find_apply(return_lse)
    return apply and apply(numbers, q, k, v, *views, *form.tensors)


class _Plan(NamedTuple):
    """How functions compute a call whose options have names: which of its slopes, bias and sinks the views are."""

    functions: _Functions
    places: tuple
    numbers: tuple


# By what calls are given: the arguments of an op, or a _Plan.
_plans, _MOST_PLANS = {}, 256
_BOUNDS = {int, type(None)}


def _describe(tensor):
    return None if tensor is None else (tensor.dtype, tensor.shape, tensor.stride(), tensor.get_device())


def _make_key(q, k, v, causal, scale, window, softcap, alibi, bias, sinks):
    """By what the plan of a call is known, None where it is not kept."""
    if type(softcap) not in (int, float):
        return None
    if window is not None and not (type(window) is tuple and _BOUNDS.issuperset(map(type, window))):
        return None
    if bias is sinks is None and not (alibi is not None and alibi.requires_grad and _is_grad_enabled()):
        return causal, window, softcap, scale, alibi is not None
    tensors = _describe(alibi), _describe(bias), _describe(sinks)
    return causal, window, softcap, tensors, q.dtype, q.get_device(), q.shape, k.shape, v.shape


def _attend_named(
    q, k, v, causal, scale, return_lse, window=None, softcap=0.0, alibi=None, bias=None, sinks=None, deterministic=False, **others
):  # fmt: skip
    plan = None if others else _plans.get(_make_key(q, k, v, causal, scale, window, softcap, alibi, bias, sinks))
    if type(plan) is not _Plan:
        return plan and _backward.attend(q, k, v, alibi, plan, return_lse, deterministic)
    tensors = alibi, bias, sinks
    views = [tensors[place] for place in plan.places]
    return _attend(q, k, v, plan.functions, views, (scale, *plan.numbers), return_lse, deterministic)


def remember(q, k, v, causal, scale, window, softcap, alibi, bias, sinks, make):
    """Keeps the arguments of an op, which `make` makes of the scale."""
    if not _is_seen():
        scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
        _keep(_make_key(q, k, v, causal, scale, window, softcap, alibi, bias, sinks), make(scale))


def remember_mods(q, k, v, causal, scale, window, softcap, alibi, bias, sinks, mods):
    """Keeps which functions compute a call."""
    found = None if _is_seen() or k.shape[2] == 0 else _recall(q.get_device(), *mods, sinks)
    if found is None:
        return
    (written, views, numbers, _), tensors = found, (alibi, bias, sinks)
    places = [next((i for i, tensor in enumerate(tensors) if tensor is view), None) for view in views]
    if None not in places:
        functions = _Functions(written.source, written.learnable, written.names)
        _keep(_make_key(q, k, v, causal, scale, window, softcap, alibi, bias, sinks), _Plan(functions, tuple(places), numbers))


def _keep(key, plan):
    if len(_plans) >= _MOST_PLANS:
        _plans.clear()
    if key is not None:
        _plans[key] = plan
