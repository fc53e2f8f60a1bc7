"""Attention through numbers of 8 bits: quantize.tile rounds Q, K and V, unless K and V have 8 bits already, and
attention_fp8.tile attends."""

import functools

import torch

from .. import _compile, _library
from .._program import Program
from . import _op
from ._types import TYPES

#: The keys of a block that has one scale, for the larger of the head dimensions, of which a step of the kernel takes all.
#: Rotating 128 columns leaves registers for 64 rows.
_BLOCKS = {64: 128, 96: 128, 128: 128, 192: 96, 256: 64}
_ROTATED_BLOCKS = {64: 128, 96: 128, 128: 64, 192: 64, 256: 64}
#: With a causal mask steps of 128 keys spill at 64 columns: (rows of a block, keys of a step).
_CAUSAL = {64: (192, 96)}


#: Names in sources of the types of 8 bits.
_CACHED = {torch.float8_e4m3fn: "f8E4M3FN", torch.float8_e5m2: "f8E5M2"}


def attention_fp8(
    q, k, v, *, causal=False, scale=None, rotate=None, seed=0, k_scale=None, v_scale=None, layout="BHSD", return_lse=False
):
    """softmax(scale * q k^T) v with q, k and v rounded to 8 bits (e4m3), and with `return_lse` also the logarithm of the
    softmax' sums, [B, H, SQ] in float32. The output has the type of q.

    q, k, v:  as for `attention`, with head dimensions of 64, 96, 128, 192 or 256. Each row of q has a scale of its own,
              and each block of keys, of 64 to 192 rows. Where k and v have 8 bits already, as caches do (float8_e4m3fn or
              float8_e5m2), nothing is rounded, and products are of the type of q.
    k_scale, v_scale: numbers of which such k and v are multiples; 1 when not given.
    causal:   a row sees the keys up to its own. The last row is aligned with the last key.
    scale:    1 / sqrt(head dimension) when not given; not 0.
    rotate:   q and k are multiplied by random signs times a Hadamard matrix before they are rounded, so that outliers
              spread over their rows (section 3.3 of the FlashAttention-3 paper). When not given, it is done for head
              dimensions 64 and 128.
    seed:     of the signs.

    Has no gradient. Raises what `attention` does.
    """
    if layout not in ("BHSD", "BSHD"):
        raise ValueError(f"argument 'layout' is {layout!r}; it is 'BHSD' or 'BSHD'")
    if layout == "BSHD":
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
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
        _attend_cached(q, k, v, out, lse, causal, scale * k_scale, v_scale)
    else:
        _attend(q, k, v, out, lse, causal, scale, rotate, seed)
    if layout == "BSHD":
        out = out.transpose(1, 2)
    return (out, lse) if return_lse else out


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
    if scale == 0:
        raise ValueError("argument 'scale' is 0, and kernels multiply infinity with it")
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError(
                f"argument '{name}' requires a gradient, and attention of 8 bits has none: call it under torch.no_grad(), or "
                "detach the argument"
            )


def _attend(q, k, v, out, lse, causal, scale, rotate, seed):
    width, wider, element_type = q.shape[3], max(q.shape[3], v.shape[3]), TYPES[q.dtype]
    block = step = min(_BLOCKS[wider], _ROTATED_BLOCKS[width] if rotate else _BLOCKS[width])
    if causal and wider in _CAUSAL:
        block, step = _CAUSAL[wider]
    rotation = _make_rotation(width, seed, q.dtype, q.device) if rotate else None
    q8, q_scale = _quantize(q, rotation)
    k8, k_scale = _quantize(k, rotation, BLOCKS=True, BM=block)
    v8, v_scale = _quantize(v, None, BLOCKS=True, BM=block, POWERS=True)
    parameters = {
        "D": width, "DV": v.shape[3], "OUT": element_type, "CAUSAL": bool(causal), "SCALES": "blocks", "V_TRANSPOSED": False, "BN": step,
    }  # fmt: skip
    kernel = _find("attention_fp8", q.device.type, tuple(parameters.items()))
    kernel(q8, k8, v8, out, lse, scale / (width if rotate else 1), q_scale, k_scale, v_scale)


def _attend_cached(q, k, v, out, lse, causal, scale, v_scale):
    parameters = {
        "T": _CACHED[k.dtype], "TQ": TYPES[q.dtype], "OUT": TYPES[q.dtype], "D": q.shape[3], "DV": v.shape[3],
        "CAUSAL": bool(causal), "V_TRANSPOSED": False,
    }  # fmt: skip
    _find("attention_fp8", q.device.type, tuple(parameters.items()))(q, k, v, out, lse, scale, v_scale)


def _quantize(x, rotation, **parameters):
    """(numbers, scale of each row) of [B, H, S, D], with further parameters of quantize.tile."""
    width = x.shape[3]
    parameters = {"T": TYPES[x.dtype], "D": width, "ROTATE": rotation is not None, **parameters}
    if rotation is not None and width > 128:
        parameters["HALVES"] = True
    numbers = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty(x.shape[:3], dtype=torch.float32, device=x.device)
    kernel = _find("quantize", x.device.type, tuple(parameters.items()))
    kernel(x, *(() if rotation is None else (rotation,)), numbers, scales)
    return numbers, scales


@functools.lru_cache(maxsize=None)
def _find(name, device, parameters):
    """The compiled kernel, or its form for the interpreter on the CPU."""
    source, kind = _library.find_source(name), _compile.compile if device == "cuda" else Program
    return kind(source, **dict(parameters))


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
