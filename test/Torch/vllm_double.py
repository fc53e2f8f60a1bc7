"""What tessera.vllm takes of vLLM, where vLLM is not installed: the interface alone, of one rank. Where it is, tests take vLLM's own."""

import abc
import dataclasses
import enum
import importlib.util
import sys
import types
import typing

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


class AttentionCGSupport(enum.Enum):
    ALWAYS = 3
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


class AttentionBackendEnum(enum.Enum):
    CUSTOM = None

    def is_overridden(self):
        return self in _registered

    def get_path(self):
        return _registered[self]

    def clear_override(self):
        _registered.pop(self, None)


_registered = {}


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
        "v1.attention.backends.registry": ("AttentionBackendEnum",),
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
    sys.modules["vllm.v1.attention.backends.registry"].register_backend = _registered.__setitem__
    sys.modules["vllm.distributed.parallel_state"].get_dcp_world_size_and_rank = lambda enabled=True: (1, 0)
    sys.modules["vllm.distributed.parallel_state"].get_dcp_group = None
    sys.modules["vllm.v1.attention.ops.dcp"].cp_lse_ag_out_rs = None
