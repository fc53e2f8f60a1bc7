"""Latent attention for vLLM's models with MLA: decoding over a cache of latent rows, and prompts.

What vLLM has in common for such backends, as the projections around both, comes from it. Nothing here reads what lies on the device.
"""

from __future__ import annotations

import dataclasses

import torch
from vllm import envs
from vllm.model_executor.layers.attention.mla_attention import (
    MLACommonBackend,
    MLACommonDecodeMetadata,
    MLACommonImpl,
    MLACommonMetadata,
    MLACommonMetadataBuilder,
    QueryLenSupport,
)
from vllm.v1.attention.backend import AttentionCGSupport, AttentionType, MultipleOf
from vllm.v1.attention.backends.mla.prefill.base import MLAPrefillBackend

from .._attention._latent import BYTES, KEY, VALUE
from ..torch import flash_attn_varlen_func, get_mla_metadata, mla_with_kvcache
from . import _limits

# Keys of a part where each sequence has the same bits in any batch.
_FIXED_PART = 2048
# Rows of pages that come by bulk copies are a multiple of these.
_ROWS = 64
# Numbers of a row that are key and value, and of the key alone.
_ROW_PARTS = (VALUE, KEY - VALUE), (VALUE, 0)
# Caches whose rows are bytes, with scales in them and a part of 16 bits.
_PACKED = "fp8_ds_mla"


class TesseraMLABackend(MLACommonBackend):
    """What is taken, as `validate_configuration` asks for it."""

    supported_dtypes = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes = ["auto", "float16", "bfloat16", _PACKED]

    @staticmethod
    def get_name():
        return "TESSERA_MLA"

    @staticmethod
    def get_impl_cls():
        return TesseraMLAImpl

    @staticmethod
    def get_builder_cls():
        return TesseraMLAMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(_ROWS), MultipleOf(16)]

    @classmethod
    def get_preferred_block_size(cls, default_block_size):
        return default_block_size if default_block_size % _ROWS == 0 else _ROWS

    @staticmethod
    def get_kv_cache_shape(num_blocks, block_size, num_kv_heads, head_size, cache_dtype_str="auto"):
        return num_blocks, block_size, BYTES if cache_dtype_str == _PACKED else head_size

    @classmethod
    def supports_combination(cls, head_size, dtype, kv_cache_dtype, block_size, *others, **named):
        if kv_cache_dtype == _PACKED and dtype != torch.bfloat16:
            return f"queries of {dtype} beside rows of bytes, part of which is bfloat16; those of bfloat16 are taken"
        return None

    @classmethod
    def get_supported_head_sizes(cls):
        return [KEY, VALUE]

    @classmethod
    def supports_compute_capability(cls, capability):
        return _limits.takes_device(capability)

    @classmethod
    def supports_batch_invariance(cls):
        return True


@dataclasses.dataclass
class TesseraMLADecodeMetadata(MLACommonDecodeMetadata):
    #: How keys are divided among thread blocks, of all layers of a step.
    shares: tuple[torch.Tensor, torch.Tensor] | None = None


class TesseraMLAMetadataBuilder(MLACommonMetadataBuilder[MLACommonMetadata]):
    _cudagraph_support = AttentionCGSupport.UNIFORM_BATCH
    query_len_support = QueryLenSupport.UNIFORM

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device, MLACommonMetadata)
        self._kept = {}

    def _build_decode(
        self, block_table_tensor, seq_lens_device, max_seq_len, query_start_loc_cpu, query_start_loc_device, num_decode_tokens,
        max_query_len, dcp_tot_seq_lens_device,
    ):  # fmt: skip
        return TesseraMLADecodeMetadata(
            block_table=block_table_tensor[:, : -(-max_seq_len // self.kv_cache_spec.block_size)],
            seq_lens=seq_lens_device,
            dcp_tot_seq_lens=dcp_tot_seq_lens_device,
            shares=self._balance(seq_lens_device, num_decode_tokens // len(seq_lens_device)),
        )

    def _balance(self, lengths, queries):
        """Shares in buffers that stay, since graphs read them: one for batches of all sizes, of which one runs at a time."""
        if envs.VLLM_BATCH_INVARIANT:
            return None
        made = get_mla_metadata(lengths, queries * self.num_heads * self.dcp_world_size)
        if queries not in self._kept:
            most = self.vllm_config.scheduler_config.max_num_seqs
            self._kept[queries] = torch.empty_like(made[0]), made[1].new_empty(most + 1)
        shares, starts = self._kept[queries]
        return shares.copy_(made[0]), starts[: len(made[1])].copy_(made[1])


class LatentImpl:
    """What layers with and without lists have in common, beside what vLLM gives them."""

    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(
        self, num_heads, head_size, scale, num_kv_heads, alibi_slopes, sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
        kv_sharing_target_layer_name, **latent,
    ):  # fmt: skip
        super().__init__(
            num_heads, head_size, scale, num_kv_heads, alibi_slopes, sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
            kv_sharing_target_layer_name, **latent,
        )  # fmt: skip
        for name, value in (("slopes", alibi_slopes), ("a window", sliding_window), ("a soft cap", logits_soft_cap)):
            if value:
                raise NotImplementedError(f"tessera's latent attention takes no {name.removeprefix('a ')}: take another backend")
        if attn_type != AttentionType.DECODER:
            raise NotImplementedError(f"tessera's latent attention is that of decoders, and not of type {attn_type}")
        if (self.kv_lora_rank, self.qk_rope_head_dim) not in _ROW_PARTS:
            taken = " or ".join(f"{value} + {key}" for value, key in _ROW_PARTS)
            raise NotImplementedError(
                f"tessera's latent attention takes rows of {taken} numbers, and not of {self.kv_lora_rank} + {self.qk_rope_head_dim}"
            )
        if kv_cache_dtype == _PACKED and not self.qk_rope_head_dim:
            # vLLM would read such rows into memory for as many numbers as they stand for, and they have more.
            self.supports_dense_mha_prefill = False

    def join(self, q):
        """Queries, in two parts or one, as wide as the rows of the cache: those of bytes have numbers of the key alone in any case, which
        are 0 where the model has none."""
        q = torch.cat(q, dim=-1) if isinstance(q, tuple) else q
        return torch.nn.functional.pad(q, (0, KEY - q.shape[-1])) if self.kv_cache_dtype == _PACKED else q


class TesseraMLAImpl(LatentImpl, MLACommonImpl[MLACommonMetadata]):
    """Attention of a layer: `forward_mqa` is that of tokens, over latent rows."""

    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer):
        """Output [tokens, heads, 512] and LSE [tokens, heads] of queries [tokens, heads, 576], in two parts or one, over the cache,
        [blocks, rows, 576] or, of bytes, [blocks, rows, 656]. With rows of 512 numbers it is 512 in place of 576."""
        decode = attn_metadata.decode
        q = self.join(q)
        lengths = decode.seq_lens
        q = q.view(len(lengths), -1, *q.shape[1:])
        out, lse = mla_with_kvcache(
            q, kv_c_and_k_pe_cache.unsqueeze(2), decode.block_table, lengths, VALUE, *(decode.shares or (None, None)),
            softmax_scale=self.scale, causal=attn_metadata.causal, keys_per_part=None if decode.shares else _FIXED_PART,
        )  # fmt: skip
        return out.flatten(0, 1), lse.transpose(1, 2).flatten(0, 1)


class TesseraMLAPrefillBackend(MLAPrefillBackend):
    """Attention of prompts, whose keys and values vLLM has made of latent rows."""

    @staticmethod
    def get_name():
        return "CUSTOM"

    @classmethod
    def supports_compute_capability(cls, device_capability):
        return _limits.takes_device(device_capability)

    @classmethod
    def supports_mla_dimensions(cls, mla_dimensions):
        sizes = mla_dimensions.qk_nope_head_dim + mla_dimensions.qk_rope_head_dim, mla_dimensions.v_head_dim
        return all(map(_limits.takes_head, sizes))

    def supports_out(self):
        return True

    def run_prefill_new_tokens(self, q, k, v, return_softmax_lse, out=None, output_scale=None):
        if output_scale is not None:
            raise NotImplementedError("tessera stores no output of 8 bits")
        starts, most = self._prefill_metadata.query_start_loc, self._prefill_metadata.max_query_len
        found = self._attend(q, k, v, starts, starts, most, most, out, causal=True)
        return found if return_softmax_lse else found[0]

    def run_prefill_context_chunk(self, chunk, q, k, v, out=None):
        return self._attend(
            q, k, v, chunk.query_start_loc, chunk.cu_seq_lens, chunk.max_query_len, chunk.max_seq_len, out, causal=False
        )  # fmt: skip

    def _attend(self, q, k, v, starts, starts_k, most, most_k, out, causal):
        """Output [tokens, heads, d] and LSE [heads, tokens]."""
        found, lse, _ = flash_attn_varlen_func(
            q, k, v, starts, starts_k, most, most_k, softmax_scale=self.scale, causal=causal, return_attn_probs=True, out=out
        )  # fmt: skip
        return found, lse
