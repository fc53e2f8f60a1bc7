"""Definitions of recurrences, token by token, for the tests of their gradients, and what these are compared and counted by."""

import torch

BATCH, K, V = 1, 64, 64


def recur(q, k, v, decays, steps=None, scale=1.0, state=None, rates=None):
    """The definition: outputs and the last state, of heads of values that share keys."""
    group = v.shape[2] // q.shape[2]
    q, k = (x.repeat_interleave(group, 2) for x in (q, k))
    state = q.new_zeros(v.shape[0], v.shape[2], q.shape[3], v.shape[3]) if state is None else state
    out = []
    for t in range(v.shape[1]):
        state = state * (decays[:, t, :, None, None] if decays.dim() == 3 else decays[:, t, :, :, None].repeat_interleave(group, 1))
        new = v[:, t] if steps is None else v[:, t] * steps[:, t, :, None]
        if rates is not None:
            new = rates[:, t, :, None] * (new - torch.einsum("bhk,bhkv->bhv", k[:, t], state))
        state = state + k[:, t, :, :, None] * new[:, :, None]
        out.append(scale * torch.einsum("bhk,bhkv->bhv", q[:, t], state))
    return torch.stack(out, 1), state


def draw(tokens, heads, own, widths=(K, V)):
    rows, columns = widths
    shapes = {"q": (heads, rows), "k": (heads, rows), "v": (own, columns)}
    return {name: torch.randn(BATCH, tokens, *shape, dtype=torch.float16) for name, shape in shapes.items()}


def differentiate(function, given, weights):
    """Gradients of a weighted sum of the outputs and of the state behind, in the order of `given`."""
    leaves = {name: x.detach().clone().requires_grad_() for name, x in given.items()}
    outputs = function(**leaves)
    sum((x.double() * w).sum() for x, w in zip(outputs, weights) if w is not None).backward()
    return {name: x.grad for name, x in leaves.items()}


def measure_peak(run):
    """The bytes that `run` holds at most beside its results, by PyTorch's allocations; workspaces of the interpreter are none."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        results = run()
    held = peak = 0
    for event in sorted((x for x in profile.profiler.kineto_results.events() if x.name() == "[memory]"), key=lambda x: x.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak - sum(x.nbytes for x in results)
