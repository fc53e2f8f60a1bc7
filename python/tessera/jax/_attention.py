"""The function `attention`: from its arguments to a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from .._attention import _gradient_kernels, _named, _variants
from .._core import _library
from .._core._errors import raise_problem
from .._functions._variant import Variant
from . import _block_mask, _call, _checks, _functions, _gradients, _varying

# Letters of tessera-c/Xla.h for what kernels take after the scale.
_KINDS = {"softcap": "f", "alibi": "v", "left": "i", "right": "i"}


def _check(q, k, v, alibi, layout):
    _checks.check_arrays({"q": q, "k": k, "v": v, **({} if alibi is None else {"alibi": alibi})})
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.ndim != 4:
            raise ValueError(f"argument '{name}' has {tensor.ndim} dimensions; attention takes 4")
        if tensor.dtype.name not in _library.QUERY_TYPES:
            raise TypeError(f"argument '{name}' has type {tensor.dtype}; attention takes float16 and bfloat16")
        if tensor.dtype != q.dtype:
            raise TypeError(f"argument '{name}' has type {tensor.dtype} and 'q' {q.dtype}; they must be equal")
        raise_problem(_variants.find_head_problem(name, tensor.shape[3]))
    raise_problem(_variants.find_mismatch(q.shape, k.shape, v.shape, alibi, layout))
    of_head = layout.index("H")
    return q.shape[of_head], k.shape[of_head]


def _read_sinks(sinks, heads):
    _checks.check_arrays({"sinks": sinks})
    raise_problem(_variants.find_sinks_problem(sinks, heads))
    return jnp.asarray(sinks)


def _describe_masks(q, v, left, right, softcap, alibi):
    """(fields of a Call, views in its order) of a mask, a soft cap and slopes."""
    text = _variants.name_variant(_variants.name_mask(left, right), softcap, alibi is not None)
    element_type, d, dv = _library.QUERY_TYPES[q.dtype.name], q.shape[3], v.shape[3]
    extras = _variants.list_extras(text)
    _, _, gradient_extras = _gradient_kernels.describe_gradients(text, element_type, d, dv)
    extras, gradient_extras = ("".join(_KINDS[name] for name in names) for names in (extras, gradient_extras))
    bounds = tuple(_variants.UNLIMITED if bound is None else int(bound) for bound in (left, right))
    fields = {
        "variant": text, "extras": extras, "gradient_extras": gradient_extras,
        "numbers": _call.pack((softcap,) if "f" in extras else ()), "integers": bounds if "i" in extras else (),
    }  # fmt: skip
    return (fields, []) if alibi is None else ({**fields, "names": ("alibi",), "places": (("h",),)}, [alibi])


def _describe_functions(variant, arguments, mods, extents, sinks):
    """The same of functions of scores and masks, those of a variant, or `mods`, and of sinks."""
    given = _functions.trace(*mods, sinks) if variant is None else _functions.read_variant(variant, arguments or {})
    return _functions.describe(*given, extents)


def _describe_block_mask(block_mask, q, k, v, mods, extents, layout, sinks):
    """(fields of a Call, views in its order, what `_gradients.make` takes for the lists) of a mask whose lists are kept."""
    score_mod, score_args, mask_mod, mask_args = mods
    if mask_mod is not None or mask_args:
        raise ValueError("arguments 'mask_mod' and 'block_mask' are both given; the second has the first")
    if not isinstance(block_mask, _block_mask.BlockMask):
        raise TypeError(f"argument 'block_mask' is a {type(block_mask).__name__}; it is a BlockMask of create_block_mask")
    source, *given, labels, learnable = _functions.trace(score_mod, score_args, *block_mask.mods, sinks)
    of_row = layout.index("S")
    block_mask.check((extents["b"], extents["h"], q.shape[of_row], k.shape[of_row]), {**given[0], **given[1], **given[2]})
    if not block_mask.has_lists:
        return *_functions.describe(source, *given, labels, learnable, extents), None
    element_type, key_heads = _library.QUERY_TYPES[q.dtype.name], k.shape[layout.index("H")]
    sizes = extents["b"], extents["h"], q.shape[of_row], q.shape[3], key_heads, k.shape[of_row], v.shape[3]
    kept, lists = block_mask.keep_forward(source, element_type, sizes)
    views = {**given[0], **lists}
    labels = {**labels, **dict.fromkeys(lists, "block_mask")}
    fields, arrays = _functions.describe(kept, views, *given[1:], labels, learnable, extents)
    call = _call.Call(layout=layout, heads=0, key_heads=0, scale=0, **fields)
    places = tuple(
        block_mask.places() if name in lists else own for name, own in zip(call.list_views(), fields["places"])
    )
    return {**fields, "places": places}, arrays, (block_mask, source, element_type)


def _check_numbers(**numbers):
    for name, number in numbers.items():
        otherwise = "" if name in ("causal", "return_lse", "deterministic") else ", or give an array in `score_args`"
        _checks.check_number(name, number, otherwise)


def attention(
    q: jax.Array | np.ndarray,
    k: jax.Array | np.ndarray,
    v: jax.Array | np.ndarray,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = 0.0,
    alibi: jax.Array | np.ndarray | None = None,
    variant: Variant | None = None,
    arguments: Mapping[str, jax.Array | np.ndarray | float] | None = None,
    score_mod: Callable[..., Any] | None = None,
    score_args: tuple[jax.Array | np.ndarray | float, ...] = (),
    mask_mod: Callable[..., Any] | None = None,
    mask_args: tuple[jax.Array | np.ndarray | float, ...] = (),
    block_mask: _block_mask.BlockMask | None = None,
    sinks: jax.Array | np.ndarray | None = None,
    scale: float | None = None,
    layout: Literal["BSHD", "BHSD"] = "BSHD",
    return_lse: bool = False,
    deterministic: bool = False,
) -> jax.Array | Any:
    """softmax(scale * q k^T) v, and with `return_lse` also the logarithm of the softmax' sums, [B, H, SQ] in float32.

    q, k, v:  arrays in the order of `layout`, "BSHD" as in jax.nn.dot_product_attention or "BHSD", float16 or bfloat16.
              q may have a multiple of the heads of k and v, and v a head dimension of its own.
    causal:   a row sees the keys up to its own. The last row is aligned with the last key.
    window:   (left, right), how many keys before and after its own a row sees; a negative number or None for all.
    softcap:  scores become softcap * tanh(score / softcap); 0 for none.
    alibi:    a float32 slope for each head of q; scores fall by it with each key of distance.
    variant:  a tessera.Variant, functions of scores and masks in place of the masks above, softcap and alibi; its
              `arguments` by name: numbers, and float32 arrays.
    score_mod, mask_mod: functions in place of these: score_mod(score, b, h, q, k, *score_args) gives a score, and
              mask_mod(b, h, q, k, *mask_args) whether query q sees key k. Indices count from 0. Further arguments, and what
              the functions capture, are arrays and numbers; other ones need no new kernel.
    block_mask: a BlockMask of `create_block_mask`, a mask_mod with lists of blocks that are made once, or of
              `BlockMask.from_kv_blocks`.
    sinks:    a number for each head of q, of float32, float16 or bfloat16: the score of a key more that every row sees, with the
              value 0, beside all of the above but a variant. The LSE has it in it.
    scale:    1 / sqrt(head dimension) when not given; above 0.
    deterministic: gradients are the same in each run. Otherwise dQ may be a sum in any order, which takes less time.

    Numbers are constants of the program. Gradients are those of q, k, v and slopes, and of what functions of scores capture.
    Under vmap the mapped dimension joins the batch; arrays that are sharded over batch or heads stay so, and others are
    gathered. A row that sees no key gives zeros and an LSE of -inf.

    Raises TypeError, ValueError and NotImplementedError. Where no kernel can be had the program ends with an error that
    says why.
    """
    _variants.check_layout(layout)
    _check_numbers(scale=scale, softcap=softcap, window=window, causal=causal, return_lse=return_lse, deterministic=deterministic)
    for bound in window if isinstance(window, (tuple, list)) else ():
        _check_numbers(window=bound)
    heads, key_heads = _check(q, k, v, alibi, layout)
    if sinks is not None:
        sinks = _read_sinks(sinks, heads)
    mods, keeper, named = (score_mod, score_args, mask_mod, mask_args), None, None
    if block_mask is not None:
        others = {"causal": causal, "window": window, "softcap": softcap, "alibi": alibi, "variant": variant}
        _variants.check_functions(None, arguments, mods, scale, others)
        extents = {"b": q.shape[0], "h": heads}
        fields, views, keeper = _describe_block_mask(block_mask, q, k, v, mods, extents, layout, sinks)
    elif variant is not None or arguments is not None or mods != _variants.NO_MODS:
        others = {"causal": causal, "window": window, "softcap": softcap, "alibi": alibi}
        if variant is not None:
            others["sinks"] = sinks
        _variants.check_functions(variant, arguments, mods, scale, others)
        fields, views = _describe_functions(variant, arguments, mods, {"b": q.shape[0], "h": heads}, sinks)
    else:
        if scale is not None:
            _variants.check_scale(scale)
        bounds, softcap = _variants.read_window(causal, window), _variants.read_softcap(softcap)
        if sinks is None:
            fields, views = _describe_masks(q, v, *bounds, softcap, alibi)
            named = None if alibi is None else (*bounds, softcap)
        else:
            mods = *_named.make_score(alibi, softcap), _named.make_window(*bounds), ()
            fields, views = _describe_functions(None, None, mods, {"b": q.shape[0], "h": heads}, sinks)
    if 0 in (q.size, k.size):
        out = jnp.zeros((*q.shape[:3], v.shape[3]), q.dtype)
        lse = jnp.full((q.shape[0], heads, q.shape[layout.index("S")]), -jnp.inf, jnp.float32)
        if sinks is not None:
            lse = jnp.logaddexp(lse, sinks.astype(jnp.float32)[:, None])
        return (out, lse) if return_lse else out
    _call.register()
    scale = np.float32(q.shape[3] ** -0.5 if scale is None else scale)
    call = _call.Call(layout=layout, heads=heads, key_heads=key_heads, scale=scale, **fields)
    if keeper is not None and block_mask.table is not None:
        views = [*views, block_mask.table]
    axes = _varying.list_axes(q, k, v, *views)
    tensors = (_varying.vary(tensor, axes) for tensor in (q, k, v, *views))
    results = _gradients.make(call, return_lse, deterministic, keeper, named)(*tensors)
    return results if return_lse else results[0]


def warm_up(
    dtype: DTypeLike,
    head_dim: int,
    *,
    value_dim: int | None = None,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = 0.0,
    alibi: bool = False,
    return_lse: bool = False,
    gradients: bool = False,
    deterministic: bool = False,
) -> None:
    """Compiles the kernels of a variant for all classes of shapes, so that no call waits for the compiler. `window`
    and `softcap` matter by being given, not by their values.

    gradients: those that jax.grad takes, with `deterministic` as `attention` has it.
    """
    name = jnp.dtype(dtype).name
    if name not in _library.QUERY_TYPES:
        raise TypeError(f"argument 'dtype' is {name}; attention takes float16 and bfloat16")
    text = _variants.name_variant(_variants.name_mask(*_variants.read_window(causal, window)), softcap, alibi)
    _gradient_kernels.warm_up(text, _library.QUERY_TYPES[name], head_dim, value_dim or head_dim, return_lse, gradients, deterministic)
