# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Packed sequences of recurrences for PyTorch against each sequence by a call of its own: outputs, states and gradients, of sequences that
chunks divide and do not, and of an empty one. What one sequence holds, be it NaN, no other sees. What is refused names the argument."""

import unittest.mock

import torch

from tessera.torch import _kernels, gated_delta_rule, gla, retention, ssd, use_interpreter

HEADS, OWN, K, V = 1, 2, 64, 64
LENGTHS = (3, 0, 64, 70)


def call_ssd(q, k, v, dt, A, initial_state, output_final_state, **named):
    y, last = ssd(v, dt, A, k, q, initial_states=initial_state, return_final_states=True, **named)
    return y, last


def call_gated(**named):
    return call_ssd(**named, dt_softplus=True, dt_limit=(0.3, 1.2))


def call_sequences(v, **named):
    """Of sequences with numbers, of which a few end within a chunk, and some with it."""
    numbers = torch.tensor([x in (3, 4, 64, 100, 192) for x in range(v.shape[1])]).int().cumsum(0)[None]
    return call_ssd(v=v, **named, seq_idx=numbers)


def find_starts(lengths):
    return torch.tensor([0, *lengths]).cumsum(0).int()


def draw(name, lengths):
    tokens = sum(lengths)
    q, k, v = (torch.randn(1, tokens, heads, of, dtype=torch.float16) for heads, of in ((HEADS, K), (HEADS, K), (OWN, V)))
    given = {"q": q, "k": torch.nn.functional.normalize(k.float(), dim=-1).half(), "v": v}
    of_heads, of_channels = -torch.rand(1, tokens, OWN), -torch.rand(1, tokens, HEADS, K)
    is_ssd = "ssd" in name
    shape = (len(lengths), OWN, V, K) if is_ssd else (len(lengths), OWN, K, V)
    others = {"dt": -of_heads, "A": -torch.rand(OWN)} if is_ssd else {
        "retention": {}, "gla": {"g": of_channels},
        "delta rule": {"g": of_heads, "beta": torch.rand(1, tokens, OWN)},
        "delta rule of channels": {"g": of_channels, "beta": torch.rand(1, tokens, OWN)},
    }[name]  # fmt: skip
    if name == "gated ssd":
        others.update(z=torch.randn_like(v), D=torch.randn(OWN, V), dt=torch.randn(1, tokens, OWN), dt_bias=torch.randn(OWN))
    return {**given, **others, "initial_state": torch.randn(shape)}


CALLS = {
    "retention": retention, "gla": gla, "ssd": call_ssd, "gated ssd": call_gated, "delta rule": gated_delta_rule,
    "delta rule of channels": gated_delta_rule,
}  # fmt: skip


def cut(given, starts, i):
    """What sequence i has of the tensors."""
    part = {name: x[:, starts[i] : starts[i + 1]] if x.dim() > 2 else x for name, x in given.items()}
    part["initial_state"] = given["initial_state"][i : i + 1]
    return part


def call_each(name, given, starts):
    found = [CALLS[name](**cut(given, starts, i), output_final_state=True) for i in range(len(starts) - 1)]
    return torch.cat([out for out, _ in found], 1), torch.cat([last for _, last in found])


def compare(what, found, expected):
    error = (found.double() - expected.double()).norm() / expected.double().norm().clamp(min=1e-9)
    assert error < 3e-3, f"{what}: relative error {error}"


def check(name):
    given, starts = draw(name, LENGTHS), find_starts(LENGTHS)
    packed = {key: x.clone().requires_grad_() for key, x in given.items()}
    out, last = CALLS[name](**packed, output_final_state=True, cu_seqlens=starts)
    apart = {key: x.clone().requires_grad_() for key, x in given.items()}
    expected, expected_last = call_each(name, apart, starts.tolist())
    compare(f"{name}: outputs", out, expected)
    compare(f"{name}: states", last, expected_last)
    weights = [torch.randn_like(x) for x in (out, last)]
    for outputs in ((out, last), (expected, expected_last)):
        sum((x.double() * w).sum() for x, w in zip(outputs, weights)).backward()
    for key, x in packed.items():
        compare(f"{name}: gradient of {key}", x.grad, apart[key].grad)


def check_alone(name):
    """NaN in one sequence, which those before and behind it do not see, nor their gradients."""
    lengths = 5, 60, 7
    given, starts = draw(name, lengths), find_starts(lengths).tolist()
    given["k"][:, 5:65] = float("nan")
    weights = [torch.randn_like(x) for x in (given["v"], given["initial_state"])]

    def differentiate(given, weights, **named):
        leaves = {key: x.clone().requires_grad_() for key, x in given.items()}
        results = CALLS[name](**leaves, output_final_state=True, **named)
        sum((x.double() * w).sum() for x, w in zip(results, weights)).backward()
        return *results, {key: x.grad for key, x in leaves.items() if x.dim() > 2}

    out, last, gradients = differentiate(given, weights, cu_seqlens=find_starts(lengths))
    assert out[:, 5:65].isnan().any()
    for i in (0, 2):
        own = weights[0][:, starts[i] : starts[i + 1]], weights[1][i : i + 1]
        alone, state, expected = differentiate(cut(given, starts, i), own)
        compare(f"{name}: sequence {i} beside NaN", out[:, starts[i] : starts[i + 1]], alone)
        compare(f"{name}: state {i} beside NaN", last[i : i + 1], state)
        for key, x in cut(gradients, starts, i).items():
            compare(f"{name}: gradient of {key} of sequence {i} beside NaN", x, expected[key])


def check_outside(name):
    """Rows of NaN before the first sequence and behind the last, starts of int64, and sequences without tokens at either end: gradients
    are those of calls of the rows between, and 0 outside, also where the graph is gone through again."""
    lengths = 0, 37, 0, 32, 0
    given, starts = draw(name, (3, *lengths, 18)), 3 + find_starts(lengths).long()
    given["initial_state"] = given["initial_state"][1:-1]
    weights = torch.randn_like(given["v"]), torch.randn_like(given["initial_state"])
    own = slice(3, -18)
    for x in (*(x for x in given.values() if x.dim() > 2 and x is not given["initial_state"]), weights[0]):
        x[:, :3] = x[:, -18:] = float("nan")
    leaves = {key: x.clone().requires_grad_() for key, x in given.items()}
    results = CALLS[name](**leaves, output_final_state=True, cu_seqlens=starts)
    found = [torch.autograd.grad(results, list(leaves.values()), weights, retain_graph=True) for _ in range(2)]
    cut_out = lambda x: x[:, own] if x.dim() > 2 and x.shape[1] == given["v"].shape[1] else x
    alone = {key: cut_out(x).clone().requires_grad_() for key, x in given.items()}
    expected = CALLS[name](**alone, output_final_state=True, cu_seqlens=starts - 3)
    assert torch.equal(results[0][:, own], expected[0]) and torch.equal(results[1], expected[1]), name
    gradients = torch.autograd.grad(expected, list(alone.values()), [cut_out(w) for w in weights])
    for key, x, again, gradient in zip(alone, *found, gradients):
        assert torch.equal(x, again), f"{name}: gradient of {key}, again"
        compare(f"{name}: gradient of {key} between rows of no sequence", cut_out(x), gradient)
        assert cut_out(x) is x or not x[:, :3].any() and not x[:, -18:].any(), f"{name}: gradient of {key} outside"


def check_no_states():
    given = draw("delta rule", (5,))
    del given["initial_state"]
    out, last = gated_delta_rule(**given, cu_seqlens=find_starts((5,)))
    assert last is None
    compare("no states", out, gated_delta_rule(**given)[0])


def check_segments():
    """A long sequence of few heads in segments side by side, and as a whole, with gradients."""
    find, choose, found = _kernels.find, _kernels.choose, []
    _kernels.find = lambda *arguments, **named: (
        "FINAL" in named and found.append(named.get("PACKED", False)) or find(*arguments, **named)
    )  # fmt: skip
    few = {"COLUMNS": 32, "FEWEST_CHUNKS": 1, "FEWEST": 3}

    def compute(name, given, cuts):
        _kernels.choose = lambda device, source, *others, **named: (
            few if cuts and source.endswith("segments.tile") else choose(device, source, *others, **named)
        )
        leaves = {key: None if x is None else x.clone().requires_grad_() for key, x in given.items()}
        call = call_sequences if name == "ssd of sequences" else CALLS[name]
        results = call(**leaves, output_final_state=True)
        sum((x.double() * w).sum() for x, w in zip(results, weights)).backward()
        packed, whole = found.count(True), found.count(False)
        found.clear()
        assert (packed >= 5 and not whole) if cuts else not packed, (packed, whole)
        return *results, *(x.grad for x in leaves.values() if x is not None)

    try:
        for name in ("retention", "gla", "ssd", "gated ssd", "ssd of sequences"):
            for starts in (False, True):
                given = draw(name, (280,))
                given["initial_state"] = given["initial_state"] if starts else None
                weights = torch.randn(1, 280, OWN, V), torch.randn(1, OWN, K, V)
                for place, both in enumerate(zip(compute(name, given, True), compute(name, given, False))):
                    compare(f"{name} in segments: result {place}", *both)
    finally:
        _kernels.find, _kernels.choose = find, choose


def check_changed_starts(name):
    """Starts that change in place, come back at the same address, and change in compiled code, count as they are in each call. Changed
    between a forward pass and its gradients they are refused."""
    given, others = draw(name, (40, 30)), ((70, 0), (1, 69), (0, 70))
    leaves = {key: x.clone().requires_grad_() for key, x in given.items()}

    def differentiate(starts, call=CALLS[name]):
        results = call(**leaves, output_final_state=True, cu_seqlens=starts)
        return *results, *torch.autograd.grad([x.sum() for x in results], list(leaves.values()))

    expected = [differentiate(find_starts(lengths)) for lengths in others]
    starts = find_starts((40, 30))
    compiled = torch.compile(CALLS[name], backend="eager")
    for call in (CALLS[name], compiled):
        differentiate(starts, call)
        for lengths, results in zip(others, expected):
            starts.copy_(find_starts(lengths))
            assert all(map(torch.equal, differentiate(starts, call), results)), f"{name}: starts changed in place to those of {lengths}"
    for lengths, results in zip(others, expected):
        before = find_starts((40, 30))
        differentiate(before)
        # A tensor of its own in the memory of one that is gone.
        again = torch.from_numpy(before.numpy())
        del before
        again.numpy()[:] = find_starts(lengths).numpy()
        assert all(map(torch.equal, differentiate(again), results)), f"{name}: starts in memory of others"
    out, _ = CALLS[name](**leaves, output_final_state=True, cu_seqlens=starts)
    starts.copy_(find_starts((40, 30)))
    try:
        out.sum().backward()
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error), error
    else:
        raise AssertionError(f"{name}: gradients by starts of another call")


def check_refusals():
    given, starts = draw("retention", (3, 2)), find_starts((3, 2))

    def refused(text, error=ValueError, **named):
        try:
            retention(**{**given, **named})
        except error as caught:
            assert text in str(caught), f"{caught}, expected {text}"
        else:
            raise AssertionError(f"not refused: {text}")

    refused("argument 'initial_state' has shape (2, 2, 64, 64); (3, 2, 64, 64) would work", cu_seqlens=find_starts((1, 2, 2)))
    refused("argument 'cu_seqlens' has shape (1, 3); (sequences + 1,) would work", cu_seqlens=starts[None])
    refused("argument 'cu_seqlens' has type torch.float32; torch.int32 and torch.int64 would work", TypeError, cu_seqlens=starts.float())
    refused("argument 'cu_seqlens' is on meta and another one on cpu", cu_seqlens=starts.to("meta"))
    twice = {name: torch.cat((x, x)) for name, x in given.items()}
    refused("argument 'cu_seqlens' is given for a batch of 2; sequences one behind the other", **twice, cu_seqlens=starts)


def make_unset(*arguments, make=torch.empty_strided, **named):
    """Memory that holds NaN, or numbers that are no place of anything, until something is stored."""
    made = make(*arguments, **named)
    return made.fill_(float("nan") if made.is_floating_point() else 1 << 20)


use_interpreter()
torch.manual_seed(1)
check_no_states()
check_refusals()
with unittest.mock.patch.object(torch, "empty_strided", make_unset):
    check_segments()
    for name in CALLS:
        check_alone(name)
        check_outside(name)
        check(name)
check_changed_starts("retention")
check_changed_starts("delta rule")
