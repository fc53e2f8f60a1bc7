"""What tessera.vllm takes of vLLM, where vLLM is not installed: the interface alone, of one rank. Where it is, tests take vLLM's own."""

import abc
import contextlib
import dataclasses
import enum
import importlib.util
import sys
import types
import typing
import unittest.mock

import torch

IS_REAL = importlib.util.find_spec("vllm") is not None


class AttentionType(str, enum.Enum):
    DECODER = "decoder"
    ENCODER = "encoder"
    ENCODER_ONLY = "encoder_only"
    ENCODER_DECODER = "encoder_decoder"


@dataclasses.dataclass(frozen=True)
class MultipleOf:
    base: int


class AttentionBackend(abc.ABC):
    forward_includes_kv_cache_update = True

    @staticmethod
    @abc.abstractmethod
    def get_name(): ...

    @staticmethod
    @abc.abstractmethod
    def get_impl_cls(): ...

    @staticmethod
    @abc.abstractmethod
    def get_builder_cls(): ...


@dataclasses.dataclass
class CommonAttentionMetadata:
    query_start_loc: torch.Tensor
    query_start_loc_cpu: torch.Tensor
    seq_lens: torch.Tensor
    num_reqs: int
    num_actual_tokens: int
    max_query_len: int
    max_seq_len: int
    block_table_tensor: torch.Tensor
    slot_mapping: torch.Tensor
    causal: bool | torch.Tensor = True
    mm_req_doc_ranges: dict | None = None
    rswa_prefix_lens: torch.Tensor | None = None
    seq_lens_cpu_upper_bound: torch.Tensor | None = None
    _token_to_req_indices_cache: torch.Tensor | None = None


class AttentionCGSupport(enum.Enum):
    ALWAYS = 3
    UNIFORM_BATCH = 2
    NEVER = 0


Metadata = typing.TypeVar("Metadata")


class AttentionMetadataBuilder(abc.ABC, typing.Generic[Metadata]):
    @abc.abstractmethod
    def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
        self.kv_cache_spec, self.layer_names, self.vllm_config, self.device = kv_cache_spec, layer_names, vllm_config, device

    def _init_reorder_batch_threshold(self, threshold, supports_spec_as_decode=False, supports_dcp_with_varlen=False):
        self.reorder_batch_threshold = threshold

    @abc.abstractmethod
    def build(self, common_prefix_len, common_attn_metadata, fast_build=False): ...


class AttentionImpl(abc.ABC, typing.Generic[Metadata]):
    def __new__(cls, *_, **__):
        self = super().__new__(cls)
        self.dcp_world_size, self.dcp_rank = sys.modules["vllm.distributed.parallel_state"].get_dcp_world_size_and_rank()
        return self

    @abc.abstractmethod
    def __init__(self, num_heads, head_size, scale): ...

    @abc.abstractmethod
    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output): ...


def split_decodes_and_prefills(common, decode_threshold):
    counts = common.query_start_loc_cpu.diff()
    is_prefill = (counts > decode_threshold).tolist()
    decodes = is_prefill.index(True) if True in is_prefill else common.num_reqs
    return decodes, common.num_reqs - decodes, 0, 0


def get_dcp_local_seq_lens(lengths, ranks, rank, interleave):
    rounds, rest = lengths // (ranks * interleave), lengths % (ranks * interleave)
    return rounds * interleave + (rest - rank * interleave).clamp(0, interleave)


class QueryLenSupport(enum.Enum):
    UNIFORM = "uniform"


class MLACommonBackend(AttentionBackend):
    @classmethod
    def customize_spec(cls, spec):
        return spec

    @classmethod
    def is_mla(cls):
        return True

    @classmethod
    def is_sparse(cls):
        return False


@dataclasses.dataclass
class MLACommonDecodeMetadata:
    block_table: torch.Tensor
    seq_lens: torch.Tensor
    dcp_tot_seq_lens: torch.Tensor | None


@dataclasses.dataclass
class MLACommonMetadata:
    num_actual_tokens: int
    num_decodes: int
    num_decode_tokens: int
    num_prefills: int
    causal: bool
    decode: typing.Any


class MLACommonMetadataBuilder(AttentionMetadataBuilder[Metadata]):
    dcp_world_size = 1

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device, metadata_cls, supports_dcp_with_varlen=False):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        self.metadata_cls, self.reorder_batch_threshold = metadata_cls, 1
        self.num_heads = vllm_config.model_config.get_num_attention_heads(vllm_config.parallel_config)

    def build(self, common_prefix_len, common, fast_build=False):
        decodes, prefills, _, _ = split_decodes_and_prefills(common, self.reorder_batch_threshold)
        starts, tokens, decode = common.query_start_loc_cpu, int(common.query_start_loc_cpu[decodes]), None
        if decodes:
            decode = self._build_decode(
                block_table_tensor=common.block_table_tensor[:decodes], seq_lens_device=common.seq_lens[:decodes],
                max_seq_len=common.max_seq_len, query_start_loc_cpu=starts[: decodes + 1],
                query_start_loc_device=common.query_start_loc[: decodes + 1], num_decode_tokens=tokens,
                max_query_len=min(common.max_query_len, self.reorder_batch_threshold), dcp_tot_seq_lens_device=None,
            )  # fmt: skip
        return self.metadata_cls(common.num_actual_tokens, decodes, tokens, prefills, True, decode)


class MLACommonImpl(AttentionImpl[Metadata]):
    supports_dense_mha_prefill = True

    def __init__(
        self, num_heads, head_size, scale, num_kv_heads, alibi_slopes, sliding_window, kv_cache_dtype, logits_soft_cap, attn_type,
        kv_sharing_target_layer_name, kv_lora_rank, qk_rope_head_dim, **latent,
    ):  # fmt: skip
        self.num_heads, self.scale, self.kv_cache_dtype = num_heads, scale, kv_cache_dtype
        self.kv_lora_rank, self.qk_rope_head_dim = kv_lora_rank, qk_rope_head_dim

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output):
        raise NotImplementedError

    @abc.abstractmethod
    def forward_mqa(self, q, kv_c_and_k_pe_cache, attn_metadata, layer): ...


@dataclasses.dataclass(kw_only=True)
class SparseMLACommonMetadata:
    num_actual_tokens: int
    num_decode_tokens: int
    block_table: torch.Tensor
    req_id_per_token: torch.Tensor
    block_size: int
    cp_kv_cache_interleave_size: int = 1


class SparseMLACommonMetadataBuilder(AttentionMetadataBuilder[Metadata]):
    def build(self, common_prefix_len, common, fast_build=False):
        decodes = split_decodes_and_prefills(common, self.reorder_batch_threshold)[0]
        return self.metadata_cls(
            num_actual_tokens=common.num_actual_tokens, num_decode_tokens=int(common.query_start_loc_cpu[decodes]),
            block_table=common.block_table_tensor, req_id_per_token=common._token_to_req_indices_cache,
            block_size=self.kv_cache_spec.block_size,
        )  # fmt: skip


class SparseMLACommonImpl(MLACommonImpl[Metadata]):
    is_sparse, pcp_world_size = True, 1

    def __init__(self, *layer, indexer=None, topk_indices_buffer=None, **latent):
        super().__init__(*layer, **latent)
        self.topk_indices_buffer = topk_indices_buffer if indexer is None else indexer.topk_indices_buffer
        self.index_group = None


class HiSparseMLAIndexGroup:
    pass


def align_blocks_to_rows(spec):
    return dataclasses.replace(spec, block_stride_alignment=spec.state_content_size_bytes)


def flat_kv_row_view(cache, rows):
    blocks, _, width = cache.shape
    between = cache.stride(0) // width
    return cache.as_strided(((blocks - 1) * between + rows, width), (width, 1)), between


class MLAPrefillBackend(abc.ABC):
    def __init__(self, num_heads, scale, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, vllm_config):
        self.num_heads, self.scale = num_heads, scale

    def prepare_metadata(self, prefill_metadata):
        self._prefill_metadata = prefill_metadata

    @staticmethod
    @abc.abstractmethod
    def get_name(): ...

    @abc.abstractmethod
    def run_prefill_new_tokens(self, q, k, v, return_softmax_lse, out=None, output_scale=None): ...

    @abc.abstractmethod
    def run_prefill_context_chunk(self, chunk, q, k, v, out=None): ...


VLLM_BATCH_INVARIANT = False


class _Registry(enum.Enum):
    def is_overridden(self):
        return self in _registered

    def get_path(self):
        return _registered.get(self, self.value)

    def clear_override(self):
        _registered.pop(self, None)

    @classmethod
    def register(cls, name, value):
        member = object.__new__(cls)
        member._name_, member._value_ = name, value
        cls._member_map_[name] = member
        cls._member_names_.append(name)
        return member


class AttentionBackendEnum(_Registry):
    CUSTOM = None


class MLAPrefillBackendEnum(_Registry):
    CUSTOM = None


_registered = {}
register_backend = register_mla_prefill_backend = _registered.__setitem__


# Kernels, in whose place tests have functions.
triton_convert_req_index_to_global_index = triton_filter_and_convert_dcp_index = None


@contextlib.contextmanager
def configure(module, config):
    """While a layer or a builder of vLLM's own is made, what `module` asks an engine or a device for."""
    asked = {"get_current_vllm_config": lambda: config, "get_tensor_model_parallel_world_size": lambda: 1, "PIN_MEMORY": False}
    with contextlib.ExitStack() as patches:
        for name, value in asked.items() if IS_REAL else ():
            place = f"vllm.model_executor.layers.attention.{module}.{name}"
            patches.enter_context(unittest.mock.patch(place, value, create=True))
        yield


def install():
    """Lets `import vllm...` find these where there is no vLLM."""
    if IS_REAL:
        return
    own = globals()
    modules = {
        "v1.attention.backend": (
            "AttentionBackend",
            "AttentionCGSupport",
            "AttentionImpl",
            "AttentionMetadataBuilder",
            "AttentionType",
            "CommonAttentionMetadata",
            "MultipleOf",
        ),
        "v1.attention.backends.utils": ("split_decodes_and_prefills", "get_dcp_local_seq_lens"),
        "v1.attention.backends.registry": ("AttentionBackendEnum", "register_backend"),
        "v1.attention.backends.mla.prefill.base": ("MLAPrefillBackend",),
        "v1.attention.backends.mla.prefill.registry": ("MLAPrefillBackendEnum", "register_mla_prefill_backend"),
        "model_executor.layers.attention.mla_attention": (
            "MLACommonBackend",
            "MLACommonDecodeMetadata",
            "MLACommonImpl",
            "MLACommonMetadata",
            "MLACommonMetadataBuilder",
            "QueryLenSupport",
        ),
        "model_executor.layers.attention.sparse_mla_attention": (
            "SparseMLACommonImpl",
            "SparseMLACommonMetadata",
            "SparseMLACommonMetadataBuilder",
        ),
        "v1.attention.backends.mla.index_group": ("HiSparseMLAIndexGroup",),
        "v1.attention.backends.mla.sparse_utils": (
            "align_blocks_to_rows",
            "flat_kv_row_view",
            "triton_convert_req_index_to_global_index",
            "triton_filter_and_convert_dcp_index",
        ),
        "envs": ("VLLM_BATCH_INVARIANT",),
        "v1.attention.ops.dcp": (),
        "distributed.parallel_state": (),
    }
    for path, names in modules.items():
        parts = ["vllm", *path.split(".")]
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            if name not in sys.modules:
                sys.modules[name] = types.ModuleType(name)
                if end > 1:
                    setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], sys.modules[name])
        vars(sys.modules[name]).update({key: own[key] for key in names})
    sys.modules["vllm.distributed.parallel_state"].get_dcp_world_size_and_rank = lambda enabled=True: (1, 0)
    sys.modules["vllm.distributed.parallel_state"].get_dcp_group = None
    sys.modules["vllm.v1.attention.ops.dcp"].cp_lse_ag_out_rs = None
