"""Attention for PyTorch.

    from tessera.torch import attention
    out = attention(q, k, v, causal=True)                       # [B, H, S, D]
    out, lse = attention(q, k, v, layout="BSHD", window=(256, 0), return_lse=True)

`attention_fp8` does it with numbers of 8 bits. `scaled_dot_product_attention`, `flex_attention`, `flash_attn_func` and its
packed forms take what the functions of these names take. `retention`, `gla`, `gated_delta_rule` and `ssd` are recurrences.
docs/pytorch.md says what is supported; what is not raises an exception that names the argument.
"""

import torch

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6):
    raise ImportError(f"tessera.torch needs torch 2.6 or newer; this is {torch.__version__}")

from . import _walks  # noqa: F401
from . import _engine_ops  # noqa: F401
from ._append import kv_append
from ._attention import attention, warm_up
from ._block_mask import BlockMask, create_block_mask
from ._bytes import attention_fp8
from ._flex import flex_attention
from ._latent import get_mla_metadata, mla_sparse, mla_with_kvcache
from ._linear import gated_delta_rule, gla, retention, ssd
from ._op import use_interpreter
from ._originals import (
    flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func, scaled_dot_product_attention,
)  # fmt: skip
from ._serving import flash_attn_with_kvcache
from ._sharding import register_sharding
from ._states import merge_states
from ._use import use
from ._varlen import flash_attn_varlen_func

__all__ = [
    "BlockMask",
    "attention",
    "attention_fp8",
    "create_block_mask",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
    "flex_attention",
    "gated_delta_rule",
    "get_mla_metadata",
    "gla",
    "kv_append",
    "merge_states",
    "mla_sparse",
    "mla_with_kvcache",
    "register_sharding",
    "retention",
    "scaled_dot_product_attention",
    "ssd",
    "use",
    "use_interpreter",
    "warm_up",
]
