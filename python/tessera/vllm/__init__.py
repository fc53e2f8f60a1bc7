"""An attention backend for vLLM.

vLLM loads it by itself where this package is installed (the entry point `vllm.general_plugins`), and takes it where it is asked to:

    vllm serve MODEL --attention-backend CUSTOM

docs/serving.md says what it takes.
"""

__all__ = ["register"]


def register() -> None:
    """Makes the backend vLLM's CUSTOM one, unless another package has. It may be called many times."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    if not AttentionBackendEnum.CUSTOM.is_overridden():
        register_backend(AttentionBackendEnum.CUSTOM, "tessera.vllm._backend.TesseraBackend")
