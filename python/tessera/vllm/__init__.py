"""Attention backends for vLLM.

vLLM loads it by itself where this package is installed (the entry point `vllm.general_plugins`), and takes it where it is asked to:

    vllm serve MODEL --attention-backend CUSTOM

and, of models with latent attention (MLA),

    vllm serve MODEL --attention-backend TESSERA_MLA -ac.mla_prefill_backend=CUSTOM

and TESSERA_MLA_SPARSE in place of TESSERA_MLA where an indexer lists the keys of each query.

docs/serving.md says what it takes.
"""

__all__ = ["register"]

# Backends of latent attention by the names that vLLM finds them by.
_LATENT = {
    "TESSERA_MLA": "tessera.vllm._latent.TesseraMLABackend",
    "TESSERA_MLA_SPARSE": "tessera.vllm._sparse.TesseraMLASparseBackend",
}


def register() -> None:
    """Makes the backend vLLM's CUSTOM one, and that of prompts of MLA too, unless another package has. It may be called many times."""
    from vllm.v1.attention.backends.mla.prefill.registry import MLAPrefillBackendEnum, register_mla_prefill_backend
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    if not AttentionBackendEnum.CUSTOM.is_overridden():
        register_backend(AttentionBackendEnum.CUSTOM, "tessera.vllm._backend.TesseraBackend")
    if not MLAPrefillBackendEnum.CUSTOM.is_overridden():
        register_mla_prefill_backend(MLAPrefillBackendEnum.CUSTOM, "tessera.vllm._latent.TesseraMLAPrefillBackend")
    for name, path in _LATENT.items():
        if name not in AttentionBackendEnum.__members__:
            AttentionBackendEnum.register(name, path)
