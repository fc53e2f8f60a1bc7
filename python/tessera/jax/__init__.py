"""Attention for JAX: custom calls of XLA (tessera-c/Xla.h), with gradients, under jit, vmap and sharded over batch and heads.

    import tessera.jax

    out = tessera.jax.attention(q, k, v, causal=True)
"""

import jax

if jax.__version_info__ < (0, 7, 2):
    raise ImportError(f"tessera.jax needs jax 0.7.2 or newer; this is {jax.__version__}")

from ._attention import attention, warm_up
from ._block_mask import BlockMask, create_block_mask
from ._call import register, use_interpreter
from ._latent import get_mla_metadata, mla_sparse, mla_with_kvcache
from ._recurrences import gated_delta_rule, gla, retention, ssd

__all__ = [
    "BlockMask", "attention", "create_block_mask", "gated_delta_rule", "get_mla_metadata", "gla", "mla_sparse", "mla_with_kvcache",
    "register", "retention", "ssd", "use_interpreter", "warm_up",
]  # fmt: skip
