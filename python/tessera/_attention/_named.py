"""What `attention` has arguments for, as functions of scores and masks: these have gradients of slopes too."""

from .._functions._math import tanh
from .._functions._tracing import length
from . import _variants


def _cap(s, b, h, q, k, cap):
    return cap * tanh(s / cap)


def _fall(s, b, h, q, k, slopes):
    return s - slopes[h] * abs(q + length("SK") - length("SQ") - k)


def _cap_and_fall(s, b, h, q, k, slopes, cap):
    return _fall(_cap(s, b, h, q, k, cap), b, h, q, k, slopes)


def make_score(slopes, softcap):
    """(score_mod, score_args) of `attention`'s slopes for heads, or None, of scores that are capped unless `softcap` is 0."""
    if slopes is None:
        return (_cap, (softcap,)) if softcap else (None, ())
    return (_cap_and_fall, (slopes, softcap)) if softcap else (_fall, (slopes,))


def make_window(left, right):
    """The mask of `attention`'s window, aligned at the end; None where all keys are seen."""
    left = None if left == _variants.UNLIMITED else left
    right = None if right == _variants.UNLIMITED else right
    if left is None and right is None:
        return None

    def window(b, h, q, k):
        own = q + length("SK") - length("SQ")
        if left is None:
            return k <= own + right
        return k >= own - left if right is None else (k >= own - left) & (k <= own + right)

    return window
