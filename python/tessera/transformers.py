"""Attention for models of Hugging Face's transformers.

    import tessera.transformers
    tessera.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, dtype="bfloat16", attn_implementation="tessera")

A mask is read once for each forward pass, whatever functions it is made of: for each sequence, the first and the last key
that a row sees. Runs of rows whose keys move with them, or stay, are one call of the kernel each: so a batch with
padding has a call for each length of padding, and packed sequences one each. A kernel is compiled from the function of a mask
with holes in a row, and a BlockMask is taken as it is. docs/pytorch.md says more.

Continuous batching (`generate_batch`) takes attention by a few names alone. `register_paged` gives one of them these kernels.
Layers that carry a state call functions of their modules. `register_recurrences` replaces these.
"""

import bisect
import dataclasses
import math
import sys

import torch

from ._attention import _named
from .torch import _captured, attention, flash_attn_varlen_func, gated_delta_rule, ssd

__all__ = ["register", "register_paged", "register_recurrences"]

# Elements of a mask that are looked at together.
_MOST_ELEMENTS = 1 << 26


@dataclasses.dataclass(frozen=True)
class Part:
    """Rows of a batch that one call computes: the sequences, rows and keys from a first to before another one, and the
    window, aligned at the last row and key."""

    batch: tuple
    rows: tuple
    keys: tuple
    window: tuple


_NO_TENSOR = (
    '{} a mask of attn_implementation="tessera", which is no tensor: attention that chooses its keys or changes its mask takes '
    'attn_implementation="eager"'
)


class _NoTensor:
    """What stands for a mask. Generation with a static cache makes masks ahead and hands them to the model, where they are to
    look like tensors with a head dimension."""

    ndim = 4

    def contiguous(self):
        return self

    def __getitem__(self, _):
        raise NotImplementedError(_NO_TENSOR.format("the model takes elements of"))

    def __getattr__(self, name):
        raise AttributeError(_NO_TENSOR.format(f"the model asks for '{name}' of"))


class Mask(_NoTensor):
    """A mask by its parts; rows that are in none see no key."""

    def __init__(self, parts):
        self.parts = tuple(parts)


class FunctionMask(_NoTensor):
    """A mask that a kernel is compiled from: what `attention` takes of it, a function with holes in a row or a BlockMask."""

    def __init__(self, **named):
        self.named = named


class _HolesError(NotImplementedError):
    """A mask has rows that see keys with others between them."""


def register(name: str = "tessera") -> None:
    """Lets models take attn_implementation=`name`."""
    transformers = _import_transformers()
    transformers.AttentionInterface.register(name, _attend)
    transformers.AttentionMaskInterface.register(name, _make_mask)


def register_paged(name: str = "paged|eager") -> None:
    """Gives models with attn_implementation=`name` these kernels in continuous batching, in place of what the name stood for."""
    _import_transformers().AttentionInterface.register(name, _attend_packed)


def register_recurrences(model: torch.nn.Module) -> None:
    """Gives the layers of a model that carry a state these kernels, in place of functions of the modules that define them: for all
    models of the program that have such layers, as Qwen3-Next and Mamba-2. Raises ValueError where the model has none."""
    _import_transformers()
    modules = {type(part).__module__ for part in model.modules()}
    found = [(sys.modules[module], name) for module in sorted(modules) for name in _RECURRENCES if hasattr(sys.modules[module], name)]
    if not found:
        raise ValueError(
            f"argument 'model' is a {type(model).__name__}, none of whose layers call {', '.join(_RECURRENCES)}; a model with a gated "
            "delta rule or with Mamba-2's layers would work"
        )
    for module, name in found:
        setattr(module, name, _RECURRENCES[name])


def _import_transformers():
    import transformers

    if int(transformers.__version__.split(".")[0]) < 5:
        raise ImportError(f"tessera.transformers needs transformers 5.0 or newer; this is {transformers.__version__}")
    return transformers


# ---- Reading a mask


class _Rows:
    """The keys that the rows of a sequence see, from first[r] to last[r]; none where the first is behind the last."""

    def __init__(self, first, last):
        self.first, self.last = first, last
        steps = torch.stack((first.diff(), last.diff(), (first > last)[1:].int()))
        #: Where rows begin that differ from the one before in another way than that did.
        self._changes = [*(torch.nonzero((steps.diff() != 0).any(0)).flatten() + 2).tolist(), len(first)]

    def _skip(self, row):
        """The next row whose step is another one."""
        return self._changes[bisect.bisect_right(self._changes, row)] if row < len(self.first) else row

    def _get(self, row):
        return self.first[row].item(), self.last[row].item()

    def _find_end(self, start):
        """The end of the part that begins at row `start`: first keys stay and then move with the rows, last ones move and
        then stay."""
        first_moves, last_stays = False, False
        before, row = self._get(start), start + 1
        while row < len(self.first):
            first, last = self._get(row)
            step_first, step_last = first - before[0], last - before[1]
            if first > last or step_first not in (0, 1) or step_last not in (0, 1):
                break
            if first_moves and step_first == 0 or last_stays and step_last == 1:
                break
            first_moves, last_stays = step_first == 1, step_last == 0
            row = self._skip(row)
            before = self._get(row - 1)
        return row

    def _make_part(self, batch, start, end):
        (begin, last_of_start), (first_of_end, last_of_end) = self._get(start), self._get(end - 1)
        # The kernel aligns row r with key r + shift; the last row sees that key.
        shift = last_of_end + 1 - end
        left = last_of_end - first_of_end if first_of_end != begin else None
        right = last_of_start - start - shift if last_of_start != last_of_end else None
        return Part(batch, (start, end), (begin, last_of_end + 1), (left, right))

    def split(self, batch):
        """The parts of the rows that see keys."""
        start = 0
        while start < len(self.first):
            first, last = self._get(start)
            if first > last:
                start = self._skip(start) if start else 1
                continue
            end = self._find_end(start)
            yield self._make_part(batch, start, end)
            start = end


def _read_bounds(visible):
    """(first, last) of each row of [batch, rows, keys]; a row that sees nothing has 1 and 0."""
    keys = visible.shape[2]
    count = visible.sum(2)
    first = visible.to(torch.int8).argmax(2)
    last = keys - 1 - visible.flip(2).to(torch.int8).argmax(2)
    first, last = torch.where(count > 0, first, 1), torch.where(count > 0, last, 0)
    if not torch.equal(last - first + 1, count):
        raise _HolesError(
            "argument 'attention_mask' has rows that see keys with others between them; attn_implementation=\"tessera\" "
            'takes tensors of masks whose rows see keys in one run: use attn_implementation="sdpa"'
        )
    return first, last


def _read_mask(batch, rows, keys, look):
    """The Mask of what `look` says to be visible: [batch, rows, keys] of some rows."""
    step = max(1, _MOST_ELEMENTS // max(1, batch * keys))
    bounds = [_read_bounds(look(begin, min(begin + step, rows))) for begin in range(0, rows, step)]
    first, last = (torch.cat(values, 1).cpu() for values in zip(*bounds))
    parts, begin = [], 0
    for end in range(1, batch + 1):
        if end < batch and torch.equal(first[end], first[begin]) and torch.equal(last[end], last[begin]):
            continue
        parts += _Rows(first[begin], last[begin]).split((begin, end))
        begin = end
    return Mask(parts)


def _make_mask(
    batch_size,
    q_length,
    kv_length,
    q_offset=0,
    kv_offset=0,
    *,
    mask_function,
    attention_mask=None,
    use_vmap=False,
    device="cpu",
    **_,
):
    """What transformers.AttentionMaskInterface calls for each kind of mask of a forward pass."""
    from transformers import masking_utils

    if isinstance(attention_mask, (Mask, FunctionMask)):
        return attention_mask
    ends_together = isinstance(q_offset, int) and q_offset + q_length == kv_offset + kv_length
    if attention_mask is None and mask_function is masking_utils.causal_mask_function and ends_together:
        return Mask([Part((0, batch_size), (0, q_length), (0, kv_length), (None, 0))])
    padding = masking_utils.prepare_padding_mask(attention_mask, kv_length, kv_offset)
    sequences = torch.arange(batch_size, device=device)
    columns = torch.arange(kv_length, device=device) + kv_offset
    head = torch.zeros((), dtype=torch.long, device=device)

    def look(begin, end):
        rows = torch.arange(begin, end, device=device) + q_offset
        if use_vmap:
            of_row = torch.vmap(mask_function, (None, None, None, 0))
            of_sequence = torch.vmap(of_row, (None, None, 0, None))
            visible = torch.vmap(of_sequence, (0, None, None, None))(sequences, head, rows, columns)
        else:
            visible = mask_function(sequences[:, None, None], head, rows[:, None], columns)
        visible = visible.expand(batch_size, end - begin, kv_length)
        return visible if padding is None else visible & padding[:, None, kv_offset : kv_offset + kv_length]

    try:
        return _read_mask(batch_size, q_length, kv_length, look)
    except _HolesError:
        seen = None if padding is None else padding[:, kv_offset : kv_offset + kv_length].bool()
        return _take_function(mask_function, q_offset, kv_offset, seen, columns.device)


def _take_function(mask_function, q_offset, kv_offset, seen, device):
    """The FunctionMask of a function that counts from the offsets, of keys that `seen` has, if it is given."""

    def offset_mask(b, h, q, k):
        # Masks of transformers are those of head 0.
        return mask_function(b, h * 0, q + q_offset, k + kv_offset)

    def padded_mask(b, h, q, k):
        return offset_mask(b, h, q, k) & seen[b, k]

    function = offset_mask if seen is None else padded_mask
    problem = _captured.find(device, None, (), function, ())[0].problem
    if problem is not None:
        raise NotImplementedError(
            "argument 'attention_mask' has rows that see keys with others between them, and no kernel can be compiled from its "
            f'function: use attn_implementation="sdpa"; {problem}'
        )
    return FunctionMask(mask_mod=function)


def _read_tensor(mask, query, key):
    """The Mask of a tensor [batch or 1, 1, rows, keys or more]: true or 0 where a key is seen, else false or very small."""
    if mask.dim() != 4 or mask.shape[1] != 1:
        raise NotImplementedError(
            f"argument 'attention_mask' has shape {tuple(mask.shape)}; attn_implementation=\"tessera\" takes one mask for "
            "all heads, [batch, 1, rows, keys]"
        )
    batch, rows, keys = query.shape[0], query.shape[2], key.shape[2]
    if mask.shape[0] not in (1, batch) or mask.shape[2] not in (1, rows) or 1 != mask.shape[3] < keys:
        raise ValueError(
            f"argument 'attention_mask' has shape {tuple(mask.shape)}, which does not repeat to {(batch, 1, rows, keys)}"
        )
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(f"argument 'attention_mask' has type {mask.dtype}; it is of torch.bool or a floating-point type")
    visible = mask[:, 0, :, :keys]
    if visible.dtype != torch.bool:
        is_bias = (visible != 0) & (visible > torch.finfo(visible.dtype).min / 2)
        if is_bias.any():
            raise NotImplementedError(
                "argument 'attention_mask' adds numbers to scores; attn_implementation=\"tessera\" takes masks of 0 and "
                'less than any score: use attn_implementation="sdpa"'
            )
        visible = visible == 0
    visible = visible.expand(batch, rows, keys)
    return _read_mask(batch, rows, keys, lambda begin, end: visible[:, begin:end])


# ---- Calls


def _find_mask(module, query, key, attention_mask, is_causal, sliding_window):
    if isinstance(attention_mask, (Mask, FunctionMask)):
        return attention_mask
    if hasattr(attention_mask, "mask_mod"):
        return FunctionMask(block_mask=attention_mask)
    if attention_mask is not None:
        return _read_tensor(attention_mask, query, key)
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    # A row sees itself and the keys before it, as many as the window says.
    left = sliding_window - 1 if sliding_window else None
    window = (left, 0 if causal else left)
    return Mask([Part((0, query.shape[0]), (0, query.shape[2]), (0, key.shape[2]), window)])


def _refuse(**arguments):
    for name, value in arguments.items():
        if value is not None and value is not False and value != 0:
            raise NotImplementedError(
                f"argument '{name}' is given, and no kernel of attn_implementation=\"tessera\" takes it: use "
                'attn_implementation="eager"'
            )


# What some models pass on, that changes results: sinks of rows, biases, and the keys that a sparse attention has chosen.
_OF_RESULTS = "sinks", "learnable_sink", "position_bias", "attn_bias", "indices", "block_indices"


def _refuse_results(others):
    _refuse(**{name: True for name in _OF_RESULTS if others.get(name) is not None})


def _attend(
    module,
    query,
    key,
    value,
    attention_mask,
    dropout=0.0,
    scaling=None,
    sliding_window=None,
    softcap=None,
    is_causal=None,
    output_attentions=None,
    deterministic=None,
    s_aux=None,
    **others,
):
    """What transformers.AttentionInterface calls for each layer: tensors are [B, H, S, D], the output [B, S, H, D]. `s_aux` has the
    sinks of heads."""
    _refuse(dropout=dropout, output_attentions=output_attentions)
    _refuse_results(others)
    mask = _find_mask(module, query, key, attention_mask, is_causal, sliding_window)
    options = {"scale": scaling, "deterministic": bool(deterministic), "sinks": s_aux}
    if isinstance(mask, FunctionMask):
        score_mod, score_args = _named.make_score(None, float(softcap or 0))
        out = attention(query, key, value, score_mod=score_mod, score_args=score_args, **options, **mask.named)
        return out.transpose(1, 2), None
    options["softcap"] = softcap or 0.0
    whole = (0, query.shape[0]), (0, query.shape[2])
    if [(part.batch, part.rows) for part in mask.parts] == [whole]:
        return _call(mask.parts[0], query, key, value, options).transpose(1, 2), None
    out = value.new_zeros(query.shape[0], query.shape[2], query.shape[1], value.shape[3])
    for part in mask.parts:
        (begin, end), (row, last_row) = part.batch, part.rows
        out[begin:end, row:last_row] = _call(part, query, key, value, options).transpose(1, 2)
    return out, None


def _attend_packed(
    module,
    query,
    key,
    value,
    attention_mask,
    cu_seq_lens_q=None,
    cu_seq_lens_k=None,
    max_length_q=None,
    max_length_k=None,
    **options,
):
    """The same with requests that lie one behind the other, their keys as well: tensors are [1, H, tokens, D], the output [1, tokens, H,
    D]. The mask that comes with them says what their lengths and the window say, and is not read. `options` are those of `_attend`."""
    if cu_seq_lens_q is None:
        return _attend(module, query, key, value, attention_mask, **options)
    _refuse(dropout=options.get("dropout"), output_attentions=options.get("output_attentions"))
    _refuse_results(options)
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    window = options.get("sliding_window")
    out = flash_attn_varlen_func(
        q, k, v, cu_seq_lens_q, cu_seq_lens_k, max_length_q, max_length_k, softmax_scale=options.get("scaling"), causal=True,
        window_size=(window - 1 if window else None, 0), softcap=options.get("softcap") or 0.0, sinks=options.get("s_aux"),
    )  # fmt: skip
    return out[None], None


def _call(part, query, key, value, options):
    sequences, rows, keys = (slice(*bounds) for bounds in (part.batch, part.rows, part.keys))
    left, right = part.window
    causal = left is None and right == 0
    return attention(
        query[sequences, :, rows], key[sequences, :, keys], value[sequences, :, keys],
        causal=causal, window=None if causal else (left, right), **options,
    )  # fmt: skip


# ---- Recurrences


def _with_rows(x):
    """A tensor whose last dimension is dense; convolutions leave others."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _delta_rule(
    query, key, value, g, beta, initial_state=None, output_final_state=False, use_qk_l2norm_in_kernel=False, cu_seqlens=None, **_
):  # fmt: skip
    state = None if initial_state is None else initial_state.float()
    query, key, value = map(_with_rows, (query, key, value))
    return gated_delta_rule(query, key, value, g, beta, None, state, output_final_state, use_qk_l2norm_in_kernel, cu_seqlens)


def _scan(
    hidden_states, dt, A, B, C, chunk_size=None, D=None, dt_bias=None, initial_states=None, dt_softplus=False,
    dt_limit=(0.0, math.inf), return_final_states=False, z=None, seq_idx=None, **_,
):  # fmt: skip
    state = None if initial_states is None else initial_states.float()
    hidden_states, B, C = map(_with_rows, (hidden_states, B, C))
    given = hidden_states, dt, A, B, C, D, dt_bias, state, dt_softplus, return_final_states
    return ssd(*given, z=z, dt_limit=tuple(dt_limit), seq_idx=seq_idx)


def _step(state, hidden_states, dt, A, B, C, D=None, dt_bias=None, dt_softplus=False, z=None, **_):
    """A token, which changes `state`. Numbers of heads come for each element."""
    skip, bias = (None if x is None else x[:, 0] for x in (D, dt_bias))
    x, B, C = (_with_rows(x[:, None]) for x in (hidden_states, B, C))
    # mamba-ssm limits the steps of scans alone.
    limit = -math.inf, math.inf
    given = x, dt[:, None, :, 0], A[:, 0, 0], B, C, skip, bias, state.float(), dt_softplus, True
    y, last = ssd(*given, dt_limit=limit, z=None if z is None else z[:, None])
    state.copy_(last)
    return y[:, 0]


# By the names of the functions in modules of transformers.
_RECURRENCES = {
    "torch_chunk_gated_delta_rule": _delta_rule, "torch_recurrent_gated_delta_rule": _delta_rule,
    "mamba2_chunk_scan": _scan, "mamba2_selective_state_update": _step,
}  # fmt: skip
