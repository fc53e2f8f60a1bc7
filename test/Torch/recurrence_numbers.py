# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Recurrences for PyTorch at the lengths and numbers where they are hardest, by the rule that errors against f64 are at most twice those
of the same chunks with operands of 16 bits: heads with gates near 0 and near 1, with keys that repeat, with states of 1000. What lies
behind the last token, be it NaN, changes nothing."""

import torch

from tessera.torch import gated_delta_rule, gla, retention, ssd, use_interpreter

K = V = CHUNK = 64
#: Of each head the least and the most that it forgets by a token; the last ones have keys that repeat, and large states.
FORGETS = (0.0, 1.0), (20.0, 40.0), (0.0, 1e-4), (0.0, 0.01), (0.0, 0.01)
REPEATS, LARGE, HEADS = 3, 4, len(FORGETS)


def draw(tokens):
    """Tensors of all recurrences by name, of rows that go on behind the last token."""
    rows = tokens + 70
    least, most = torch.tensor(FORGETS).T
    forget = lambda *channels: -(least[:, None] + (most - least)[:, None] * torch.rand(1, rows, HEADS, *channels or (1,)))
    q, k, v = (torch.randn(1, rows, HEADS, K) for _ in range(3))
    k = torch.nn.functional.normalize(k, dim=-1)
    k[:, :, REPEATS] = k[:, torch.arange(rows) % 3, REPEATS]
    rates = torch.rand(1, rows, HEADS)
    rates[:, :, REPEATS] = 1
    given = {"q": q.bfloat16(), "k": k.bfloat16(), "v": v.bfloat16(), "g": forget()[..., 0], "channels": forget(K), "rates": rates}
    state = torch.randn(1, HEADS, K, V)
    state[:, LARGE] *= 1000
    return given, state


def recur(q, k, v, logarithms, rates, steps, scale, state):
    """Token by token in f64."""
    q, k, v, logarithms, state = (x.double() for x in (q, k, v, logarithms, state))
    factors = logarithms.exp()[..., None] if logarithms.dim() == 4 else logarithms.exp()[..., None, None]
    out = []
    for t in range(v.shape[1]):
        state = state * factors[:, t]
        new = v[:, t]
        if rates is not None:
            new = rates[:, t, :, None].double() * (new - torch.einsum("bhk,bhkv->bhv", k[:, t], state))
        if steps is not None:
            new = new * steps[:, t, :, None].double()
        state = state + k[:, t, :, :, None] * new[:, :, None]
        out.append(scale * torch.einsum("bhk,bhkv->bhv", q[:, t], state))
    return torch.stack(out, 1), state


def walk_chunks(q, k, v, logarithms, rates, steps, scale, state):
    """By chunks in f32, of which each product has operands of 16 bits, as who writes chunks in PyTorch does."""
    low = lambda x: x.bfloat16().float()
    q, k, v = (x.float().transpose(1, 2) for x in (q, k, v))
    logarithms = logarithms.transpose(1, 2)
    logarithms = logarithms if logarithms.dim() == 4 else logarithms[..., None]
    out = []
    for first in range(0, v.shape[2], CHUNK):
        own = slice(first, first + CHUNK)
        sums = logarithms[:, :, own].double().cumsum(2)
        # Products of rows that differ in what is forgotten between them, whose factors are at most 1.
        between = (sums[:, :, :, None] - sums[:, :, None]).clamp(max=0).exp().float()
        sums, ends = sums.float(), sums[:, :, -1:].float()
        count = sums.shape[2]
        pairs = lambda a, b: (low(a)[:, :, :, None] * low(b)[:, :, None] * between).sum(-1)
        queries, keys, values = q[:, :, own], k[:, :, own], v[:, :, own]
        scores, reads = pairs(queries, keys).tril(), low(queries * sums.exp())
        if rates is not None:
            rate = rates.transpose(1, 2)[:, :, own, None]
            triangle = torch.eye(count) + rate * pairs(keys, keys).tril(-1)
            # As kernels do: with the rates of the columns, which round all of a token's values alike.
            rated = low(torch.linalg.inv(triangle) * rate.transpose(2, 3))
            taken = low(rated @ low(keys * sums.exp()))
            values = rated @ low(values) - taken @ low(state)
        if steps is not None:
            values = values * steps.transpose(1, 2)[:, :, own, None]
        out.append(scale * (reads @ low(state) + low(scores) @ low(values)))
        state = ends.exp().transpose(2, 3) * state + low(keys * (ends - sums).exp()).transpose(2, 3) @ low(values)
    return torch.cat(out, 2).bfloat16().transpose(1, 2), state


def find_errors(found, expected, heads):
    """Of each head."""
    norms = lambda x: x.double().transpose(0, heads).flatten(1).norm(dim=1)
    return norms(found.double() - expected) / norms(expected)


def compare(what, found, expected, form):
    (out, last), (exact, exact_last), (low, low_last) = found, expected, form
    for name, own, true, of_form, heads, least in (("o", out, exact, low, 2, 2e-3), ("s1", last, exact_last, low_last, 1, 1e-5)):
        errors, limits = find_errors(own, true, heads), 2 * find_errors(of_form, true, heads).clamp(min=least)
        assert (errors <= limits).all(), f"{what}, {name}: errors of heads {errors.tolist()}, limits {limits.tolist()}"


def make_calls(given, state, starts=None):
    """Of each recurrence a call and its definition's logarithms, rates, steps and scale, of as many tokens as `given` has. `starts` are
    those of packed sequences."""
    q, k, v, g, channels, rates = given.values()
    decays = torch.log(1 - torch.exp2(-5 - torch.arange(HEADS, dtype=torch.float64))).expand(g.shape)
    scale, steps, named = K**-0.5, -g, {"initial_state": state, "output_final_state": True, "cu_seqlens": starts}

    def call_ssd():
        before = state.transpose(2, 3).contiguous()
        y, last = ssd(v, steps, -torch.ones(HEADS), k, q, initial_states=before, return_final_states=True, cu_seqlens=starts)
        return y, last.transpose(2, 3)

    return {
        "retention": (lambda: retention(q, k, v, **named), (decays, None, None, scale)),
        "gla": (lambda: gla(q, k, v, channels, **named), (channels, None, None, scale)),
        "delta rule": (lambda: gated_delta_rule(q, k, v, g, rates, **named), (g, rates, None, scale)),
        "delta rule of channels": (lambda: gated_delta_rule(q, k, v, channels, rates, **named), (channels, rates, None, scale)),
        "ssd": (call_ssd, (g, None, steps, 1.0)),
    }  # fmt: skip


def check(tokens, names=None):
    rows, state = draw(tokens)
    for x in rows.values():
        x[:, tokens:] = float("nan")
    given = {name: x[:, :tokens] for name, x in rows.items()}
    q, k, v = given["q"], given["k"], given["v"]
    calls = make_calls(given, state)
    for name, (call, definition) in ((name, calls[name]) for name in names or calls):
        compare(f"{name}, {tokens} tokens", call(), recur(q, k, v, *definition, state), walk_chunks(q, k, v, *definition, state))


def check_packed(lengths):
    """Sequences in one call, each with a state of its own, and rows of NaN behind the last one."""
    total = sum(lengths)
    rows, _ = draw(total)
    for x in rows.values():
        x[:, total:] = float("nan")
    states, starts = torch.cat([draw(1)[1] for _ in lengths]), torch.tensor([0, *lengths]).cumsum(0).int()
    for name, (call, _) in make_calls(rows, states, starts).items():
        out, last = call()
        for i, (first, past) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist())):
            own, state = {key: x[:, first:past] for key, x in rows.items()}, states[i : i + 1]
            form = own["q"], own["k"], own["v"], *make_calls(own, state)[name][1], state
            found = out[:, first:past], last[i : i + 1]
            compare(f"{name}, {past - first} tokens of {total}", found, recur(*form), walk_chunks(*form))


def check_resets(alone, tokens=64):
    """A sequence behind so many of one token in its chunk, which forgets hardly and by the same each token: its errors are at most twice
    those of a call of its own. In sums over all sequences each token's part would round alike."""
    q, k, v = (torch.randn(1, tokens, 4, K).half() for _ in range(3))
    steps, rates = torch.full((1, tokens, 4), 0.25), -torch.tensor([1e-3, 2e-3, 4e-3, 0.1])
    own, numbers = slice(alone, None), torch.arange(tokens, dtype=torch.int32).clamp(max=alone)[None]
    exact, exact_last = recur(*(x[:, own] for x in (q, k, v, steps * rates)), None, steps[:, own], 1.0, torch.zeros(1, 4, K, V))
    by_itself, amid = (ssd(*(x[:, part] if x.dim() > 1 else x for x in (v, steps, rates, k, q)), return_final_states=True, **named)
                       for part, named in ((own, {}), (slice(None), {"seq_idx": numbers})))  # fmt: skip
    found = amid[0][:, own], amid[1].transpose(2, 3)
    for what, *three, heads in (("y", found[0], exact, by_itself[0], 2), ("state", found[1], exact_last, by_itself[1].transpose(2, 3), 1)):
        errors, limits = (find_errors(x, three[1], heads) for x in (three[0], three[2]))
        assert (errors <= 2 * limits).all(), f"{what} behind {alone} sequences: errors of heads {errors.tolist()}, alone {limits.tolist()}"


use_interpreter()
torch.manual_seed(1)
for tokens in (1, 63, 64, 65, 1000):
    check(tokens)
check_packed((1, 63, 65))
for alone in (1, 19, 39, 62):
    check_resets(alone)
# Errors that add up do so over many chunks, and most where each chunk has an inverse.
check(8192, ["delta rule of channels"])
