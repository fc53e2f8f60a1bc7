"""What balance.tile computes."""


def balance(lengths, shares, step, least):
    """(starts, the first sequence of each share, the one behind its last, steps of a share)"""
    steps = [max(1, -(-length // step)) for length in lengths]
    starts = [sum(steps[:b]) for b in range(len(steps) + 1)]
    even, longest = -(-starts[-1] // shares), max(steps)
    whole = longest * -(-even // longest) if longest <= even else -(-longest // (longest // even))
    size = max(least, whole if whole <= even + even // 32 else even)
    first = [sum(end <= w * size for end in starts[1:]) for w in range(shares)]
    past = [sum(start < (w + 1) * size for start in starts[:-1]) for w in range(shares)]
    return starts, first, past, size
