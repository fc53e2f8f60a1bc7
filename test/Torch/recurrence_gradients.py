# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Gradients of recurrences for PyTorch against those of their definitions, token by token in f64, by autograd and by differences: on
the interpreter, with states in and out, heads that share keys, lengths that no chunk divides. The ops are what torch asks of ops."""

import itertools
import math

import torch
from recurrent_definitions import BATCH, K, V, differentiate, draw, measure_peak, recur

from tessera.torch import _compute, _kernels, gated_delta_rule, gla, retention, ssd, use_interpreter

#: Head dimensions of gates of channels that take other tiles, or have products made elsewhere: of keys, and of values.
WIDE = (192, 128), (256, 64), (64, 256)


def compare(what, function, definition, given, wants_state):
    """The gradients of a call against those of its definition in f64, and these against a difference."""
    exact = {name: x.double() for name, x in given.items()}
    out, last = definition(**exact)
    weights = [torch.randn_like(out), torch.randn_like(last) if wants_state else None]
    found, expected = differentiate(function, given, weights), differentiate(definition, exact, weights)
    for name, gradient in expected.items():
        # A number of each head gets a sum over all tokens, of either sign: the error is held to that of their magnitudes.
        size, limit = gradient, 4e-3
        if gradient.dim() == 1:
            limit = 1e-2
            each = {**exact, name: exact[name].expand(BATCH, out.shape[1], -1)}
            size = differentiate(definition, each, weights)[name].abs().sum(dim=(0, 1))
        error = (found[name].double() - gradient).norm() / size.norm().clamp(min=1e-9)
        assert found[name].dtype == given[name].dtype and error < limit, f"{what}, {name}: relative error {error}"
    along = {name: torch.randn_like(x) for name, x in exact.items()}
    weigh = lambda step: sum((x * w).sum() for x, w in zip(
        definition(**{name: x + step * along[name] for name, x in exact.items()}), weights) if w is not None)  # fmt: skip
    slope = sum((expected[name] * along[name]).sum() for name in exact)
    assert abs((weigh(1e-5) - weigh(-1e-5)) / 2e-5 - slope) < 1e-4 * abs(slope) + 1e-3, what


def check_retention(tokens, heads, own, starts):
    given = draw(tokens, heads, own)
    if starts:
        given["initial_state"] = torch.randn(BATCH, own, K, V)
    decays = (1 - torch.exp2(-5 - torch.arange(own, dtype=torch.float64))).expand(BATCH, tokens, own)
    compare(
        f"retention of {tokens} tokens",
        lambda **named: retention(**named, output_final_state=starts),
        lambda q, k, v, initial_state=None: recur(q, k, v, decays, scale=K**-0.5, state=initial_state),
        given, starts,
    )  # fmt: skip


def check_ssd(tokens, heads, own, starts):
    drawn = draw(tokens, heads, own)
    given = {"C": drawn["q"], "B": drawn["k"], "x": drawn["v"], "dt": torch.rand(BATCH, tokens, own), "A": -torch.rand(own) - 0.1}
    if starts:
        given.update(D=torch.randn(own), dt_bias=torch.randn(own), initial_states=torch.randn(BATCH, own, V, K))

    def define(C, B, x, dt, A, D=None, dt_bias=None, initial_states=None):
        steps = torch.nn.functional.softplus(dt if dt_bias is None else dt + dt_bias)
        state = None if initial_states is None else initial_states.transpose(2, 3)
        out, last = recur(C, B, x, (steps * A).exp(), steps, state=state)
        return out if D is None else out + D[..., None] * x, last.transpose(2, 3)

    def call(**named):
        y = ssd(**named, dt_softplus=True, return_final_states=starts)
        return y if starts else (y,)

    compare(f"ssd of {tokens} tokens", call, define, given, starts)


def check_arguments():
    """What ssd takes beside, as mamba-ssm does: z, a D of each element, and limits, at which steps stand."""
    given = {**draw(65, 1, 2), "z": torch.randn(BATCH, 65, 2, V, dtype=torch.float16), "dt": torch.randn(BATCH, 65, 2)}
    given.update(A=-torch.rand(2) - 0.1, D=torch.randn(2, V), dt_bias=torch.randn(2))

    def define(q, k, v, z, dt, A, D, dt_bias):
        steps = torch.nn.functional.softplus(dt + dt_bias).clamp(0.3, 1.2)
        out, last = recur(q, k, v, (steps * A).exp(), steps)
        return (out + D * v) * torch.nn.functional.silu(z), last

    def call(q, k, v, dt, A, **named):
        return (ssd(v, dt, A, k, q, **named, dt_softplus=True, dt_limit=(0.3, 1.2)),)

    compare("ssd of mamba-ssm's arguments", call, define, given, False)


def check_limits(tokens):
    """Steps of either sign, of which negative ones are 0 where no limits are named and have no gradient, and as they are without limits."""
    # Small ones, as states grow by negative ones, to more than 16 bits hold.
    given = {**draw(tokens, 1, 2), "dt": 0.05 * torch.randn(BATCH, tokens, 2), "A": -torch.rand(2) - 0.1}
    for limit in ((0.0, math.inf), (-math.inf, math.inf), (-0.02, 0.05)):

        def define(q, k, v, dt, A):
            steps = dt.clamp(*limit)
            return recur(q, k, v, (steps * A).exp(), steps)

        named = {} if limit[0] == 0 else {"dt_limit": limit}
        call = lambda q, k, v, dt, A: (ssd(v, dt, A, k, q, **named),)
        compare(f"ssd of steps within {limit}", call, define, given, False)
        at_limit = {**given, "dt": given["dt"].clamp(*limit)}
        found = [differentiate(call, x, [torch.ones(BATCH, tokens, 2, V)])["dt"] != 0 for x in (given, at_limit)]
        assert torch.equal(found[0], (given["dt"] > limit[0]) & (given["dt"] < limit[1])) and found[1].all(), limit


def check_steps():
    """Steps of 16 bits that are made of a bias and a softplus: of numbers far below 0, and where it is linear, which limits hold or not.
    Gradients are about as near to those of the definition as where PyTorch makes steps."""
    given = {**draw(65, 1, 2), "A": torch.tensor([-1.0, -0.1]), "dt_bias": torch.tensor([0.25, -0.5]).half()}
    given["dt"] = torch.randn(BATCH, 65, 2).half()
    given["dt"][:, 20:26] = torch.tensor([-30.0, 0.0, 19.5, 20.0, 20.5, 31.0]).half()[:, None]
    exact, weights = {name: x.double() for name, x in given.items()}, [torch.randn(BATCH, 65, 2, V)]
    for limit in ((0.0, math.inf), (0.001, 0.1), (0.1, 25.0)):

        def make(dt, dt_bias):
            return torch.nn.functional.softplus(dt + dt_bias).clamp(*limit)

        def define(q, k, v, dt, A, dt_bias):
            steps = make(dt, dt_bias)
            return (recur(q, k, v, (steps * A).exp(), steps)[0],)

        def call(q, k, v, dt, A, dt_bias):
            return (ssd(v, dt, A, k, q, None, dt_bias, dt_softplus=True, dt_limit=limit),)

        def call_made(q, k, v, dt, A, dt_bias):
            return (ssd(v, make(dt.float(), dt_bias.float()), A, k, q, dt_limit=(-math.inf, math.inf)),)

        found, made, expected = (differentiate(*own, weights) for own in ((call, given), (call_made, given), (define, exact)))
        for name, gradient in expected.items():
            error, of_made = ((x[name].double() - gradient).norm() / gradient.norm() for x in (found, made))
            assert error < 2 * of_made + 1e-4, f"ssd of a softplus within {limit}, {name}: {error}, and {of_made} of made steps"

def check_sequences(tokens, heads, own, numbers):
    """States that are forgotten where the number changes: before the first token that of 0."""
    given = draw(tokens, heads, own)
    given.update(dt=torch.rand(BATCH, tokens, own), A=-torch.rand(own) - 0.1, D=torch.randn(own), dt_bias=torch.randn(own))
    given["initial_states"] = torch.randn(BATCH, own, V, K)
    before = torch.cat((torch.zeros_like(numbers[:, :1]), numbers[:, :-1]), 1)

    def define(q, k, v, dt, A, D, dt_bias, initial_states):
        steps = torch.nn.functional.softplus(dt + dt_bias)
        decays = (steps * A).exp() * (numbers == before)[..., None]
        out, last = recur(q, k, v, decays, steps, state=initial_states.transpose(2, 3))
        return out + D[..., None] * v, last.transpose(2, 3)

    def call(q, k, v, dt, A, **named):
        return ssd(v, dt, A, k, q, **named, dt_softplus=True, return_final_states=True, seq_idx=numbers)

    compare(f"ssd of sequences, {tokens} tokens", call, define, given, True)


def list_numbers(tokens):
    """Numbers of sequences: one, that of each token, many and then one, and numbers that come back."""
    places = torch.arange(tokens)[None]
    return places * 0, places + 1, places.clamp(max=40).int(), (places // 7 % 2).int()


def check_delta_rule(tokens, heads, own, starts):
    given = draw(tokens, heads, own)
    given["k"] = torch.nn.functional.normalize(given["k"].float(), dim=-1).to(given["k"].dtype)
    given.update(g=-torch.rand(BATCH, tokens, own), beta=torch.rand(BATCH, tokens, own))
    if starts:
        given["initial_state"] = torch.randn(BATCH, own, K, V)
    compare(
        f"delta rule of {tokens} tokens",
        lambda **named: gated_delta_rule(**named, scale=0.3, output_final_state=starts),
        lambda q, k, v, g, beta, initial_state=None: recur(q, k, v, g.exp(), scale=0.3, state=initial_state, rates=beta),
        given, starts,
    )  # fmt: skip


def check_made_gates(tokens, heads, own, channels, bound=None):
    """Gates and rates that calls make of A_log and dt_bias, and states with the columns first, as flash-linear-attention's layers ask."""
    given, of_gates = draw(tokens, heads, own), (heads, K) if channels else (own,)
    given["k"] = torch.nn.functional.normalize(given["k"].float(), dim=-1).to(given["k"].dtype)
    given.update(g=torch.randn(BATCH, tokens, *of_gates), beta=torch.randn(BATCH, tokens, own), dt_bias=torch.randn(math.prod(of_gates)))
    given.update(A_log=torch.randn(of_gates[0]), initial_state=torch.randn(BATCH, own, V, K))

    def define(q, k, v, g, beta, A_log, dt_bias, initial_state):
        wide = g + (dt_bias.unflatten(-1, (heads, K)) if channels else dt_bias)
        rates = A_log.exp()[..., None] if channels else A_log.exp()
        g = -rates * torch.nn.functional.softplus(wide) if bound is None else bound * torch.sigmoid(rates * wide)
        state = initial_state.transpose(2, 3)
        out, last = recur(q, k, v, g.exp(), scale=0.3, state=state, rates=2 * torch.sigmoid(beta))
        return out, last.transpose(2, 3)

    call = lambda **named: gated_delta_rule(
        **named, scale=0.3, output_final_state=True, state_v_first=True, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
        allow_neg_eigval=True, lower_bound=bound, safe_gate=bound is not None, chunk_size=32, cu_seqlens_cpu=None,
    )  # fmt: skip
    compare(f"delta rule of made gates, {tokens} tokens, {channels}, {bound}", call, define, given, True)


def check_lengths(tokens, heads, own, channels):
    """Queries and keys that the call divides by their lengths, with gates of heads or channels."""
    given = draw(tokens, heads, own)
    given.update(g=-torch.rand(BATCH, tokens, *((heads, K) if channels else (own,))), beta=torch.rand(BATCH, tokens, own))

    def define(q, k, v, g, beta):
        q, k = (x / x.norm(dim=-1, keepdim=True) for x in (q, k))
        return recur(q, k, v, g.exp(), scale=0.3, rates=beta)

    def call(**named):
        return gated_delta_rule(**named, scale=0.3, use_qk_l2norm_in_kernel=True)[:1]

    compare(f"delta rule of {tokens} tokens, by lengths", call, define, given, False)
    given["k"][:, 0] = 0
    found = differentiate(call, given, [torch.ones(BATCH, tokens, own, V)])
    assert all(x[:, 1:].isfinite().all() for x in found.values()) and found["q"].isfinite().all(), found


def check_gla(tokens, heads, own, starts, widths=(K, V)):
    given = draw(tokens, heads, own, widths)
    given["g"] = -torch.rand(given["q"].shape) * torch.tensor([0.1, 4.0]).repeat(widths[0] // 2)
    if starts:
        given["initial_state"] = torch.randn(BATCH, own, *widths)
    compare(
        f"gla of {tokens} tokens, {widths}",
        lambda **named: gla(**named, output_final_state=starts),
        lambda q, k, v, g, initial_state=None: recur(q, k, v, g.exp(), scale=widths[0]**-0.5, state=initial_state),
        given, starts,
    )  # fmt: skip


def check_channels(tokens, heads, own, starts, most=4.0, widths=(K, V)):
    """Gates that forget hardly and all, and keys that repeat."""
    given = draw(tokens, heads, own, widths)
    given["k"] = torch.nn.functional.normalize(given["k"].float(), dim=-1).to(given["k"].dtype)[:, torch.arange(tokens) % 5]
    given["g"] = -torch.rand(given["q"].shape) * torch.tensor([0.01, most]).repeat(widths[0] // 2)
    given["beta"] = torch.rand(BATCH, tokens, own)
    if starts:
        given["initial_state"] = torch.randn(BATCH, own, *widths)
    compare(
        f"delta rule of channels, {tokens} tokens, {widths}",
        lambda **named: gated_delta_rule(**named, scale=0.3, output_final_state=starts),
        lambda q, k, v, g, beta, initial_state=None: recur(q, k, v, g.exp(), scale=0.3, state=initial_state, rates=beta),
        given, starts,
    )  # fmt: skip


def check_packed(name, heads, own, lengths=(1, 63, 0, 64, 65), widths=(K, V)):
    """Sequences in one call, each with a state of its own, and behind them rows of NaN that no sequence has: their gradients are 0."""
    tokens = sum(lengths) + 3
    given = draw(tokens, heads, own, widths)
    given["k"] = torch.nn.functional.normalize(given["k"].float(), dim=-1).to(given["k"].dtype)
    of_heads, of_channels, rates = (torch.rand(BATCH, tokens, *of) for of in ((own,), (heads, widths[0]), (own,)))
    given.update({
        "retention": {}, "ssd": {"g": of_heads}, "gla": {"g": -of_channels}, "delta rule": {"g": -of_heads, "beta": rates},
        "delta rule of channels": {"g": -of_channels, "beta": rates},
    }[name])  # fmt: skip
    for x in given.values():
        x[:, -3:] = float("nan")
    given["initial_state"] = torch.randn(len(lengths), own, *widths)
    starts = torch.tensor([0, *lengths]).cumsum(0).int()

    def call(g=None, beta=None, **named):
        others = {"scale": 0.3, "output_final_state": True, "cu_seqlens": starts}
        if name == "ssd":
            q, k, v, state = named.values()
            y, last = ssd(v, g, -torch.ones(own), k, q, initial_states=state.transpose(2, 3).contiguous(), return_final_states=True,
                          cu_seqlens=starts)  # fmt: skip
            out = y, last.transpose(2, 3)
        elif name == "retention":
            out = retention(**named, **others)
        else:
            out = gated_delta_rule(**named, g=g, beta=beta, **others) if beta is not None else gla(**named, g=g, **others)
        return out[0][:, :-3], out[1]

    def define(q, k, v, initial_state, g=None, beta=None):
        found, decays = [], (1 - torch.exp2(-5 - torch.arange(own, dtype=torch.float64))).expand(BATCH, tokens, own)
        for i, (first, past) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist())):
            *part, gates, of_rates = (None if x is None else x[:, first:past] for x in (q, k, v, decays if g is None else g, beta))
            state, is_ssd = initial_state[i : i + 1], name == "ssd"
            fading = gates if g is None else (-gates if is_ssd else gates).exp()
            form = fading, gates if is_ssd else None, 1.0 if is_ssd else 0.3, state, of_rates
            found.append(recur(*part, *form) if past > first else (part[2], state))
        return torch.cat([out for out, _ in found], 1), torch.cat([last for _, last in found])

    compare(f"packed {name} of {heads} and {own} heads", call, define, given, True)


def check_ops():
    """Schemas, shapes without data, and gradients as torch.compile traces them."""
    given = draw(5, 1, 2)
    # Delta rules grow without end with keys that are longer than 1.
    given["k"] = torch.nn.functional.normalize(given["k"].float(), dim=-1).half()
    q, k, v = (x.requires_grad_() for x in given.values())
    state = torch.randn(BATCH, 2, K, V, requires_grad=True)
    decays = torch.full((2,), -0.1)
    torch.library.opcheck(torch.ops.tessera.retention, (q, k, v, decays, 0.5, state, None, True))
    channels, beta = (torch.rand(BATCH, 5, *of) for of in ((1, K), (2,)))
    delta = q, k, v, (-channels).requires_grad_(), beta.requires_grad_(), 0.5, state, None, True, True
    torch.library.opcheck(torch.ops.tessera.delta_rule, delta)
    torch.library.opcheck(torch.ops.tessera.unit_rows, (q, k))
    steps, rates = torch.rand(BATCH, 5, 2, requires_grad=True), (-torch.rand(2)).requires_grad_()
    given = "given", -math.inf, math.inf
    torch.library.opcheck(torch.ops.tessera.ssd, (q, k, v, steps, rates, None, None, None, None, state, None, *given, True, True))
    bias, skip, z = (torch.randn(shape, requires_grad=True) for shape in ((2,), (2, V), v.shape))
    numbers, made = torch.arange(5).expand(BATCH, 5).int().contiguous(), ("softplus", 0.1, 1.0)
    torch.library.opcheck(torch.ops.tessera.ssd, (q, k, v, steps, rates, bias, numbers, skip, z, state, None, *made, True, True))
    # Gradients of outputs that are not dense.
    tensors = None, q, k, v, steps, rates, bias, numbers, skip, z, state, None
    arguments = *[None if x is None else x.detach() for x in tensors], *made
    grad, ungated = torch.randn(BATCH, 2, 5, V).half().transpose(1, 2), torch.randn(v.shape).half()
    back = grad, *arguments, ungated
    torch.library.opcheck(torch.ops.tessera.ssd_backward, back, test_utils=("test_schema", "test_faketensor"))


def check_compiled():
    """Compiled code without a break, whose refusals it can catch."""
    given, gates, rates = draw(5, 2, 2), -torch.rand(BATCH, 5, 2), torch.rand(BATCH, 5, 2)
    for function in (
        lambda q, k, v: retention(q, k, v)[0],
        lambda q, k, v: gla(q, k, v, gates[..., None].expand(k.shape).contiguous())[0],
        lambda q, k, v: gated_delta_rule(q, k, v, gates, rates, use_qk_l2norm_in_kernel=True)[0],
        lambda q, k, v: ssd(v, rates, gates[0, 0], k, q),
        lambda q, k, v: ssd(v, rates, gates[0, 0], k, q, k[0, 0], z=q, seq_idx=torch.arange(5).expand(BATCH, 5)),
    ):
        torch._dynamo.reset()
        want = function(*given.values())
        torch.testing.assert_close(torch.compile(function, fullgraph=True, backend="eager")(*given.values()), want)

    def caught(q, k, v):
        try:
            return retention(q, k, v)[0]
        except ValueError:
            return v + 1

    q, k, v = given.values()
    torch.testing.assert_close(torch.compile(caught, fullgraph=True, backend="eager")(q, k[:, :4], v), v + 1)


def check_transforms():
    """torch.func's gradients are autograd's, of states too and in compiled code. Gradients have no gradients, and say so."""
    given, gates, rates = draw(5, 1, 2), -torch.rand(BATCH, 5, 2), torch.rand(BATCH, 5, 2)
    channels, decays = -torch.rand(BATCH, 5, 1, K), -torch.rand(2)
    v, state = given["v"], torch.randn(BATCH, 2, K, V)
    k = torch.nn.functional.normalize(given["k"].float(), dim=-1).half()
    starts = torch.tensor([0, 2, 5], dtype=torch.int32)
    for name, call in {
        "packed retention": lambda q, s: retention(q, k, v, None, s.repeat(2, 1, 1, 1), True, cu_seqlens=starts),
        "retention": lambda q, s: retention(q, k, v, None, s, True), "gla": lambda q, s: gla(q, k, v, channels, None, s, True),
        "delta rule": lambda q, s: gated_delta_rule(q, k, v, gates, rates, None, s, True, use_qk_l2norm_in_kernel=True),
        "delta rule of channels": lambda q, s: gated_delta_rule(q, k, v, channels, rates, None, s, True),
        "ssd": lambda q, s: ssd(v, rates, decays, k, q, initial_states=s, return_final_states=True),
    }.items():  # fmt: skip
        weigh = lambda *leaves: sum(x.float().square().sum() for x in call(*leaves))
        leaves = [x.clone().requires_grad_() for x in (given["q"], state)]
        weigh(*leaves).backward()
        differentiate = torch.func.grad(weigh, argnums=(0, 1))
        torch._dynamo.reset()
        for found in (differentiate, torch.compile(differentiate, fullgraph=True, backend="aot_eager")):
            for leaf, gradient in zip(leaves, found(*(x.detach() for x in leaves))):
                torch.testing.assert_close(gradient, leaf.grad, msg=lambda text: f"{name}: {text}")
        first = torch.autograd.grad(weigh(*leaves), leaves, create_graph=True)
        try:
            first[1].sum().backward()
        except NotImplementedError as caught:
            assert "gradients of recurrences have no gradients themselves" in str(caught), caught
        else:
            raise AssertionError(f"{name}: gradients of gradients are not refused")


def check_strides():
    """Gates begin where copies take them from, which launches on a device ask of tensors and the interpreter does not."""
    launch, strides = _compute.launch, []
    _compute.launch = lambda kernel, *arguments: strides.extend(
        x.stride(1) for x in arguments if isinstance(x, torch.Tensor) and x.dim() == 3 and x.dtype == torch.float32 and x.shape[2] == 5
    )
    try:
        given = {name: x.requires_grad_() for name, x in draw(5, 1, 2).items()}
        gates, rates = (torch.rand(BATCH, 5, 2, requires_grad=True) for _ in range(2))
        gated_delta_rule(**given, g=gates, beta=rates)[0].sum().backward()
        ssd(given["v"], gates, -torch.rand(2), given["k"], given["q"]).sum().backward()
    finally:
        _compute.launch = launch
    assert len(strides) > 10 and not any(stride % 4 for stride in strides), strides


def check_transposed_states():
    """States that lie transposed, and gradients of them: rows of what is launched are dense, which devices ask and the interpreter does
    not, and gradients are those of dense states."""
    launch, strides = _compute.launch, []

    def record(kernel, *arguments, **named):
        strides.extend(x.stride(3) for x in arguments if isinstance(x, torch.Tensor) and x.dim() == 4)
        return launch(kernel, *arguments, **named)

    turn = lambda x: x.transpose(2, 3).contiguous().transpose(2, 3)
    state, weights = (torch.randn(BATCH, 2, K, V) for _ in range(2))
    given, gates, rates = draw(5, 1, 2), -torch.rand(BATCH, 5, 2), torch.rand(BATCH, 5, 2)
    calls = {
        "retention": lambda s: retention(**given, initial_state=s, output_final_state=True),
        "gla": lambda s: gla(**given, g=gates[..., :1, None].expand(BATCH, 5, 1, K), initial_state=s, output_final_state=True),
        "delta rule": lambda s: gated_delta_rule(**given, g=gates, beta=rates, initial_state=s, output_final_state=True),
    }
    _compute.launch = record
    try:
        for name, call in calls.items():
            for uses_last in (True, False):
                found = []
                for lay in (torch.clone, turn):
                    own = lay(state).requires_grad_()
                    out, last = call(own)
                    outputs, grads = ((out, last), (torch.ones_like(out), lay(weights))) if uses_last else ((out,), (torch.ones_like(out),))
                    found += torch.autograd.grad(outputs, own, grads)
                assert found[1].is_contiguous() and torch.equal(*found), f"{name}: {found[1].stride()}"
    finally:
        _compute.launch = launch
    assert len(strides) > 30 and set(strides) == {1}, set(strides)


def check_memory():
    """What gradients hold beside their results, of a chunk of a head: little more than a state of f32."""
    tokens, width, ops = 512, 128, torch.ops.tessera
    state, one = width * width * 4, torch.tensor([0, tokens], dtype=torch.int32)
    # A packed sequence has a chunk more. With gates of heads its walks begin with a state of zeros, and gates lie in chunks.
    for name, heads, starts, expected in (
        *((name, heads, starts, state if starts is None else state * 9 / 8)
          for name in ("gla", "channels") for heads in (1, 2) for starts in (None, one)),
        ("heads", 1, None, state), ("heads", 2, None, state), ("heads", 1, one, (state + 4 * 64 * 4 + state / 9) * 9 / 8),
    ):  # fmt: skip
        q, k, v = draw(tokens, 1, heads, (width, width)).values()
        g = -torch.rand(BATCH, tokens, *((heads,) if name == "heads" else (1, width)))
        beta, grad = torch.rand(BATCH, tokens, heads), torch.ones_like(v)
        if name == "gla":
            run = lambda: ops.gla_backward(grad, None, q, k, v, g, 0.3, None, starts)
        else:
            _, _, *kept = ops.delta_rule(q, k, v, g, beta, 0.3, None, starts, False, True)
            run = lambda: ops.delta_rule_backward(grad, None, q, k, v, g, beta, 0.3, None, starts, *kept)
        found = measure_peak(run) / (tokens // 64 * heads)
        assert expected < found < 1.02 * expected, f"{name} of {heads} heads, {starts}: {found} bytes a chunk, and not {expected}"


def check_one_walk():
    """The delta rule where heads are more than multiprocessors: one walk in place of states first."""
    count, find, found = _kernels.count_multiprocessors, _kernels.find, []
    _kernels.count_multiprocessors = lambda device: 0
    _kernels.find = lambda is_cpu, source, *others, **named: found.append(source) or find(is_cpu, source, *others, **named)
    try:
        check_delta_rule(5, 1, 2, True)
    finally:
        _kernels.count_multiprocessors, _kernels.find = count, find
    assert any(source.endswith("delta_rule.tile") for source in found), found


def check_large():
    """Gradients of outputs times 2^20, as a scale of the loss makes them, where what fades within a chunk grows by much of the range of f32."""
    for channels, gate in itertools.product((False, True), (-1.03, -1.2)):
        q, k, v = (x.bfloat16() for x in draw(64, 1, 1).values())
        given = [q, (k / k.norm(dim=-1, keepdim=True)) if channels else k, v, torch.full((BATCH, 64, 1, K), gate)]
        given += [torch.rand(BATCH, 64, 1)] if channels else []
        leaves = [x.detach().requires_grad_() for x in given]
        out = (gated_delta_rule if channels else gla)(*leaves)[0]
        small, large = (torch.autograd.grad(out, leaves, torch.full_like(out, scale), retain_graph=True) for scale in (1.0, 2.0**20))
        for a, b in zip(small, large):
            error = (b.double() / 2**20 - a.double()).norm() / a.double().norm()
            assert error < 1e-3, (channels, gate, error)  # NaN is not.


use_interpreter()
check_large()
torch.manual_seed(1)
check_strides()
check_transposed_states()
check_one_walk()
for form in ((1, 1, 1, False), (65, 1, 2, True)):
    check_retention(*form)
    check_ssd(*form)
    check_delta_rule(*form)
    check_gla(*form)
    check_channels(*form)
    check_lengths(*form)
check_channels(64, 1, 1, False, most=40.0)
# Over many chunks, where most is made of each.
check_channels(1000, 1, 1, True)
for name in ("retention", "ssd", "gla", "delta rule", "delta rule of channels"):
    check_packed(name, 1, 2)
check_packed("delta rule of channels", 2, 2)
for form in WIDE:
    check_gla(65, 1, 1, True, widths=form)
    check_channels(65, 1, 1, True, widths=form)
check_packed("gla", 1, 1, (1, 0, 65), WIDE[0])
check_packed("delta rule of channels", 1, 1, (1, 0, 65), WIDE[0])
check_ops()
check_compiled()
check_transforms()
check_memory()
check_arguments()
check_steps()
torch.manual_seed(2)
# Of one token gradients are single products, of heads that share queries sums of these, of which nothing may be left.
for tokens in (5, 65, 200):
    check_limits(tokens)
    for numbers in list_numbers(tokens):
        check_sequences(tokens, 1, 2, numbers)
    for channels, bound in itertools.product((False, True), (None, -5.0)):
        check_made_gates(tokens, 1, 2, channels, bound)
