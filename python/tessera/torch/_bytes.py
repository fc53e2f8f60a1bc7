"""Attention through numbers of 8 bits: quantize.tile rounds Q, K and V, unless K and V have 8 bits already, and
attention_fp8.tile attends."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch

from .. import _compile, _library, _variants
from .._errors import CompileError
from .._program import Program
from .._variant import Variant
from . import _captured, _compute, _functions, _op
from ._types import TYPES

#: The keys of a block that has one scale, for the larger of the head dimensions, of which a step of the kernel takes all.
#: Rotating 128 columns leaves registers for 64 rows.
_BLOCKS = {64: 128, 96: 128, 128: 128, 192: 96, 256: 96}
_ROTATED_BLOCKS = {64: 128, 96: 128, 128: 64, 192: 64, 256: 64}
#: With a causal mask steps of 128 keys spill at 64 columns: (rows of a block, keys of a step).
_CAUSAL = {64: (192, 96)}
#: The same with functions, where they leave registers for so many, and where they do not.
_FUNCTION_BLOCKS = {64: (96, 64), 96: (128, 64), 128: (128, 64), 192: (64, 32), 256: (64, 32)}

#: Names in sources of the types of 8 bits.
_CACHED = {torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e5m2: "f8E5M2"}


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
    _variants.check_layout(layout)
    seed = _read_seed(seed)
    given = {"q": q, "k": k, "v": v}
    _op.check_types(given), _op.check_forms(given)
    if layout == "BSHD":
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    _op.check_tangents(("q", "k", "v"), q, k, v)
    functions, mods = None, (score_mod, score_args, mask_mod, mask_args)
    if variant is not None or arguments is not None or mods != _variants.NO_MODS:
        _variants.check_functions(variant, arguments, mods, scale, {"causal": causal})
        functions = _read_functions(q, variant, arguments, mods)
    width = q.shape[-1]
    is_cached = k.dtype in _CACHED or v.dtype in _CACHED
    if is_cached:
        _check_cached(q, k, v, rotate, k_scale, v_scale)
        rotate = False
    else:
        _op.check(q, k, v, None)
        _refuse_scales(k_scale, v_scale)
        rotate = width in (64, 128) if rotate is None else rotate
    _check(q, k, v, scale, rotate)
    out, lse = _op.allocate_results(q, v)
    scale = width**-0.5 if scale is None else float(scale)
    if not k.shape[2] or not q.numel():
        out.zero_(), lse.fill_(float("-inf"))
    elif is_cached:
        k_scale, v_scale = (1.0 if factor is None else float(factor) for factor in (k_scale, v_scale))
        _attend_cached(q, k, v, out, lse, causal, functions, scale * k_scale, v_scale)
    else:
        _attend(q, k, v, out, lse, causal, functions, scale, rotate, seed)
    if layout == "BSHD":
        out = out.transpose(1, 2)
    return (out, lse) if return_lse else out


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
    """(text of a source, what the kernel takes for it by name)."""
    if variant is None:
        written, found = _functions.read_mods(q, mods)
        source, (views, *numbers), names = written.source, _captured.list_given(written, found), written.names
    else:
        source, (views, *numbers, names) = variant.source, _functions.read_variant(q, variant, arguments or {})
    given = _captured.name_given(views, *numbers, names)
    for name, view in zip(given, views):
        if torch.is_grad_enabled() and _op.require_grad(view):
            _refuse_gradient(name)
    return source, given


def _refuse_scales(k_scale, v_scale):
    for name, factor in (("k_scale", k_scale), ("v_scale", v_scale)):
        if factor is not None:
            raise ValueError(f"argument '{name}' is given with '{name[0]}' of 16 bits, whose scales are found; leave it out")


def _check_cached(q, k, v, rotate, k_scale, v_scale):
    """Refuses what kernels do not take beside keys and values of 8 bits."""
    if k.dtype != v.dtype:
        raise TypeError(f"argument 'v' has type {v.dtype} and 'k' {k.dtype}; with one of 8 bits they must be equal")
    for name, tensor in (("k", k), ("v", v)):
        if tensor.device != q.device:
            raise ValueError(f"argument '{name}' is on {tensor.device} and 'q' on {q.device}; they must be equal")
    # Of one type these would be taken.
    shapes = (torch.empty_strided(x.shape, x.stride(), dtype=q.dtype, device="meta") for x in (q, k, v))
    _op.check(*shapes, None)
    if rotate:
        raise ValueError("argument 'rotate' is true with 'k' of 8 bits; rotate q and k before k is rounded")
    for name, factor in (("k_scale", k_scale), ("v_scale", v_scale)):
        if isinstance(factor, torch.Tensor) or (factor is not None and not float(factor) > 0):
            raise ValueError(f"argument '{name}' is {factor}; it is a number above 0")


def _check(q, k, v, scale, rotate):
    problem = _op.find_device_problem("q", q.device)
    if problem is not None:
        raise problem
    width = q.shape[3]
    if v.shape[3] not in _BLOCKS or width not in _BLOCKS:
        raise ValueError(
            f"arguments 'q' and 'v' have head dimensions {width} and {v.shape[3]}; attention of 8 bits takes one of "
            f"{', '.join(map(str, _BLOCKS))} for each"
        )
    if scale is not None:
        problem = _op.find_scale_problem(scale)
        if problem is not None:
            raise problem
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if torch.is_grad_enabled() and _op.require_grad(tensor):
            _refuse_gradient(name)


def _attend(q, k, v, out, lse, causal, functions, scale, rotate, seed):
    width, wider, device = q.shape[3], max(q.shape[3], v.shape[3]), q.device.type
    most = _ROTATED_BLOCKS[width] if rotate else _BLOCKS[width]
    parameters = {"D": width, "DV": v.shape[3], "OUT": TYPES[q.dtype], "SCALES": "blocks", "V_TRANSPOSED": False}
    if functions is None:
        block = step = min(_BLOCKS[wider], most)
        if causal and wider in _CAUSAL:
            block, step = _CAUSAL[wider]
        kernel, given = _find("attention_fp8", device, CAUSAL=bool(causal), BN=step, **parameters), {}
    else:
        source, given = functions
        steps = [min(step, most) for step in _FUNCTION_BLOCKS[wider]]
        kernel, block = _find_fitting(source, device, steps, T="f8E4M3FN", **parameters)
    rotation = _make_rotation(width, seed, q.dtype, q.device) if rotate else None
    q8, q_scale = _quantize(q, rotation)
    k8, k_scale = _quantize(k, rotation, BLOCKS=True, BM=block)
    v8, v_scale = _quantize(v, None, BLOCKS=True, BM=block, POWERS=True)
    scale = scale / (width if rotate else 1)
    _compute.launch(kernel, q8, k8, v8, out, lse, scale, q_scale, k_scale, v_scale, **given)


def _attend_cached(q, k, v, out, lse, causal, functions, scale, v_scale):
    wider, device = max(q.shape[3], v.shape[3]), q.device.type
    parameters = {
        "T": _CACHED[k.dtype], "TQ": TYPES[q.dtype], "OUT": TYPES[q.dtype], "D": q.shape[3], "DV": v.shape[3],
        "V_TRANSPOSED": False,
    }  # fmt: skip
    if functions is None:
        kernel, given = _find("attention_fp8", device, CAUSAL=bool(causal), **parameters), {}
    else:
        source, given = functions
        # A converted tile takes the shared memory of two, which at 256 columns leaves room for one warpgroup.
        rows = 64 if wider > 192 else 128
        kernel, _ = _find_fitting(source, device, _FUNCTION_BLOCKS[wider], BM=rows, **parameters)
    _compute.launch(kernel, q, k, v, out, lse, scale, v_scale, **given)


def _find_fitting(source, device, steps, **parameters):
    """The kernel of a source with the most keys a step for which there are registers, and how many these are."""
    *more, fewest = steps
    for step in more:
        try:
            return _find(source, device, BN=step, **parameters), step
        except CompileError as error:
            if not error.lacks_room:
                raise
    return _find(source, device, BN=fewest, **parameters), fewest


def _quantize(x, rotation, **parameters):
    """(numbers, scale of each row) of [B, H, S, D], with further parameters of quantize.tile."""
    width = x.shape[3]
    parameters = {"T": TYPES[x.dtype], "D": width, "ROTATE": rotation is not None, **parameters}
    if rotation is not None and width > 128:
        parameters["HALVES"] = True
    numbers = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty(x.shape[:3], dtype=torch.float32, device=x.device)
    kernel = _find("quantize", x.device.type, **parameters)
    kernel(x, *(() if rotation is None else (rotation,)), numbers, scales)
    return numbers, scales


@functools.lru_cache(maxsize=256)
def _find(name, device, **parameters):
    """The compiled kernel of a source that ships, or of a text, or its form for the interpreter on the CPU."""
    source = name if _variants.is_source(name) else _library.find_source(name)
    return (_compile.compile if device == "cuda" else Program)(source, **parameters)


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
