"""Calls of torch's own attention, sent to the kernels."""

import collections

import torch

from . import _op, _originals


def _find_reason(query, key, value, attn_mask, dropout_p, scale, enable_gqa):
    """Why a call is left to torch; None when it is not."""
    if attn_mask is not None:
        return "attn_mask is given"
    if dropout_p:
        return "dropout_p is not 0"
    if scale == 0:
        return "scale is 0"
    if not _op.runs_on(query.device):
        return f"the device is {query.device.type}, or not of compute capability 9.0"
    if query.dim() != 4:
        return f"query has {query.dim()} dimensions"
    problem = _op.find_problem(query, key, value, None)
    if problem is not None:
        return str(problem)
    if query.shape[1] != key.shape[1] and not enable_gqa:
        return "numbers of heads differ without enable_gqa"
    return None


class Use:
    """While it lasts, torch.nn.functional.scaled_dot_product_attention calls the kernels where they do what it does."""

    def __init__(self):
        self._original = torch.nn.functional.scaled_dot_product_attention
        #: How many calls the kernels computed, and how many torch did, by reason. Compiled code does not count.
        self.taken, self.left = 0, collections.Counter()
        torch.nn.functional.scaled_dot_product_attention = self._call

    def _call(
        self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
    ):
        reason = _find_reason(query, key, value, attn_mask, dropout_p, scale, enable_gqa)
        if not torch.compiler.is_compiling():
            if reason is None:
                self.taken += 1
            else:
                self.left[reason] += 1
        if reason is None:
            return _originals.scaled_dot_product_attention(
                query, key, value, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
            )
        return self._original(
            query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale,
            enable_gqa=enable_gqa,
        )  # fmt: skip

    def stop(self):
        """Gives torch its function back."""
        torch.nn.functional.scaled_dot_product_attention = self._original

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def __str__(self):
        lines = [f"{self.taken} calls taken"]
        lines += [f"{count} calls left to torch: {reason}" for reason, count in self.left.most_common()]
        return "\n".join(lines)


def use():
    """Sends calls of torch.nn.functional.scaled_dot_product_attention to the kernels from now on. What they do not
    compute stays with torch; the Use that is returned says, printed, how many calls that were, and why. Its `stop`, or
    the end of a `with`, ends it."""
    return Use()
