"""The usual masks of attention, for `Variant(mask=...)`. Queries and keys are aligned at the end: the last query is at
the last key."""

from ._functions._tracing import length
from ._functions._variant import Mask

__all__ = ["causal", "full", "prefix", "window"]


def _own(q):
    """The key that stands at the place of a query."""
    return q + (length("SK") - length("SQ"))


def _full(b, h, q, k):
    return k >= 0


def _causal(b, h, q, k):
    return k <= _own(q)


def _prefix(b, h, q, k, prefix):
    return k < prefix


#: A query sees all keys.
full = Mask(_full)
#: A query sees the keys up to its own.
causal = Mask(_causal)
#: A query sees the first `prefix` keys, an argument of the kernel.
prefix = Mask(_prefix, prefix=int)


def window(left: int, right: int = 0) -> Mask:
    """A query sees the keys from `left` before its own to `right` after it."""
    # No index comes near, and sums with one fit in 32 bits.
    left, right = (min(bound, 2**30) if isinstance(bound, int) else bound for bound in (left, right))

    def window(b, h, q, k):
        own = _own(q)
        return (k >= own - left) & (k <= own + right)

    return Mask(window)
