"""Latent attention for vLLM's models with sparse MLA (DeepSeek-V3.2), whose indexer lists the keys that each query sees.

A list has numbers of tokens of a request. What vLLM has in common for such backends makes rows of the cache of them. Nothing here reads
what lies on the device.
"""

from __future__ import annotations

from vllm.model_executor.layers.attention.sparse_mla_attention import (
    SparseMLACommonImpl,
    SparseMLACommonMetadata,
    SparseMLACommonMetadataBuilder,
)
from vllm.v1.attention.backend import AttentionCGSupport
from vllm.v1.attention.backends.mla.index_group import HiSparseMLAIndexGroup
from vllm.v1.attention.backends.mla.sparse_utils import (
    align_blocks_to_rows,
    flat_kv_row_view,
    triton_convert_req_index_to_global_index,
    triton_filter_and_convert_dcp_index,
)

from ..torch import mla_sparse
from ._latent import LatentImpl, TesseraMLABackend


class TesseraMLASparseBackend(TesseraMLABackend):
    """What is taken, as `validate_configuration` asks for it."""

    @staticmethod
    def get_name():
        return "TESSERA_MLA_SPARSE"

    @staticmethod
    def get_impl_cls():
        return TesseraMLASparseImpl

    @staticmethod
    def get_builder_cls():
        return TesseraMLASparseMetadataBuilder

    @classmethod
    def is_sparse(cls):
        return True

    @classmethod
    def customize_spec(cls, spec):
        # A list names rows of all blocks, so that a block begins a whole number of rows behind the one before.
        return align_blocks_to_rows(super().customize_spec(spec))

    @classmethod
    def supports_batch_invariance(cls):
        # The order of a list is the indexer's own, and sums follow it.
        return False


class TesseraMLASparseMetadataBuilder(SparseMLACommonMetadataBuilder[SparseMLACommonMetadata]):
    # Whether prompts are few keys, which are attended to without lists, is a question of the host.
    _cudagraph_support = AttentionCGSupport.UNIFORM_BATCH
    metadata_cls = SparseMLACommonMetadata

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        # A query's keys are those of its list, whatever the queries beside it see.
        self._init_reorder_batch_threshold(1, supports_spec_as_decode=True, supports_dcp_with_varlen=True)


class TesseraMLASparseImpl(LatentImpl, SparseMLACommonImpl[SparseMLACommonMetadata]):
    """Attention of a layer: `forward_mqa` is that of tokens, each over the rows of its list."""

    supports_mtp_with_cp_non_trivial_interleave_size = True

    def __init__(self, *layer, **named):
        super().__init__(*layer, **named)
        if self.topk_indices_buffer is None:
            raise ValueError("sparse latent attention needs an indexer, or its 'topk_indices_buffer': this layer has neither")
        if isinstance(self.index_group, HiSparseMLAIndexGroup):
            raise NotImplementedError("tessera's latent attention is over a cache on the device: leave out hisparse_config")
        if self.dcp_world_size > 1 and self.pcp_world_size > 1:
            raise NotImplementedError("tessera's latent attention takes context parallelism of prompts or of decoding, and not both")

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        """Output [tokens, heads, 512] and LSE [tokens, heads] of queries [tokens, heads, 576], in two parts or one, over the cache,
        [blocks, rows, 576] or, of bytes, [blocks, rows, 656]. With rows of 512 numbers it is 512 in place of 576."""
        q = self.join(q)
        rows, between = flat_kv_row_view(kv_c_and_k_pe_cache, attn_metadata.block_size)
        lists, counts = self._find_rows(self.topk_indices_buffer[: len(q)], attn_metadata, between)
        out, _, lse = mla_sparse(q, rows.unsqueeze(1), lists.unsqueeze(1), self.scale, topk_length=counts)
        return out, lse

    def _find_rows(self, tokens, metadata, between):
        """Rows of the cache for lists of tokens, int32, [tokens, topk], with those that count in front, and how many they are. A block
        begins `between` rows behind the one before."""
        if self.dcp_world_size == 1 and metadata.num_decode_tokens == metadata.num_actual_tokens == len(tokens):
            # Once for all layers that share an indexer.
            return self._convert_logical_to_physical_topk(tokens, metadata, block_stride_rows=between, return_valid_counts=True)
        options = {
            "BLOCK_SIZE": metadata.block_size, "BLOCK_STRIDE_ROWS": between, "NUM_TOPK_TOKENS": tokens.shape[1],
            "return_valid_counts": True,
        }  # fmt: skip
        requests = metadata.req_id_per_token[: len(tokens)]
        if self.dcp_world_size == 1:
            return triton_convert_req_index_to_global_index(requests, metadata.block_table, tokens, **options)
        return triton_filter_and_convert_dcp_index(
            requests, metadata.block_table, tokens, dcp_size=self.dcp_world_size, dcp_rank=self.dcp_rank,
            cp_kv_cache_interleave_size=metadata.cp_kv_cache_interleave_size, **options,
        )  # fmt: skip
