"""Checks latent attention on the GPU, as PyTorch calls it, against f64: pages of any rows, lists, rows of 512 and 576 numbers and of 656
bytes, equal shares, parts and sinks. Errors are at most twice those of f32 that is rounded. What nothing names holds NaN, and calls
are made 100 times, with equal bits.

    latent_check.py [--device cpu]     cpu: by the interpreter, smaller
"""

import os
import sys

import checks
import kernels  # noqa: F401 (finds the package)
import torch

import tessera.torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Torch"))
from latent import Lists, expect, make  # noqa: E402
from latent_rows import pack  # noqa: E402

NAMES, DEVICE = checks.read_options(__doc__)
IS_GPU = DEVICE == "cuda"
SCALE = 0.04


def to_device(*tensors):
    return [tensor.to(DEVICE) for tensor in tensors]


def call_again(call):
    return checks.call_again(call, 100 if IS_GPU else 1)


def check_pages(lengths, heads, queries, page, width=576, sinks=None, dtype=torch.bfloat16, has_bytes=False, **options):
    cache, table, seqlens, sequences = make(lengths, page, dtype)
    if has_bytes:
        cache, sequences = pack(cache)[0], [pack(own)[1] for own in sequences]
    q = torch.randn(len(lengths), queries, heads, width, generator=torch.Generator().manual_seed(1)).to(dtype)
    given = to_device(q, (cache if has_bytes else cache[..., :width]).contiguous(), table, seqlens)
    if sinks is not None:
        options["attn_sink"] = sinks.to(DEVICE)
    out, lse = call_again(lambda: tessera.torch.mla_with_kvcache(*given, softmax_scale=SCALE, causal=True, **options))
    rows = [own[:, :width] for own in sequences]
    exact, exact_lse = expect(q, rows, True, SCALE)
    rounded, _ = expect(q, rows, True, SCALE, torch.float32)
    if sinks is not None:
        kept = torch.sigmoid(exact_lse - sinks.double()[:, None]).nan_to_num(0).transpose(1, 2)[..., None]
        exact, rounded = exact * kept, rounded * kept.float()
    allowed = 2 * (rounded.to(dtype) - exact).abs().max().item() + 1e-6
    assert (out - exact).abs().max().item() <= allowed, f"{lengths} {heads} {queries} {page} {width} {options}"
    torch.testing.assert_close(lse, exact_lse.float(), rtol=1e-5, atol=1e-5)


LENGTHS = [0, 1, 63, 64, 65, 700, 1500] if IS_GPU else [0, 1, 130]
SINKS = torch.linspace(-3, 6, 16)


def pages():
    for page in (1, 7, 16, 32, 40, 48, 64, 128, 192):
        check_pages(LENGTHS, 16, 1, page)
        check_pages(LENGTHS, 16, 3, page, keys_per_part=128)


def heads_and_queries():
    for heads, queries in ((1, 1), (8, 1), (8, 2), (16, 4), (24, 1), (64, 1), (128, 1), (128, 2)) if IS_GPU else ((24, 2),):
        check_pages(LENGTHS, heads, queries, 64)
        check_pages(LENGTHS, heads, queries, 16, dtype=torch.float16)


def values_alone():
    for page in (16, 64):
        check_pages(LENGTHS, 16, 2, page, width=512)
        check_pages(LENGTHS, 16, 1, page, width=512, keys_per_part=256)


def sinks():
    for page in (16, 40, 64):
        check_pages(LENGTHS, 16, 1, page, sinks=SINKS)
        check_pages(LENGTHS, 16, 2, page, sinks=SINKS, keys_per_part=128)


def check_lists(count, heads, topk, has_bytes, width=576, **options):
    lists = Lists()
    kv, numbers = lists.make(count, topk, rows=4096 if IS_GPU else 500, dtype=torch.bfloat16)
    rows, meant = pack(kv) if has_bytes else (kv[..., :width].contiguous(), kv[..., :width])
    q = torch.randn(count, heads, width, generator=torch.Generator().manual_seed(1)).bfloat16()
    lengths, own_sinks = options.get("topk_length"), options.get("attn_sink")
    options = {name: value.to(DEVICE) if isinstance(value, torch.Tensor) else value for name, value in options.items()}
    given = to_device(q, rows, numbers[:, None])
    results = call_again(lambda: tessera.torch.mla_sparse(*given, SCALE, **options))
    lists.compare(*results, q, meant, numbers, SCALE, lengths, own_sinks)


def check_forms(has_bytes, width=576):
    check_lists(3, 64, 100, has_bytes, width)
    check_lists(2, 128, 2048 if IS_GPU else 130, has_bytes, width)
    check_lists(2, 16, 300, has_bytes, width, attn_sink=SINKS, keys_per_part=128)
    check_lists(5, 16, 130, has_bytes, width, topk_length=torch.tensor([0, 1, 64, 130, 77], dtype=torch.int32))
    if IS_GPU:
        check_lists(300, 64, 512, has_bytes, width)


def rows_of_16_bits():
    check_forms(False)


def rows_of_512_numbers():
    check_forms(False, 512)


def rows_of_bytes():
    check_forms(True)


def pages_of_bytes():
    for page in (7, 16, 32, 64, 128):
        check_pages(LENGTHS, 16, 1, page, has_bytes=True)
        check_pages(LENGTHS, 16, 3, page, has_bytes=True, keys_per_part=128)


def ragged():
    """Lengths that differ much, which equal shares cut."""
    generator = torch.Generator().manual_seed(3)
    lengths = torch.randint(0, 8192 if IS_GPU else 300, (40 if IS_GPU else 3,), generator=generator).tolist()
    for page in (16, 64):
        check_pages(lengths, 16, 1, page)
        check_pages(lengths, 16, 1, page, has_bytes=True)


if not IS_GPU:
    tessera.torch.use_interpreter()
ALL = pages, pages_of_bytes, heads_and_queries, values_alone, sinks, ragged, rows_of_16_bits, rows_of_512_numbers, rows_of_bytes
checks.run(ALL, names=NAMES)
