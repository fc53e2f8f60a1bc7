"""What vLLM asks of an attention backend: what it takes, the metadata of a step, and attention of a layer.

Nothing here reads what lies on the device, and what is launched follows from shapes and from bounds that vLLM has on the host. So any
batch is captured in graphs.
"""

from __future__ import annotations

import dataclasses

import torch
from vllm import envs
from vllm.distributed.parallel_state import get_dcp_group, get_dcp_world_size_and_rank
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)
from vllm.v1.attention.backends.utils import get_dcp_local_seq_lens, split_decodes_and_prefills
from vllm.v1.attention.ops import dcp

from ..torch import flash_attn_varlen_func, flash_attn_with_kvcache, kv_append, merge_states
from . import _limits

# Caches of 8 bits, whose elements stand for as much as a number of each layer says.
_SHORT = "fp8", "fp8_e4m3"
# Attention of packed sequences, without a cache.
_OF_ENCODERS = AttentionType.ENCODER, AttentionType.ENCODER_ONLY


class TesseraBackend(AttentionBackend):
    """What is taken, as `validate_configuration` asks for it."""

    supported_dtypes = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes = ["auto", "float16", "bfloat16", "fp8", "fp8_e4m3"]
    forward_includes_kv_cache_update = False

    @staticmethod
    def get_name():
        return "CUSTOM"

    @staticmethod
    def get_impl_cls():
        return TesseraImpl

    @staticmethod
    def get_builder_cls():
        return TesseraMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec=None):
        return [MultipleOf(8)]

    @classmethod
    def supports_head_size(cls, head_size):
        return _limits.takes_head(head_size)

    @classmethod
    def supports_attn_type(cls, attn_type):
        return attn_type in (AttentionType.DECODER, AttentionType.ENCODER_DECODER, *_OF_ENCODERS)

    @classmethod
    def supports_compute_capability(cls, capability):
        return _limits.takes_device(capability)

    @classmethod
    def supports_sink(cls):
        return True

    @classmethod
    def supports_sliding_window(cls):
        return True

    @classmethod
    def supports_batch_invariance(cls):
        return True

    @classmethod
    def supports_rswa(cls):
        return True

    @classmethod
    def supports_non_causal(cls):
        return True


@dataclasses.dataclass
class TesseraMetadata:
    """A step. The first `num_decodes` requests have at most `decode_query_len` queries each."""

    num_actual_tokens: int
    max_query_len: int
    max_seq_len: int
    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    slot_mapping: torch.Tensor
    causal: bool | torch.Tensor
    #: Of how many first keys of each request a window hides none, and that window, where a model has both.
    prefix_lens: torch.Tensor | None = None
    prefix_window: int | None = None
    num_decodes: int = 0
    decode_query_len: int = 0
    #: How many keys before its queries this rank has of each request, where the ranks of a group share the cache.
    context_lens: torch.Tensor | None = None


class TesseraMetadataBuilder(AttentionMetadataBuilder[TesseraMetadata]):
    _cudagraph_support = AttentionCGSupport.ALWAYS

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self._init_reorder_batch_threshold(1, supports_spec_as_decode=True, supports_dcp_with_varlen=True)
        self._ranks, self._rank = get_dcp_world_size_and_rank(getattr(kv_cache_spec, "dcp_sharded", True))
        if self._ranks > 1:
            self._interleave = vllm_config.parallel_config.cp_kv_cache_interleave_size
        self._window = getattr(getattr(vllm_config, "model_config", None), "rswa_window", None)
        # Otherwise metadata refers to the buffers that vLLM keeps, and nothing else.
        self.supports_draft_decode_metadata_update = self._ranks == 1 and self._window is None
        self._kept = {}

    def _make(self, common):
        if common.mm_req_doc_ranges is not None:
            raise NotImplementedError("tessera takes no ranges of image tokens")
        if common.rswa_prefix_lens is not None and self._ranks > 1:
            raise NotImplementedError("decode context parallelism gives each rank other keys, which a prefix before a window does not know")
        context_lens, most = None, common.max_seq_len
        if self._ranks > 1:
            before = common.seq_lens - common.query_start_loc.diff()
            context_lens = self._keep("context", get_dcp_local_seq_lens(before, self._ranks, self._rank, self._interleave))
            most = -(-most // (self._ranks * self._interleave)) * self._interleave
        return TesseraMetadata(
            num_actual_tokens=common.num_actual_tokens,
            max_query_len=common.max_query_len,
            max_seq_len=most,
            query_start_loc=common.query_start_loc,
            seq_lens=common.seq_lens,
            block_table=common.block_table_tensor,
            slot_mapping=common.slot_mapping,
            causal=self._keep("causal", common.causal),
            prefix_lens=self._keep("prefix", common.rswa_prefix_lens),
            context_lens=context_lens,
            prefix_window=self._window,
        )

    def _keep(self, name, numbers):
        """Numbers of requests in a buffer that stays, since graphs read it; others as they are."""
        if not isinstance(numbers, torch.Tensor):
            return numbers
        if name not in self._kept:
            count = self.vllm_config.scheduler_config.max_num_seqs
            self._kept[name] = torch.zeros(count, dtype=torch.int32, device=self.device)
        return self._kept[name][: len(numbers)].copy_(numbers)

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        metadata = self._make(common_attn_metadata)
        # Requests with few queries are a launch of their own, which may divide their keys.
        threshold = self.reorder_batch_threshold
        if metadata.max_query_len > threshold and self._ranks == 1 and not envs.VLLM_BATCH_INVARIANT:
            metadata.num_decodes = split_decodes_and_prefills(common_attn_metadata, threshold)[0]
            metadata.decode_query_len = threshold
        return metadata

    def build_for_cudagraph_capture(self, common_attn_metadata):
        # Where decodes end is the batch's own, and a graph is replayed for others.
        return self._make(common_attn_metadata)

    def update_draft_decode_metadata(self, metadata):
        pass


class TesseraImpl(AttentionImpl[TesseraMetadata]):
    """Attention of a layer."""

    supports_dcp = True
    can_return_lse_for_decode = True

    def __init__(
        self,
        num_heads,
        head_size,
        scale,
        num_kv_heads=None,
        alibi_slopes=None,
        sliding_window=None,
        kv_cache_dtype="auto",
        logits_soft_cap=None,
        attn_type=AttentionType.DECODER,
        kv_sharing_target_layer_name=None,
        sinks=None,
    ):
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype = kv_cache_dtype
        #: Whether the cache has 8 bits.
        self.is_short = kv_cache_dtype in _SHORT
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.attn_type = attn_type
        self.sliding_window = sliding_window
        self.softcap = logits_soft_cap or 0.0
        self.slopes = None if alibi_slopes is None else torch.tensor(alibi_slopes, dtype=torch.float32)
        self.sinks = sinks
        #: Then one kernel serves all requests, whatever the batch is.
        self.is_invariant = bool(envs.VLLM_BATCH_INVARIANT)
        if self.dcp_world_size > 1 and not (sliding_window is alibi_slopes is sinks is None):
            raise NotImplementedError(
                "decode context parallelism gives each rank other keys, which windows, slopes and sinks do not know: leave it out for "
                "this model, or take another backend"
            )
        if self.dcp_world_size > 1 and self.is_short:
            raise NotImplementedError("decode context parallelism takes caches of 16 bits: leave kv_cache_dtype out")

    def process_weights_after_loading(self, act_dtype):
        if self.sinks is not None:
            self.sinks = self.sinks.detach().to(torch.float32)

    def _name_masks(self, causal):
        if self.sliding_window is None:
            window = (-1, -1)
        else:
            left = self.sliding_window - 1
            window = (left, 0 if causal is True else left)
        named = {"causal": causal, "window_size": window, "softmax_scale": self.scale, "softcap": self.softcap}
        return {**named, "alibi_slopes": self.slopes, "sinks": self.sinks}

    def forward(
        self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, output_block_scale=None
    ):  # fmt: skip
        """Attention of query [tokens, heads, d] over the cache, [blocks, heads, rows, 2 d], with a key and its value side by side."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("tessera stores no output of 8 bits")
        if attn_metadata is None:
            return output.fill_(0)  # A run that measures memory.
        count, starts = attn_metadata.num_actual_tokens, attn_metadata.query_start_loc
        query, out = query[:count], output[:count].view(count, self.num_heads, self.head_size)
        if self.attn_type in _OF_ENCODERS:
            most = attn_metadata.max_query_len
            masks = self._name_masks(causal=False)
            flash_attn_varlen_func(
                query, key[:count], value[:count], starts, starts, most, most, out=out, invariant=self.is_invariant, **masks
            )  # fmt: skip
            return output
        caches, masks = self._split(kv_cache), self._name_masks(attn_metadata.causal)
        if self.is_short:
            requests = len(attn_metadata.seq_lens)
            masks.update(
                k_descale=layer._k_scale.expand(requests, self.num_kv_heads), v_descale=layer._v_scale.expand(requests, self.num_kv_heads)
            )
        if attn_metadata.prefix_lens is not None and self.sliding_window is None:
            masks["window_size"] = (attn_metadata.prefix_window - 1, 0)
        if attn_metadata.context_lens is not None:
            self._attend_shared(query, key[:count], value[:count], caches, attn_metadata, out, masks)
            return output
        decodes = attn_metadata.num_decodes
        if decodes:
            self._attend(query, caches, attn_metadata, slice(decodes), attn_metadata.decode_query_len, out, masks)
        self._attend(query, caches, attn_metadata, slice(decodes, None), attn_metadata.max_query_len, out, masks)
        return output

    def _attend(self, query, caches, metadata, requests, most, out, masks):
        """Attention of some requests with at most `most` queries each."""
        lengths, table = metadata.seq_lens[requests], self._find_table(caches, metadata)[requests]
        if isinstance(metadata.causal, torch.Tensor):
            masks = {**masks, "causal": metadata.causal[requests]}
        if metadata.prefix_lens is not None and self.sliding_window is None:
            masks = {**masks, "prefix_lens": metadata.prefix_lens[requests]}
        if self.is_short:
            masks = {**masks, **{name: masks[name][requests] for name in ("k_descale", "v_descale")}}
        if requests.start is None and most == 1 and len(lengths) <= len(query) and not self.is_invariant:
            # Request i has query i: vLLM pads with requests behind the others, whose rows nobody reads.
            batch = len(lengths)
            flash_attn_with_kvcache(
                query[:batch, None], *caches, cache_seqlens=lengths, page_table=table, out=out[:batch, None], **masks
            )  # fmt: skip
            return
        starts = metadata.query_start_loc[requests.start or 0 : None if requests.stop is None else requests.stop + 1]
        flash_attn_varlen_func(
            query, *caches, starts, None, most, 0, seqused_k=lengths, block_table=table, out=out, invariant=self.is_invariant,
            **masks,
        )  # fmt: skip

    def _attend_shared(self, query, key, value, caches, metadata, out, masks):
        """Attention over a cache of which each rank of a group has other keys. A rank attends to its own with the heads of all; then
        those of its own heads are joined with what the new keys give, which each rank has."""
        starts, most, group = metadata.query_start_loc, metadata.max_query_len, get_dcp_group()
        context, context_lse, _ = flash_attn_varlen_func(
            group.all_gather(query.contiguous(), dim=1), *caches, starts, None, most, 0, seqused_k=metadata.context_lens,
            block_table=self._find_table(caches, metadata), return_attn_probs=True, invariant=self.is_invariant,
            **{**masks, "causal": False},
        )  # fmt: skip
        context, context_lse = dcp.cp_lse_ag_out_rs(context, context_lse.t().contiguous(), group, return_lse=True)
        own, own_lse, _ = flash_attn_varlen_func(
            query, key, value, starts, starts, most, most, return_attn_probs=True, invariant=self.is_invariant, **masks
        )  # fmt: skip
        lses = torch.stack((context_lse.t(), own_lse))
        out.copy_(merge_states(torch.stack((context, own))[:, None], lses[:, None])[0][0])

    @staticmethod
    def _find_table(caches, metadata):
        """The part of the table that lengths reach: how keys are divided follows from it."""
        return metadata.block_table[:, : -(-metadata.max_seq_len // caches[0].shape[1])]

    def _split(self, kv_cache):
        """Keys and values, [blocks, rows, heads, d]."""
        if self.is_short and kv_cache.dtype == torch.uint8:
            kv_cache = kv_cache.view(torch.float8_e4m3fn)
        return kv_cache.transpose(1, 2).split(self.head_size, dim=-1)

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        if self.attn_type in _OF_ENCODERS or not kv_cache.numel():
            return
        count = len(slot_mapping)
        scales = {"k_scale": layer._k_scale.view(1), "v_scale": layer._v_scale.view(1)} if self.is_short else {}
        kv_append(key[:count], value[:count], *self._split(kv_cache), slot_mapping, **scales)
