"""Calls of torch's own attention, sent to the kernels."""

from __future__ import annotations

import collections

import torch

from . import _captured, _flex, _listed, _op, _originals
from ._attention import TORCH_NAMES


@_op.mark_constant
def _asks_for_operations():
    """Whether sdpa_kernel or the settings of torch leave none of its fused kernels, as for gradients of gradients."""
    cuda = torch.backends.cuda
    return not (cuda.flash_sdp_enabled() or cuda.mem_efficient_sdp_enabled() or cuda.cudnn_sdp_enabled())


def _find_reason(query, key, value, attn_mask, dropout_p, scale, enable_gqa):
    """Why a call of scaled_dot_product_attention is left to torch; None when it is not."""
    if attn_mask is not None:
        return "attn_mask is given"
    if dropout_p:
        return "dropout_p is not 0"
    if _asks_for_operations():
        return "sdpa_kernel asks for torch's own operations"
    reason = _find_tensor_reason(query, key, value, scale)
    if reason is None and query.shape[1] != key.shape[1] and not enable_gqa:
        return "numbers of heads differ without enable_gqa"
    return reason


def _find_flex_reason(query, key, value, score_mod, block_mask, scale, *rest):
    """Why a call of flex_attention is left to torch; None when it is not."""
    problem = _find_argument_problem(query, key, value, scale) or _flex.find_problem(query, key, block_mask, *rest)
    if problem is not None:
        return str(problem)
    reason = _find_tensor_reason(query, key, value, scale)
    if reason is not None:
        return reason
    mask_mod = None if block_mask is None else _listed.find_function(block_mask)
    if score_mod is None and mask_mod is None:
        return None
    return _captured.find(query.device, score_mod, (), mask_mod, ())[0].problem


def _find_argument_problem(query, key, value, scale):
    problem = _op.find_type_problem({"query": query, "key": key, "value": value})
    if problem is not None or scale is None:
        return problem
    return _op.find_scale_problem(scale)


def _find_tensor_reason(query, key, value, scale):
    problem = _find_argument_problem(query, key, value, scale)
    if problem is not None:
        return str(problem)
    if not _op.runs_on(query.device):
        return f"the device is {query.device.type}, or not of compute capability 9.0"
    if query.dim() != 4:
        return f"query has {query.dim()} dimensions"
    problem = _op.find_problem(query, key, value, None, TORCH_NAMES)
    if problem is None and not torch.compiler.is_compiling():
        problem = _op.find_place_problem(query, key, value, TORCH_NAMES)
    return None if problem is None else str(problem)


# Those that have begun and were not stopped.
_lasting = []


class Use:
    """While it lasts, torch.nn.functional.scaled_dot_product_attention and torch.nn.attention.flex_attention.flex_attention
    call the kernels where they do what these do."""

    def __init__(self) -> None:
        self._original = torch.nn.functional.scaled_dot_product_attention
        from torch.nn.attention import flex_attention as flex

        self._flex, self._original_flex = flex, flex.flex_attention
        #: How many calls the kernels computed, and how many torch did, by reason. Compiled code does not count.
        self.taken = 0
        self.left: collections.Counter[str] = collections.Counter()
        torch.nn.functional.scaled_dot_product_attention = self._call
        flex.flex_attention = self._call_flex
        _lasting.append(self)

    def _count(self, reason):
        if torch.compiler.is_compiling():
            return
        if reason is None:
            self.taken += 1
        else:
            self.left[reason] += 1

    def _call(
        self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
    ):
        reason = _find_reason(query, key, value, attn_mask, dropout_p, scale, enable_gqa)
        self._count(reason)
        if reason is None:
            return _originals.scaled_dot_product_attention(
                query, key, value, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
            )
        return self._original(
            query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale,
            enable_gqa=enable_gqa,
        )  # fmt: skip

    def _call_flex(
        self, query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, return_lse=False,
        kernel_options=None, *, return_aux=None,
    ):  # fmt: skip
        reason = _find_flex_reason(
            query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse, return_aux
        )
        self._count(reason)
        call = _flex.flex_attention if reason is None else self._original_flex
        return call(
            query, key, value, score_mod, block_mask, scale, enable_gqa, return_lse, kernel_options, return_aux=return_aux
        )

    def stop(self) -> None:
        """Gives torch the functions back that it had before. Others of these that began since go on."""
        if self not in _lasting:
            return
        _lasting.remove(self)
        if torch.nn.functional.scaled_dot_product_attention == self._call:
            torch.nn.functional.scaled_dot_product_attention = self._original
        if self._flex.flex_attention == self._call_flex:
            self._flex.flex_attention = self._original_flex
        for other in _lasting:
            if other._original == self._call:
                other._original = self._original
            if other._original_flex == self._call_flex:
                other._original_flex = self._original_flex

    def __enter__(self) -> Use:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __str__(self) -> str:
        lines = [f"{self.taken} call{'' if self.taken == 1 else 's'} taken"]
        lines += [f"{count} calls left to torch: {reason}" for reason, count in self.left.most_common()]
        return "\n".join(lines)


def use() -> Use:
    """Sends calls of torch.nn.functional.scaled_dot_product_attention, and of flex_attention of its module, to the kernels
    from now on. What they do not compute stays with torch; the Use that is returned says, printed, how many calls that were,
    and why. Its `stop`, or the end of a `with`, ends it."""
    return Use()
