"""The function `attention`: from its arguments to an op."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch

from .._attention import _gradient_kernels, _named, _variants
from .._core import _library
from .._functions._variant import Variant
from . import _backward, _bias, _block_mask, _direct, _fallback, _functions, _listed, _op, _recalled, _serving
from ._types import TYPES

if TYPE_CHECKING:  # Where nobody has a mask of torch it takes a third of a second for nothing.
    import torch.nn.attention.flex_attention

_NO_MODS = _variants.NO_MODS
# What the op takes from its variant on in most calls.
_FULL, _CAUSAL = ((_variants.name_variant(mask, 0.0, False),) for mask in ("none", "causal"))
# `torch.is_autocast_enabled` wants the type of a device, which takes the host longer to find than this answer.
_is_autocast_enabled = torch._C._is_any_autocast_enabled
_is_watched = _direct.is_watched


def _cast_for_autocast(tensors):
    """Under autocast, float32 becomes its type, as with torch's own attention."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    return tuple(tensor.to(dtype) if tensor.dtype == torch.float32 else tensor for tensor in tensors)


def _has_few(q, k):
    """Whether there are few queries of many keys, where nothing sees ops."""
    return not _is_watched() and _serving.has_few(q, k)


# What it gives depends on `return_lse`: with Any, type checkers take a tensor for one, and let a pair be unpacked.
def _attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    window: tuple[int | None, int | None] | None = None,
    softcap: float | None = 0.0,
    alibi: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    variant: Variant | None = None,
    arguments: Mapping[str, torch.Tensor | float] | None = None,
    score_mod: Callable[..., Any] | None = None,
    score_args: tuple[torch.Tensor | float, ...] = (),
    mask_mod: Callable[..., Any] | None = None,
    mask_args: tuple[torch.Tensor | float, ...] = (),
    block_mask: _block_mask.BlockMask | torch.nn.attention.flex_attention.BlockMask | None = None,
    sinks: torch.Tensor | None = None,
    scale: float | None = None,
    layout: Literal["BHSD", "BSHD"] = "BHSD",
    return_lse: bool = False,
    deterministic: bool = False,
    fallback: Literal["torch"] | None = None,
) -> torch.Tensor | Any:
    """softmax(scale * q k^T) v, and with `return_lse` also the logarithm of the softmax' sums, [B, H, SQ] in float32.

    q, k, v:  tensors in the order of `layout`, "BHSD" or "BSHD", float16 or bfloat16, in any strides but the innermost.
              q may have a multiple of the heads of k and v, and v a head dimension of its own.
    causal:   a row sees the keys up to its own. The last row is aligned with the last key.
    window:   (left, right), how many keys before and after its own a row sees; a negative number or None for all.
    softcap:  scores become softcap * tanh(score / softcap); 0 for none.
    alibi:    a float32 slope for each head of q; scores fall by it with each key of distance.
    bias:     a tensor of float32, float16 or bfloat16 that is added to the scores, of a shape that repeats to
              [B, H, SQ, SK]. Rows of one for each query and key begin at multiples of 16 bytes. Beside softcap or alibi only
              with fallback="torch".
    variant:  a tessera.Variant, functions of scores and masks in place of the masks above, softcap, alibi and bias; its
              `arguments` by name: numbers, and float32 tensors.
    score_mod, mask_mod: functions in place of these: score_mod(score, b, h, q, k, *score_args) gives a score, and
              mask_mod(b, h, q, k, *mask_args) whether query q sees key k. Indices count from 0. Further arguments, and what
              the functions capture, are tensors and numbers; other ones need no new compilation.
    block_mask: a BlockMask of `create_block_mask`, a mask_mod with lists of blocks that are made once, or of
              `BlockMask.from_kv_blocks`; or one of torch's flex_attention, whose lists and function count.
    sinks:    a number for each head of q, of float32, float16 or bfloat16: the score of a key more that every row sees, with the
              value 0, beside all of the above but a variant. The LSE has it in it.
    scale:    1 / sqrt(head dimension) when not given; above 0.
    deterministic: gradients are the same in each run, as under torch.use_deterministic_algorithms(True). Otherwise dQ may be
              a sum in any order, which takes less time.
    fallback: "torch" lets operations of torch compute what no kernel can; None refuses it.

    A row that sees no key gives zeros and an LSE of -inf. Raises TypeError, ValueError, NotImplementedError, and what
    `tessera.compile` raises where a kernel has to be compiled.
    """
    if fallback is not None and fallback != "torch":
        raise ValueError(f"argument 'fallback' is {fallback!r}; it is None or 'torch'")
    if _is_autocast_enabled():
        q, k, v = _cast_for_autocast((q, k, v))
    if layout != "BHSD":
        _variants.check_layout(layout)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    if block_mask is not None:
        block_mask = _read_block_mask(block_mask, mask_mod, mask_args)
    if block_mask is not None:
        mask_mod, mask_args = block_mask.mods
    mods = score_mod, score_args, mask_mod, mask_args
    if variant is not None or arguments is not None or mods != _NO_MODS:
        others = {"causal": causal, "window": window, "softcap": softcap, "alibi": alibi, "bias": bias, "fallback": fallback}
        if variant is not None:
            others["sinks"] = sinks
        results = _call_functions(q, k, v, variant, arguments, mods, scale, others, return_lse, deterministic, block_mask, sinks)
    elif not (softcap or fallback or deterministic) and window is alibi is bias is sinks is None:
        results = attention(q, k, v, causal=causal, scale=scale, return_lse=return_lse)
    else:
        results = _call_masks(q, k, v, causal, window, softcap, alibi, bias, scale, return_lse, deterministic, fallback, sinks)
    if layout == "BHSD":
        return results
    return (results[0].transpose(1, 2), results[1]) if return_lse else results.transpose(1, 2)


_attention.__name__ = _attention.__qualname__ = "attention"


def _check_options(options):
    for name in options:
        if name not in _attention.__kwdefaults__:
            near = _library.suggest_name(name, _attention.__kwdefaults__)
            raise TypeError(f"attention() got an unexpected keyword argument '{name}'{near}") from None


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _as(function: _Function) -> Callable[[Callable[..., Any]], _Function]:
    """functools.wraps, for type checkers too: they see the options of `function`."""
    return functools.wraps(function)


# Each option that has a name here costs every call the time to find its default.
@_as(_attention)
def attention(q, k, v, *, causal=False, scale=None, return_lse=False, **others):
    try:
        if others:
            results = _recalled.attention(q, k, v, causal, scale, return_lse, others)
            if results is not None:
                return results
            return _attention(q, k, v, causal=causal, scale=scale, return_lse=return_lse, **others)
        if _is_autocast_enabled():
            q, k, v = _cast_for_autocast((q, k, v))
        if _has_few(q, k):
            results = _serving.attend_few(q, k, v, (None, 0) if causal else (None, None), scale, return_lse)
            if results is not None:
                return results
        # What is passed beyond the defaults of the op costs time too.
        arguments = _CAUSAL if causal else _FULL
        if scale is not None:
            arguments = (*arguments, _read_scale(scale))
        return _backward.attend(q, k, v, None, arguments, return_lse)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError, ZeroDivisionError) as error:
        # Asking before would cost each call the time.
        _check_options(others)
        _check_arguments(error, q, k, v, causal, scale, others)
        raise


def _check_arguments(error, q, k, v, causal, scale, others):
    """Refuses, by its name, the argument by which a call failed, where one is what none may be."""
    tensors, optional = {"q": q, "k": k, "v": v}, {name: others.get(name) for name in ("alibi", "bias", "sinks")}
    problem = _op.find_type_problem(tensors, optional)
    if problem is None and isinstance(error, ZeroDivisionError):
        problem = _variants.find_head_problem("q", q.shape[-1])
    if problem is None and getattr(causal, "shape", ()) != ():
        problem = TypeError(f"argument 'causal' has shape {tuple(causal.shape)}; it is True or False for all sequences")
    if problem is not None:
        raise problem from None
    if isinstance(error, IndexError):
        _op.check_forms(tensors)
    softcap = others.get("softcap")
    _find_learned_number(scale, softcap)
    if not isinstance(softcap, torch.Tensor):
        _variants.read_softcap(softcap)


#: What torch calls q, k, v, slopes, which it has none of, and the scale.
TORCH_NAMES = "query", "key", "value", "alibi", "scale"


def attend_as(names, q, k, v, *, alibi=None, scale=None, layout="BHSD", **options):
    """`attention` for another function, whose `names` for q, k, v, alibi and scale stand in what is refused."""
    try:
        return attention(q, k, v, alibi=alibi, scale=scale, layout=layout, **options)
    except (NotImplementedError, TypeError, ValueError):
        if _is_autocast_enabled():
            q, k, v = _cast_for_autocast((q, k, v))
        if layout != "BHSD":
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        problem = _find_problem_as(names, q, k, v, alibi, scale)
        if problem is None:
            raise
        raise problem from None


def _find_problem_as(names, q, k, v, alibi, scale):
    problem = _op.find_problem(q, k, v, alibi, names)
    if problem is None and scale is not None:
        problem = _op.find_scale_problem(scale, names[4])
    if problem is not None:
        return problem
    _op.check_tangents(names, q, k, v, alibi)
    return _op.find_device_problem(names[0], q.device) or _op.find_place_problem(q, k, v, names)


def _read_block_mask(block_mask, mask_mod, mask_args):
    """The BlockMask of an argument, None where it leaves all."""
    if mask_mod is not None:
        raise ValueError("arguments 'mask_mod' and 'block_mask' are both given; the second has the first")
    if not hasattr(block_mask, "mask_mod"):
        raise TypeError(f"argument 'block_mask' is a {type(block_mask).__name__}; it is a BlockMask")
    if mask_args:
        raise ValueError("argument 'mask_args' is given with a block_mask, which has its own: give them to create_block_mask")
    if not isinstance(block_mask, _block_mask.BlockMask):
        return None if _listed.leaves_all(block_mask) else _block_mask.take(block_mask)
    block_mask.check_change()
    return block_mask


def _call_functions(
    q, k, v, variant, arguments, mods, scale, others, return_lse, deterministic, block_mask=None, sinks=None
):  # fmt: skip
    """With functions of scores and masks: those of a variant, or `mods`, with the lists of a block mask, and sinks."""
    problem = _op.find_number_problem("scale", scale, "multiply the queries by it")
    if problem is None and sinks is not None:
        problem = _op.find_problem(q, k, v, None) or _op.find_sinks_problem(sinks, q)
    if problem is not None:
        raise problem
    _variants.check_functions(variant, arguments, mods, scale, others)
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    if variant is None:
        return _functions.attention_of_mods(q, k, v, mods, scale, return_lse, deterministic, block_mask, sinks)
    return _functions.attention(q, k, v, variant, arguments or {}, scale, return_lse, deterministic)


def _call_masks(q, k, v, causal, window, softcap, alibi, bias, scale, return_lse, deterministic, fallback, sinks):
    """With any of the masks, soft caps, slopes, biases and sinks that have names."""
    left, right = _variants.read_window(causal, window)
    learned = _find_learned_number(scale, softcap)
    if learned is not None and not fallback:
        raise learned
    cap, softcap = softcap, _variants.read_softcap(softcap.detach() if isinstance(softcap, torch.Tensor) else softcap)
    if alibi is bias is sinks is learned is None and _has_few(q, k):
        results = _serving.attend_few(q, k, v, (left, right), scale, return_lse, softcap)
        if results is not None:
            return results
    given, others = (causal, scale, window, cap, alibi, bias, sinks), (return_lse, deterministic)
    if bias is not None and _takes_bias(q, k, v, alibi, bias, softcap, scale, fallback, learned):
        return _call_named(q, k, v, _bias.make_score(bias), left, right, scale, *others, given)
    if fallback and (learned or not _takes_scale(scale) or _needs_fallback(q, k, v, alibi, bias)):
        results = _fallback.attention(
            q, k, v, left=left, right=right, softcap=cap if softcap else 0.0, alibi=alibi, bias=bias,
            scale=q.shape[-1] ** -0.5 if scale is None else scale, sinks=sinks,
        )  # fmt: skip
        return results if return_lse else results[0]
    if sinks is not None or (alibi is not None and torch.is_grad_enabled() and _op.require_grad(alibi)):
        # The kernels of functions take sinks, and make the gradient of slopes too.
        scale = None if scale is None else _read_scale(scale)
        _op.check(q, k, v, alibi)
        if alibi is not None and alibi.stride(0) != 1 and len(alibi) > 1:
            raise ValueError(
                f"argument 'alibi' has stride {alibi.stride(0)}; beside sinks, and with a gradient, it must be 1: pass alibi.contiguous()"
            )
        return _call_named(q, k, v, _named.make_score(alibi, softcap), left, right, scale, *others, given)
    name = _variants.name_variant(_variants.name_mask(left, right), softcap, alibi is not None)
    return _call_op(q, k, v, alibi, name, left, right, softcap, scale, *others, given)


def _find_learned_number(scale, softcap):
    """That the scale or the soft cap has a gradient, which no kernel computes, as an exception, or None."""
    problem = _op.find_number_problem("softcap", softcap, 'write a score_mod that captures it, or pass fallback="torch"')
    scale_problem = None if scale is None else _op.find_scale_problem(scale)
    for found in (problem, scale_problem):
        if isinstance(found, TypeError):
            raise found
    return problem or (scale_problem if isinstance(scale_problem, NotImplementedError) else None)


def _takes_bias(q, k, v, alibi, bias, softcap, scale, fallback, learned):
    """Whether kernels add the bias. Raises why not where no fallback does. `learned` is not None where it has to."""
    if bias.dtype is torch.bool:
        raise TypeError("argument 'bias' is a mask of torch.bool; a mask_mod of it hides scores")
    problem = _bias.find_problem("bias", bias, q, k) or learned
    if softcap or alibi is not None:
        problem = NotImplementedError(
            "argument 'bias' is given beside softcap or alibi, and no kernel has both: write a score_mod, or pass "
            'fallback="torch"'
        )
    if problem is None and fallback:
        return _takes_scale(scale) and not _needs_fallback(q, k, v, alibi, None)
    if problem is not None and not fallback:
        raise problem
    return problem is None


def _takes_scale(scale):
    return scale is None or _op.find_scale_problem(scale) is None


def _needs_fallback(q, k, v, alibi, bias):
    if bias is not None or not _op.runs_on(q.device) or _op.find_problem(q, k, v, alibi) is not None:
        return True
    # Compiled code would be compiled again for each length that its strides say.
    return not torch.compiler.is_compiling() and _op.find_place_problem(q, k, v) is not None


def _read_bounds(left, right):
    """The bounds of a window as kernels take them."""
    unlimited = _variants.UNLIMITED
    return unlimited if left is None else left, unlimited if right is None else right


def _read_scale(scale):
    problem = _op.find_scale_problem(scale)
    if isinstance(problem, ValueError):
        raise ValueError(f'{problem}, or pass fallback="torch"')
    if problem is not None:
        raise problem
    return float(scale)


def _call_named(q, k, v, score, left, right, scale, return_lse, deterministic, given):
    """The kernels of functions for what has a name. `given` is what `_recalled` knows the call by."""
    mods, sinks = (*score, _named.make_window(left, right), ()), given[-1]
    results = _call_functions(q, k, v, None, None, mods, scale, {}, return_lse, deterministic, None, sinks)
    _recalled.remember_mods(q, k, v, *given, mods)
    return results


def _call_op(q, k, v, alibi, variant, left, right, softcap, scale, return_lse, deterministic, given):
    """A kernel of a named variant."""
    if scale is not None:
        scale = _read_scale(scale)
    others = softcap, *_read_bounds(left, right)
    results = _backward.attend(q, k, v, alibi, (variant, scale, *others), return_lse, deterministic)
    _recalled.remember(q, k, v, *given, lambda scale: (variant, scale, *others))
    return results


def warm_up(
    dtype: torch.dtype,
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

    gradients: those for tensors that require a gradient, and for their backward pass, with `deterministic` as `attention`
               has it.
    """
    if not isinstance(dtype, torch.dtype) or dtype not in TYPES:
        raise TypeError(f"argument 'dtype' is {dtype!r}; attention takes float16 and bfloat16")
    mask = _variants.name_mask(*_variants.read_window(causal, window))
    text = _variants.name_variant(mask, softcap, alibi)
    fixed = _backward.is_fixed(deterministic)
    _gradient_kernels.warm_up(text, TYPES[dtype], head_dim, value_dim or head_dim, return_lse, gradients, fixed)
