"""Latent attention (DeepSeek-V2), whatever the tensors are of: what its kernels take, and how keys are divided among thread blocks."""

from __future__ import annotations

from .._core import _library
from ._checks import check_numbers, name_type, refuse
from ._shares import count_packed

#: Numbers of a row of the cache: those that are key and value, and all with those of the key alone.
VALUE, KEY = 512, 576
#: Bytes of a row of 8 bits, and its parts: the element type of each in sources, its first byte, and how many elements it has. Each 128
#: numbers of e4m3 are multiplied by a float32, and those of the key alone are bfloat16.
BYTES = 656
PARTS = ("f8E4M3FN", 0, VALUE), ("f32", VALUE, VALUE // 128), ("bf16", VALUE + 4 * VALUE // 128, KEY - VALUE)
_BYTE_TYPES = "float8_e4m3fn", "uint8", "int8"
#: Rows of a tile, and keys of a step.
ROWS, STEP = 64, 64
_MOST_ROWS_OF_PAGE = 1024


def count_steps(most):
    return -(-most // STEP)


def count_shares(rows, multiprocessors):
    """As many as fill the GPU with tiles of sequences of so many rows."""
    return max(1, multiprocessors // -(-rows // ROWS))


def find_keys_per_part(most, tiles, multiprocessors, least):
    """Keys of a part of lists of `most` rows where so many tiles have parts that fill the GPU, in `least` steps at least."""
    parts = max(1, multiprocessors // tiles)
    return STEP * max(-(-count_steps(most) // parts), least)


def count_parts(most, keys_per_part):
    if type(keys_per_part) is not int or keys_per_part < STEP or keys_per_part % STEP:
        raise ValueError(f"argument 'keys_per_part' is {keys_per_part!r}; it is a multiple of {STEP}")
    return -(-most // keys_per_part)


def describe(q, cache, **parameters):
    """(groups of heads, of each of which a tile has the rows; parameters of kernels) for queries [B, SQ, H, 576]."""
    packed = count_packed(q.shape[2], q.shape[1], ROWS)
    if has_bytes(cache):
        parameters["CACHED"] = PARTS[0][0]
    element = _library.QUERY_TYPES[name_type(q.dtype)]
    return q.shape[2] // packed, {"T": element, "HEADS": packed, "KEY": q.shape[3], **parameters}


def describe_pages(queries, page, causal):
    """Parameters of kernels over pages of a table. One query sees all keys."""
    return {"PAGE": page, "CAUSAL": bool(causal) and queries > 1}


def describe_shares(heads, queries, page, is_bytes, most):
    """(source, parameters) of the kernel over pages of so many rows by equal shares: that of up to `most` rows of Q, which are columns of
    its products, where a tile of 64 rows would have no more. Its pages are of multiples of 64 rows of 16 bits."""
    if count_packed(heads, queries, ROWS) * queries > most or is_bytes or page % STEP:
        return "mla_decode", {"BALANCED": True}
    return "mla_few_heads", {}


def describe_lists(has_lengths):
    return {"LENGTHS": has_lengths, "MAXIMA": True}


def has_bytes(cache):
    return name_type(getattr(cache, "dtype", None)) in _BYTE_TYPES


def check_options(k_cache, head_dim_v, is_fp8_kvcache, causal, indices, topk_length):
    """Refuses arguments of `mla_with_kvcache` that do not go together."""
    if is_fp8_kvcache is not None and is_fp8_kvcache != has_bytes(k_cache):
        found = getattr(k_cache, "dtype", type(k_cache).__name__)
        raise ValueError(f"argument 'is_fp8_kvcache' is {is_fp8_kvcache}, and 'k_cache' has type {found}")
    check_values("head_dim_v", head_dim_v)
    if indices is not None and causal:
        refuse("causal", causal, "the rows of a list have no order: leave out those that a query does not see")
    if indices is None and topk_length is not None:
        raise ValueError("argument 'topk_length' is given without 'indices', of which it is the length")


def check_values(name, width):
    if width != VALUE:
        refuse(name, width, f"values are the first {VALUE} numbers of a row")


def check_counts(num_q_tokens_per_head_k, num_heads_k):
    """Refuses arguments of `get_mla_metadata`."""
    for name, value, most in (("num_q_tokens_per_head_k", num_q_tokens_per_head_k, None), ("num_heads_k", num_heads_k, 1)):
        if type(value) is not int or value < 1 or value > (most or value):
            raise ValueError(f"argument '{name}' is {value!r}; it is {most or 'a number above 0'}")


def check_tokens(q, kv):
    """Refuses other forms than those of `mla_sparse`."""
    for name, tensor, form in zip(("q", "kv"), (q, kv), ("[tokens, heads, {}]", "[rows, 1, {}]")):
        if tensor.ndim != 3:
            raise ValueError(f"argument '{name}' has shape {tuple(tensor.shape)}; it is {form.format(_name_width(name, kv))}")


def check_rows(q, cache, name="k_cache"):
    """Refuses queries [B, SQ, H, 576], and pages [PAGES, ROWS, 1, 576], or of bytes, that the argument `name` has, by what kernels take
    of shapes and types."""
    key, is_bytes = _find_width(q, cache), has_bytes(cache)
    if is_bytes and name_type(q.dtype) != "bfloat16":
        raise TypeError(f"argument 'q' has type {q.dtype}; beside rows of bytes, part of which is bfloat16, it is that")
    forms = f"[batch, queries, heads, {_name_width('q', cache)}]", f"[pages, rows, 1, {BYTES if is_bytes else key}]"
    for own, tensor, form, width in zip(("q", name), (q, cache), forms, (key, BYTES if is_bytes else key)):
        if tensor.ndim != 4 or tensor.shape[3] != width:
            raise ValueError(f"argument '{own}' has shape {tuple(tensor.shape)}; it is {form}")
        if name_type(q.dtype) not in _library.QUERY_TYPES or (not is_bytes and tensor.dtype != q.dtype):
            raise TypeError(f"argument '{own}' has type {tensor.dtype}; q and {name} are float16, or both bfloat16")
    if cache.shape[2] != 1:
        raise ValueError(f"argument '{name}' has {cache.shape[2]} heads; all heads of 'q' read one row for each token")


def _find_width(q, cache):
    return VALUE if tuple(q.shape[3:]) == (VALUE,) and not has_bytes(cache) else KEY


def _name_width(name, cache):
    if has_bytes(cache):
        return KEY if name == "q" else BYTES
    return f"{KEY} or {VALUE}" if name == "q" else KEY


def check_pages(q, cache):
    """Refuses pages and queries over a table."""
    page = cache.shape[1]
    if not 0 < page <= _MOST_ROWS_OF_PAGE:
        raise ValueError(f"argument 'k_cache' has pages of {page} rows; kernels take up to {_MOST_ROWS_OF_PAGE}")
    if q.shape[1] > ROWS:
        raise ValueError(f"argument 'q' has {q.shape[1]} queries; kernels over a cache take up to {ROWS}: pass them in parts")


def check_sinks(sinks, heads):
    if name_type(sinks.dtype) != "float32" or tuple(sinks.shape) != (heads,):
        raise ValueError(
            f"argument 'attn_sink' has shape {tuple(sinks.shape)} and type {sinks.dtype}; with this 'q' it is [{heads}], dense, of float32"
        )


def list_metadata(metadata, splits, batch):
    """(name, numbers, shape) of what `get_mla_metadata` gave; () where a call has neither."""
    if metadata is None and splits is None:
        return ()
    given = ("tile_scheduler_metadata", metadata, (3, None)), ("num_splits", splits, (batch + 1,))
    for name, value, _ in given:
        if value is None:
            raise ValueError(f"argument '{name}' is None; get_mla_metadata gives both it and the other one")
    return given
