"""What bench/calls.py calls attention for: shapes of models, the grid of the FlashAttention-3 paper, and functions of scores."""

import dataclasses
import itertools

TOKENS, HIDDEN = 16384, 2048
WINDOW, DOCUMENT, CAP = 1024, 1024, 30.0


@dataclasses.dataclass(frozen=True)
class Shape:
    """A problem. The order of the fields is that of the columns of the table."""

    group: str
    name: str
    mask: str  # "full" or "causal", aligned at the last row and key
    d: int
    dv: int
    batch: int
    queries: int
    keys: int
    heads: int
    kv_heads: int

    def __str__(self):
        dims = f"d {self.d}" if self.d == self.dv else f"d {self.d}/{self.dv}"
        heads = f"{self.heads}" if self.heads == self.kv_heads else f"{self.heads}/{self.kv_heads}"
        lengths = f"{self.queries}" if self.queries == self.keys else f"{self.queries} on {self.keys}"
        return f"{self.name}: {dims} {self.mask}, {self.batch} x {lengths}, {heads} heads"

    @property
    def pairs(self):
        """Pairs of a query and a key, half of them with a causal mask, as others count."""
        return self.queries * self.keys / (2 if self.mask == "causal" else 1)

    def count_flops(self, gradients, pairs=None):
        """Of one call, where the mask leaves `pairs` of a sequence; of all pairs that the shape has otherwise."""
        forward = 2 * (self.pairs if pairs is None else pairs) * (self.d + self.dv) * self.heads * self.batch
        return 2.5 * forward if gradients else forward


def _list_paper():
    for d, mask, length in itertools.product((64, 128, 256), ("full", "causal"), (512, 1024, 2048, 4096, 8192, 16384)):
        heads = HIDDEN // d
        yield Shape("paper", "paper", mask, d, d, max(1, TOKENS // length), length, length, heads, heads)


# Name, mask, head dimension (and that of values), heads (and of keys), batch and length of each problem (and keys).
_MODELS = (
    ("Llama 3 8B", "causal", 128, (32, 8), (1, 8192), (4, 2048)),
    ("Llama 3 70B", "causal", 128, (64, 8), (1, 4096)),
    ("Llama 3.2 1B", "causal", 64, (32, 8), (2, 4096), (1, 8192)),
    ("Qwen 2.5 0.5B", "causal", 64, (14, 2), (8, 777), (1, 4096)),
    ("Qwen 2.5 7B", "causal", 128, (28, 4), (1, 4096)),
    ("Qwen 3 30B", "causal", 128, (32, 4), (2, 4096), (1, 32768)),
    ("Gemma 2 9B", "causal", 256, (16, 8), (1, 8192)),
    ("Gemma 3 4B", "causal", 256, (8, 4), (2, 2048)),
    ("gpt-oss", "causal", 64, (64, 8), (1, 4096), (2, 8192)),
    ("Phi 2", "causal", 80, (32, 32), (2, 2048)),
    ("Phi 3", "causal", 96, (32, 32), (2, 4096)),
    ("Falcon 7B", "causal", 64, (71, 1), (2, 2048)),
    ("GPT-2", "causal", 64, (12, 12), (16, 1024)),
    ("DeepSeek", "causal", (192, 128), (16, 16), (2, 4096), (1, 8192)),
    ("ViT-B", "full", 64, (12, 12), (64, 197)),
    ("ViT-L", "full", 64, (16, 16), (16, 577)),
    ("ViT-H", "full", 80, (16, 16), (8, 1025)),
    ("SigLIP", "full", 72, (16, 16), (16, 729)),
    ("Whisper", "full", 64, (20, 20), (4, 1500), (16, (448, 1500))),
    ("BERT", "full", 64, (12, 12), (32, 512), (64, 128)),
    ("BERT large", "full", 64, (16, 16), (16, 384)),
    ("SDXL", "full", 64, (10, 10), (2, 4096), (2, (4096, 77))),
    ("Flux", "full", 128, (24, 24), (1, 4608)),
    ("Wan 1.3B", "full", 128, (12, 12), (1, 32760)),
    ("Hunyuan", "full", 128, (24, 24), (1, 16640)),
    ("odd", "causal", 64, (16, 16), (7, 129), (3, 2047)),
    ("odd", "causal", 128, (16, 16), (5, 1333), (1, 6113), (3, (65, 3001))),
    ("odd", "full", 128, (16, 16), (11, 1), (2, 3001)),
)  # fmt: skip


def _list_models():
    for name, mask, dims, (heads, kv_heads), *problems in _MODELS:
        d, dv = dims if isinstance(dims, tuple) else (dims, dims)
        for batch, lengths in problems:
            queries, keys = lengths if isinstance(lengths, tuple) else (lengths, lengths)
            yield Shape("models", name, mask, d, dv, batch, queries, keys, heads, kv_heads)


GROUPS = {"paper": tuple(_list_paper()), "models": tuple(_list_models())}

# Of those what says the most in the least time.
QUICK = {"paper": (("causal", 64, 2048), ("causal", 128, 512), ("full", 128, 16384), ("causal", 256, 4096)),
         "models": ("Llama 3 8B", "Qwen 2.5 0.5B", "ViT-L", "Whisper", "DeepSeek")}  # fmt: skip


def list_shapes(groups, quick=False):
    """The shapes of the named groups, with `quick` some of them."""
    for group in groups:
        for shape in GROUPS[group]:
            key = (shape.mask, shape.d, shape.keys) if group == "paper" else shape.name
            if not quick or key in QUICK[group]:
                yield shape


def count_causal(n):
    return n * (n + 1) // 2


def count_window(n):
    return sum(min(row + 1, WINDOW) for row in range(n))


def count_documents(n):
    return n // DOCUMENT * count_causal(DOCUMENT)


@dataclasses.dataclass(frozen=True)
class Function:
    """Functions of scores and masks as PyTorch's flex_attention takes them too."""

    name: str
    #: Of (torch, shape): score_mod and mask_mod, None for one that there is not, and tensors that the score captures and that
    #: have gradients. What they capture is on the GPU.
    make: callable
    #: How many pairs of a sequence of so many tokens the mask leaves.
    pairs: callable = count_causal
    #: The mask's blocks are a list, which outlives the calls.
    has_list: bool = False
    #: The rate that it has of the plain kernel's with the same mask where nothing but its own arithmetic takes time: forward,
    #: and of gradients. None where it is not held against that.
    least: tuple | None = None


def is_causal(b, h, q, k):
    return q >= k


def _none(torch, shape):
    return None, None


def _causal(torch, shape):
    return None, is_causal


def _window(torch, shape):
    return None, lambda b, h, q, k: (q >= k) & (q - k < WINDOW)


def _prefix(torch, shape):
    length = shape.keys // 4
    return None, lambda b, h, q, k: (k < length) | (q >= k)


def count_prefix(n):
    length = n // 4
    return count_causal(n) + length * (length - 1) // 2


def _documents(torch, shape):
    numbers = torch.arange(shape.keys, device="cuda", dtype=torch.int32) // DOCUMENT
    return None, lambda b, h, q, k: (numbers[q] == numbers[k]) & (q >= k)


def _starts(torch, shape):
    starts = torch.arange(shape.keys, device="cuda", dtype=torch.int32) // DOCUMENT * DOCUMENT
    return None, lambda b, h, q, k: (k >= starts[q]) & (q >= k)


def make_slopes(torch, heads):
    return torch.exp2(-8 * torch.arange(1, heads + 1, device="cuda") / heads)


def _alibi(torch, shape):
    slopes = make_slopes(torch, shape.heads)
    return (lambda s, b, h, q, k: s - slopes[h] * (q - k)), is_causal


def _alibi_learned(torch, shape):
    slopes = make_slopes(torch, shape.heads).requires_grad_()
    return (lambda s, b, h, q, k: s - slopes[h] * (q - k)), is_causal, slopes


def _softcap(torch, shape):
    return (lambda s, b, h, q, k: CAP * torch.tanh(s / CAP)), is_causal


def _bias(torch, shape):
    bias = torch.randn((shape.queries, shape.keys), device="cuda", dtype=torch.bfloat16)
    return (lambda s, b, h, q, k: s + bias[q, k]), is_causal


def _forgetting(torch, shape):
    """Forgetting Transformer (arXiv:2503.02130): sums of the logarithms of gates."""
    gates = torch.nn.functional.logsigmoid(torch.randn((shape.batch, shape.heads, shape.keys), device="cuda") + 4).cumsum(-1)
    gates.requires_grad_()
    return (lambda s, b, h, q, k: s + gates[b, h, q] - gates[b, h, k]), is_causal, gates


def _scalable(torch, shape):
    """Scalable softmax (arXiv:2501.19399): scores times a learned number times the logarithm of the position."""
    logs = torch.log(torch.arange(1, shape.queries + 1, device="cuda", dtype=torch.float32))
    gains = torch.full((shape.heads,), 0.4, device="cuda").requires_grad_()
    return (lambda s, b, h, q, k: s * (gains[h] * logs[q])), is_causal, gains


def _qk_norm(torch, shape):
    """A learned scale for each head, as behind normalized queries and keys."""
    scales = torch.ones(shape.heads, device="cuda").requires_grad_()
    return (lambda s, b, h, q, k: s * scales[h]), is_causal, scales


def _buckets(torch, shape):
    """T5's learned bias of logarithmic buckets of distances (arXiv:1910.10683)."""
    distances = torch.arange(shape.keys, device="cuda")
    large = 16 + (torch.log(distances.clamp(min=1) / 16) / torch.log(torch.tensor(8.0)) * 16).long()
    buckets = torch.where(distances < 16, distances, large.clamp(max=31)).int()
    table = torch.randn((32, shape.heads), device="cuda").requires_grad_()
    return (lambda s, b, h, q, k: s + table[buckets[q - k], h]), is_causal, table


def _two_decays(torch, shape):
    """Two learned decays with the distance, of which each head has the larger one."""
    near, far = (make_slopes(torch, shape.heads).mul(factor).requires_grad_() for factor in (1.0, 0.25))
    return (lambda s, b, h, q, k: s - torch.maximum(near[h] * (q - k), far[h] * (q - k) + 1.0)), is_causal, near, far


FUNCTIONS = (
    Function("none", _none, lambda n: n * n), Function("causal", _causal), Function("window", _window, count_window),
    Function("prefix", _prefix, count_prefix), Function("documents by lists", _documents, count_documents, has_list=True),
    Function("documents by starts", _starts, count_documents), Function("ALiBi", _alibi, least=(0.97, 0.9)),
    Function("ALiBi, learned", _alibi_learned), Function("soft cap", _softcap), Function("bias", _bias),
    Function("forgetting gate", _forgetting, least=(0.9, 0.85)),
    Function("scalable softmax", _scalable, least=(0.9, 0.85)),
    Function("QK-norm", _qk_norm, least=(0.95, 0.85)),
    Function("T5's buckets", _buckets, least=(0.65, 0.55)),
    Function("two decays", _two_decays, least=(0.85, 0.6)),
)  # fmt: skip
