"""Attention through public functions: ours, and those of the packages that bench/calls.py holds it against. Each is a function
of q, k and v, [B, S, H, D], that gives the output [B, S, H, DV], with gradients where there are some.

fa3      flash_attn_interface (FlashAttention-3, package tokenspeed-fa3 or FlashAttention's own), else fa3_fwd_interface
fa4      flash_attn.cute (FlashAttention-4, package flash-attn-4)
cudnn    PyTorch's scaled_dot_product_attention by cuDNN
flash, triton: FlexAttention by its two backends, compiled; for functions of scores
"""

import functools
import importlib

NAMES = ("fa3", "fa4", "cudnn")
FLEX = ("flash", "triton")


class Unavailable(Exception):
    """Why a peer does not run a problem."""


def _turn(x):
    return x.transpose(1, 2)


def make_own(shape, function=None, block_mask=None):
    """`attention` of a shape's mask, or of (score_mod, mask_mod)."""
    from tessera.torch import attention

    given = {"causal": shape.mask == "causal"}
    if function is not None:
        score_mod, mask_mod = function
        given = {"score_mod": score_mod, **({"mask_mod": mask_mod} if block_mask is None else {"block_mask": block_mask})}
    return functools.partial(attention, layout="BSHD", **given)


def make_fp8(shape):
    from tessera.torch import attention_fp8

    return functools.partial(attention_fp8, layout="BSHD", causal=shape.mask == "causal")


def _import_first(*names):
    for name in names:
        try:
            return importlib.import_module(name).flash_attn_func
        except (ImportError, AttributeError):
            continue
    raise Unavailable(f"none of {', '.join(names)} can be imported")


def _take_first(results):
    return results[0] if isinstance(results, (tuple, list)) else results


def make_fa3(shape, gradients):
    function = _import_first("flash_attn_interface", *(() if gradients else ("fa3_fwd_interface",)))
    return lambda q, k, v: _take_first(function(q, k, v, causal=shape.mask == "causal"))


def make_fa4(shape, gradients):
    function = _import_first("flash_attn.cute")
    return lambda q, k, v: _take_first(function(q, k, v, causal=shape.mask == "causal"))


def make_cudnn(shape, gradients):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if shape.mask == "causal" and shape.queries != shape.keys:
        raise Unavailable("its causal mask is aligned at the first row")
    grouped = {"enable_gqa": True} if shape.kv_heads != shape.heads else {}

    def run(q, k, v):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            out = torch.nn.functional.scaled_dot_product_attention(
                _turn(q), _turn(k), _turn(v), is_causal=shape.mask == "causal", **grouped
            )
        return _turn(out)

    return run


MAKERS = {"fa3": make_fa3, "fa4": make_fa4, "cudnn": make_cudnn}


def make_flex(shape, function, backend):
    """FlexAttention of (score_mod, mask_mod), compiled, with a list of blocks that is made before."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    score_mod, mask_mod = function
    blocks = None if mask_mod is None else create_block_mask(mask_mod, None, None, shape.queries, shape.keys)
    torch._dynamo.reset()  # PyTorch keeps what it compiled by the code object and gives up after eight for one.

    def attend(q, k, v):
        grouped = shape.kv_heads != shape.heads
        options = {"BACKEND": backend.upper()}
        out = flex_attention(
            _turn(q), _turn(k), _turn(v), score_mod=score_mod, block_mask=blocks, enable_gqa=grouped, kernel_options=options
        )
        return _turn(out)

    return torch.compile(attend, dynamic=False, fullgraph=True)
