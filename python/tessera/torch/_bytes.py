"""The op `tessera::attention_fp8_forward`, and attention through numbers of 8 bits around it."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch

from torch.utils.flop_counter import register_flop_formula

from .._attention import _recipes, _variants
from .._functions import _names, _reading
from .._functions._names import Names
from .._functions._variant import Variant
from . import _captured, _compute, _direct, _functions, _native, _op, _recalled

_op._library.define(
    f"attention_fp8_forward(Tensor q, Tensor k, Tensor v, Tensor? rotation, {_functions._GIVEN}, str variant, float scale) -> "
    "(Tensor, Tensor)",
    tags=_op._tags,
)
forward = torch.ops.tessera.attention_fp8_forward.default
_CACHED = (torch.float8_e4m3fn, torch.float8_e5m2)
# The head dimensions at which q and k are rotated where nobody says.
_ROTATED = 64, 128
_are_transforms_active, _is_grad_enabled = torch._C._are_functorch_transforms_active, torch.is_grad_enabled


def _run(q, k, v, rotation, views, numbers, integers, names, variant, scale):
    text = _recipes.write(_recipes.FP8, _names.read(names), variant)
    return tuple(_compute.compute(text, (q, k, v, rotation, *views), (scale, *numbers), integers))


def _run_cpu(*arguments):
    _op.check_interpreter("q")
    return _run(*arguments)


def _make_fake(q, k, v, *_):
    return tuple(_op.allocate_results(q, v))


if not _op.has_native:
    _op._library.impl("attention_fp8_forward", _run, "CUDA")
_op._library.impl("attention_fp8_forward", _run_cpu, "CPU")
torch.library.register_fake("tessera::attention_fp8_forward", _make_fake, lib=_op._library)
register_flop_formula(forward.overloadpacket)(_op._count_flops)


def attention_fp8(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    variant: Variant | None = None,
    arguments: Mapping[str, torch.Tensor | float] | None = None,
    score_mod: Callable[..., Any] | None = None,
    score_args: tuple[torch.Tensor | float, ...] = (),
    mask_mod: Callable[..., Any] | None = None,
    mask_args: tuple[torch.Tensor | float, ...] = (),
    scale: float | None = None,
    rotate: bool | None = None,
    seed: int = 0,
    k_scale: float | None = None,
    v_scale: float | None = None,
    layout: Literal["BHSD", "BSHD"] = "BHSD",
    return_lse: bool = False,
) -> torch.Tensor | Any:
    """softmax(scale * q k^T) v with q, k and v rounded to 8 bits (e4m3), and with `return_lse` also the logarithm of the
    softmax' sums, [B, H, SQ] in float32. The output has the type of q.

    q, k, v:  as for `attention`, with head dimensions of 64, 96, 128, 192 or 256. Each row of q has a scale of its own,
              and each block of keys, of 64 to 192 rows. Where k and v have 8 bits already, as caches do (float8_e4m3fn or
              float8_e5m2), nothing is rounded, and products are of the type of q.
    k_scale, v_scale: numbers of which such k and v are multiples; 1 when not given.
    causal:   a row sees the keys up to its own. The last row is aligned with the last key.
    variant, arguments, score_mod, score_args, mask_mod, mask_args: functions of scores and masks, as of `attention`.
    scale:    1 / sqrt(head dimension) when not given; above 0.
    rotate:   q and k are multiplied by random signs times a Hadamard matrix before they are rounded, so that outliers
              spread over their rows (section 3.3 of the FlashAttention-3 paper). When not given, it is done for head
              dimensions 64 and 128.
    seed:     of the signs.

    Has no gradient. Raises what `attention` does.
    """
    mods, functions = (score_mod, score_args, mask_mod, mask_args), None
    if k_scale is v_scale is None and layout == "BHSD":
        results = _recall(q, k, v, causal, variant, arguments, mods, scale, rotate, seed)
        if results is not None:
            return results if return_lse else results[0]
    _variants.check_layout(layout)
    seed = _read_seed(seed)
    given = {"q": q, "k": k, "v": v}
    _op.check_types(given), _op.check_forms(given)
    if layout == "BSHD":
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    _op.check_tangents(("q", "k", "v"), q, k, v)
    if variant is not None or arguments is not None or mods != _variants.NO_MODS:
        _variants.check_functions(variant, arguments, mods, scale, {"causal": causal})
        functions = _read_functions(q, variant, arguments, mods)
    asked, views, *numbers = functions or (_NAMED[bool(causal)], (), (), ())
    if k.dtype in _CACHED or v.dtype in _CACHED:
        _check_factors(rotate, k_scale, v_scale)
        rotate = False
    else:
        _refuse_scales(k_scale, v_scale)
    k_scale, v_scale = (1.0 if factor is None else float(factor) for factor in (k_scale, v_scale))
    rotate = q.shape[3] in _ROTATED if rotate is None else rotate
    _check_scale(scale)
    _check_gradients(q, k, v)
    scale = (q.shape[3] ** -0.5 if scale is None else float(scale)) * k_scale
    out, lse = _attend(q, k, v, rotate, seed, asked, views, (scale, v_scale), *numbers)
    if layout == "BSHD":
        out = out.transpose(1, 2)
    return (out, lse) if return_lse else out


# (names of what functions take, variant) without a mask and with a causal one.
_NAMED = {causal: (Names(), f"attention_fp8 CAUSAL={str(causal).lower()}") for causal in (False, True)}


@functools.lru_cache(maxsize=256)
def _find_function(names, variant):
    """The function of calls past the dispatcher, None where there is none."""
    text = _recipes.write(_recipes.FP8, names, variant)
    return _direct.make(text, 4 + len(names.views), "sf" + "f" * len(names.numbers) + "i" * len(names.integers)) if _op.has_native else None


def _recall_functions(device, causal, variant, arguments, mods):
    """(names, text of a source or a name), views and numbers of a call whose functions are known; None of others."""
    if variant is arguments is None:
        if mods == _variants.NO_MODS:
            return _NAMED[bool(causal)], (), ()
        known = None if causal else _reading.recall(device, *mods)
    else:
        known = None if causal or mods != _variants.NO_MODS else _recalled.read_variant(device, variant, arguments)
    if known is None:
        return None
    functions, views, numbers, *_ = known
    if _is_grad_enabled() and any(view.requires_grad for view in views):
        return None
    return (functions.names, functions.source), views, numbers


def _recall(q, k, v, causal, variant, arguments, mods, scale, rotate, seed):
    """Output and LSE of a call that the library has prepared, without a look at what it knows; None of others."""
    if not type(q) is type(k) is type(v) is torch.Tensor or q.dim() != 4 or not (scale is None or type(scale) is float):
        return None
    if _direct.is_watched() or _are_transforms_active() or _op.may_have_tangents() or k.dtype is not q.dtype:
        return None
    if _is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        return None
    width, rotation = q.shape[3], None
    if width not in _variants.WIDTHS or not (scale is None or 0 < scale < math.inf):
        return None
    scale = width**-0.5 if scale is None else scale
    if rotate or (rotate is None and width in _ROTATED):
        rotation, scale = _make_rotation(width, _read_seed(seed), q.dtype, q.device), scale / width
    known = _recall_functions(q.get_device(), causal, variant, arguments, mods)
    if known is None:
        return None
    asked, views, numbers = known
    function = _find_function(*asked)
    return function and function(q, k, v, rotation, *views, (scale, 1.0, *numbers))


def _attend(q, k, v, rotate, seed, asked, views, factors, numbers, integers):
    """Output and LSE."""
    width, (scale, v_scale) = q.shape[3], factors
    rotation = None
    if rotate and width in _variants.WIDTHS:
        rotation, scale = _make_rotation(width, seed, q.dtype, q.device), scale / width
    function = None if _direct.is_watched() or _are_transforms_active() else _find_function(*asked)
    if function is not None:
        results = function(q, k, v, rotation, *views, (scale, v_scale, *numbers, *integers))
        if results is not None:
            return results
    _check(q, k, v)
    names, variant = asked
    given = list(views), [v_scale, *numbers], list(integers), _names.write(names), _recipes.fold(variant), scale
    try:
        return _native.call(forward, q, k, v, None, q, k, v, rotation, *given)
    except ValueError:
        # What kernels round has other names in these.
        problem = _op.find_place_problem(q, k, v)
        if problem is None:
            raise
        raise problem from None


def _read_seed(seed):
    """An integer that generators of torch take."""
    try:
        seed = operator.index(seed)
    except TypeError:
        raise TypeError(f"argument 'seed' is {seed!r}; it is an integer") from None
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"argument 'seed' is {seed}; it is an integer of 64 bits")
    return seed


def _refuse_gradient(name):
    raise NotImplementedError(
        f"argument '{name}' requires a gradient, and attention of 8 bits has none: call it under torch.no_grad(), or detach "
        "the argument"
    )


def _read_functions(q, variant, arguments, mods):
    """(names of what functions take, text of a source), views, numbers and integers."""
    if variant is None:
        written, found = _functions.read_mods(q, mods)
        source, given, names = written.source, _captured.list_given(written, found), written.names
    else:
        source, (*given, names) = variant.source, _functions.read_variant(q, variant, arguments or {})
    for name, view in zip(names.views, given[0]):
        if _is_grad_enabled() and _op.require_grad(view):
            _refuse_gradient(name)
    return (names, source), *given


def _refuse_scales(k_scale, v_scale):
    for name, factor in (("k_scale", k_scale), ("v_scale", v_scale)):
        if factor is not None:
            raise ValueError(f"argument '{name}' is given with '{name[0]}' of 16 bits, whose scales are found; leave it out")


def _check_factors(rotate, k_scale, v_scale):
    """Refuses what does not go together with keys and values of 8 bits."""
    if rotate:
        raise ValueError("argument 'rotate' is true with 'k' of 8 bits; rotate q and k before k is rounded")
    for name, factor in (("k_scale", k_scale), ("v_scale", v_scale)):
        if isinstance(factor, torch.Tensor) or (factor is not None and not float(factor) > 0):
            raise ValueError(f"argument '{name}' is {factor}; it is a number above 0")


def _check_cached(q, k, v):
    """Refuses keys and values of 8 bits that no kernel takes."""
    if k.dtype != v.dtype:
        raise TypeError(f"argument 'v' has type {v.dtype} and 'k' {k.dtype}; with one of 8 bits they must be equal")
    for name, tensor in (("k", k), ("v", v)):
        if tensor.device != q.device:
            raise ValueError(f"argument '{name}' is on {tensor.device} and 'q' on {q.device}; they must be equal")
    # Of one type these would be taken.
    shapes = (torch.empty_strided(x.shape, x.stride(), dtype=q.dtype, device="meta") for x in (q, k, v))
    _op.check(*shapes, None)


def _check_scale(scale):
    _op.raise_problem(None if scale is None else _op.find_scale_problem(scale))


def _check_gradients(q, k, v):
    for name, tensor in (("q", q), ("k", k), ("v", v)) if _is_grad_enabled() else ():
        if _op.require_grad(tensor):
            _refuse_gradient(name)


def _check(q, k, v):
    """Refuses tensors that no kernel takes."""
    if k.dtype in _CACHED or v.dtype in _CACHED:
        _check_cached(q, k, v)
    else:
        _op.check(q, k, v, None)
    _op.raise_problem(_op.find_device_problem("q", q.device))
    width = q.shape[3]
    if v.shape[3] not in _variants.WIDTHS or width not in _variants.WIDTHS:
        raise ValueError(
            f"arguments 'q' and 'v' have head dimensions {width} and {v.shape[3]}; attention of 8 bits takes one of "
            f"{', '.join(map(str, _variants.WIDTHS))} for each"
        )


@functools.lru_cache(maxsize=16)
def _make_rotation(width, seed, dtype, device):
    """Random signs times a Hadamard matrix, [D, D] of +1 and -1: J. Sylvester's (1867) of 1 or, where D is a multiple of 3, of
    R. Paley's of order 12 (1933)."""
    matrix = torch.ones(1, 1) if width % 3 else _make_paley()
    while len(matrix) < width:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    signs = torch.randint(0, 2, (width, 1), generator=torch.Generator().manual_seed(seed)) * 2.0 - 1
    return (signs * matrix).to(device, dtype)


def _make_paley():
    """A Hadamard matrix of order 12: of the squares modulo 11."""
    squares = {i * i % 11 for i in range(1, 11)}
    matrix = torch.ones(12, 12)
    for i in range(11):
        matrix[i + 1, 0] = -1
        for j in range(11):
            matrix[i + 1, j + 1] = 1 if i == j or (i - j) % 11 in squares else -1
    return matrix
