# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""Recurrences for PyTorch against their definitions, token by token in f64, on the interpreter: states in and out, heads that share
keys, lengths that no chunk divides, a step of decoding. What is refused names the argument and what would work."""

import itertools
import unittest.mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tessera._attention import _recurrences
from tessera.torch import _linear, _segments, gated_delta_rule, gla, retention, ssd, use_interpreter

BATCH, HEADS, OWN, K, V = 2, 1, 2, 64, 32


def recur(q, k, v, decays, rates=None, steps=None, scale=1.0, state=None):
    q, k, v, decays = (x.double() for x in (q, k, v, decays))
    state = torch.zeros(BATCH, OWN, K, V, dtype=torch.float64) if state is None else state.double()
    out = []
    for t in range(v.shape[1]):
        key, query = (x[:, t].expand(BATCH, OWN, K) for x in (k, q))
        state = state * (decays[:, t, :, None, None] if decays.dim() == 3 else decays[:, t, :, :, None])
        new = v[:, t]
        if rates is not None:
            new = rates[:, t, :, None].double() * (new - torch.einsum("bhk,bhkv->bhv", key, state))
        if steps is not None:
            new = new * steps[:, t, :, None].double()
        state = state + key[..., None] * new[:, :, None]
        out.append(scale * torch.einsum("bhk,bhkv->bhv", query, state))
    return torch.stack(out, 1), state


def check(what, found, expected):
    error = (found.double() - expected).norm() / expected.norm()
    assert error < 2e-2, f"{what}: relative error {error}"


def draw(tokens):
    q, k, v = (torch.randn(BATCH, tokens, heads, of, dtype=torch.bfloat16) for heads, of in ((HEADS, K), (HEADS, K), (OWN, V)))
    return q, torch.nn.functional.normalize(k.float(), dim=-1).to(k.dtype), v


def check_values():
    for tokens, starts in ((1, False), (1, True), (67, True)):
        q, k, v = draw(tokens)
        gates, rates = -torch.rand(BATCH, tokens, OWN), torch.rand(BATCH, tokens, OWN)
        state = torch.randn(BATCH, OWN, K, V) if starts else None
        decays = (1 - torch.exp2(-5 - torch.arange(OWN, dtype=torch.float64))).expand(BATCH, tokens, OWN)

        out, last = retention(q, k, v, initial_state=state, output_final_state=True)
        expected, expected_last = recur(q, k, v, decays, scale=K**-0.5, state=state)
        check("retention", out, expected)
        check("state of retention", last, expected_last)
        assert retention(q, k, v)[1] is None

        channels = -torch.rand(BATCH, tokens, HEADS, K)
        out, last = gla(q, k, v, channels, initial_state=state, output_final_state=True)
        expected, expected_last = recur(q, k, v, channels.exp(), scale=K**-0.5, state=state)
        check("gla", out, expected)
        check("state of gla", last, expected_last)

        out, last = gated_delta_rule(q, k, v, gates, rates, 0.5, state, True)
        expected, expected_last = recur(q, k, v, gates.exp(), rates, scale=0.5, state=state)
        check("delta rule", out, expected)
        check("state of the delta rule", last, expected_last)
        out, last = gated_delta_rule(q, k, v, channels, rates, None, state, True)
        expected, expected_last = recur(q, k, v, channels.exp(), rates, scale=K**-0.5, state=state)
        check("delta rule of channels", out, expected)
        check("state of the delta rule of channels", last, expected_last)
        scaled, _ = gated_delta_rule(3 * q, 2 * k, v, gates, rates, use_qk_l2norm_in_kernel=True)
        unit = torch.nn.functional.normalize(q.float(), dim=-1).to(q.dtype)
        check("keys of length 1", scaled, recur(unit, k, v, gates.exp(), rates, scale=K**-0.5)[0])
        scaled, last = gated_delta_rule(3 * q, 2 * k, v, gates, rates, None, state, True, use_qk_l2norm_in_kernel=True)
        expected, expected_last = recur(unit, k, v, gates.exp(), rates, scale=K**-0.5, state=state)
        check("keys of length 1 behind a state", scaled, expected)
        check("state of keys of length 1", last, expected_last)
        wide = gated_delta_rule(3 * q, 2 * k, v, gates.double(), rates.double(), None, state, True, use_qk_l2norm_in_kernel=True)
        assert torch.equal(wide[0], scaled) and torch.equal(wide[1], last)

        rate, skip, bias = -torch.rand(OWN), torch.randn(OWN), torch.randn(OWN)
        before = None if state is None else state.transpose(2, 3).contiguous()
        y, last = ssd(v, gates, rate, k, q, skip, bias, before, dt_softplus=True, return_final_states=True)
        steps = torch.nn.functional.softplus(gates + bias)
        expected, expected_last = recur(q, k, v, (steps.double() * rate).exp(), steps=steps, state=state)
        check("ssd", y, expected + skip[:, None].double() * v)
        check("state of ssd", last, expected_last.transpose(2, 3))
        assert torch.equal(ssd(v, rates, rate, k, q), ssd(v, rates, rate, k, q, D=torch.zeros(OWN)))
        assert torch.equal(ssd(v, rates, rate, k, q), ssd(v, rates, rate, k, q, dt_limit=[-float("inf"), float("inf")]))
        either = torch.randn(BATCH, tokens, OWN)
        assert torch.equal(ssd(v, either, rate, k, q), ssd(v, either.clamp(min=0), rate, k, q))
        narrow, wide = (ssd(v, *x, k, q, skip.to(x[0].dtype), initial_states=before, return_final_states=True)
                        for x in ((rates, rate), (rates.double(), rate.double())))  # fmt: skip
        assert torch.equal(narrow[0], wide[0]) and torch.equal(narrow[1], wide[1])
        limited, of_rows, z = steps.clamp(0.5, 1), torch.randn(OWN, V), torch.randn_like(v)
        y = ssd(v, gates, rate, k, q, of_rows, bias, dt_softplus=True, z=z, dt_limit=(0.5, 1), chunk_size=256)
        expected, _ = recur(q, k, v, (limited.double() * rate).exp(), steps=limited)
        check("ssd of mamba-ssm's arguments", y, (expected + of_rows.double() * v) * torch.nn.functional.silu(z.double()))
    # Gates that forget all leave what one token wrote.
    q, k, v = draw(67)
    none, ones = torch.full((BATCH, 67, OWN), -1e4), torch.ones(BATCH, 67, OWN)
    for of_heads in (none, torch.full((BATCH, 67, HEADS, K), -1e4)):
        own = (q.double() * k.double()).sum(-1, keepdim=True) * v.double()
        check("delta rule without a past", gated_delta_rule(q, k, v, of_heads, ones, 1.0)[0], own)
    # Those that forget more than all, now and then, cost no digits of what comes between them.
    q, k, v = draw(67)
    k = torch.nn.functional.normalize(k.float(), dim=-1).to(k.dtype)
    for least in (-1e6, -torch.inf):
        for logarithms in (-torch.rand(BATCH, 67, OWN), -torch.rand(BATCH, 67, HEADS, K)):
            logarithms[:, ::20] = least
            factors = logarithms.double().exp()
            expected, expected_last = recur(q, k, v, factors, rates=ones)
            out, last = gated_delta_rule(q, k, v, logarithms, ones, 1.0, output_final_state=True)
            check(f"delta rule with gates of {least}", out, expected)
            check(f"state of the delta rule with gates of {least}", last, expected_last)
    q, k, v = draw(0)
    out, last = retention(q, k, v, output_final_state=True)
    assert out.shape == v.shape and not last.any()


class SeesOps(TorchDispatchMode):
    """The ops of the library that are called within."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.names += [function.name()] * (function.namespace == "tessera")
        return function(*arguments, **(named or {}))


def check_ops():
    """Calls go past the dispatcher where nobody sees ops, with gradients too, to the same."""
    q, k, v = (torch.randn(1, 5, heads, K).half() for heads in (HEADS, HEADS, OWN))
    gates = torch.rand(1, 5, OWN)
    calls = {
        "retention": lambda: retention(q, k, v)[0], "gla": lambda: gla(q, k, v, -q.float().abs())[0],
        "delta_rule": lambda: gated_delta_rule(q, k, v, -gates, gates)[0], "ssd": lambda: ssd(v, gates, -gates[0, 0], k, q),
    }  # fmt: skip
    for name, call in calls.items():
        with SeesOps() as mode:
            seen = call()
        assert mode.names == [f"tessera::{name}"], mode.names
        with unittest.mock.patch.object(torch.ops.tessera, name, side_effect=AssertionError("an op is called")):
            assert torch.equal(call(), seen)
            v.requires_grad_()
            assert call().requires_grad
            v.requires_grad_(False)


def check_numbers():
    """Numbers that are made on a device are those of lists."""
    cpu = torch.device("cpu")
    assert torch.equal(_linear._make_decays(300, cpu), torch.tensor(_recurrences.list_decays(300)))
    for tokens, own in ((1000, 128), (64, 64), (4097, 1024)):
        assert _segments._make_table(tokens, own, cpu).tolist() == [list(x) for x in _recurrences.list_segments(tokens, own)]


def check_roundings():
    """Outputs of ssd are rounded once, behind D and z: here they are known but for that. With gradients too, and in a step."""
    q, (_, _, v) = torch.zeros(BATCH, 1, HEADS, 64).bfloat16(), draw(1)
    q[..., 0], v, state = 1, torch.cat((v, v), -1), torch.zeros(BATCH, OWN, 64, 64)
    ones, rate = torch.ones(BATCH, 1, OWN), -torch.ones(OWN)
    for skip, of_z in itertools.product((torch.randn(OWN), torch.randn(OWN, 64)), (torch.bfloat16, torch.float32)):
        z = torch.randn(v.shape).to(of_z)
        exact = (v + (skip if skip.dim() == 2 else skip[:, None]).double() * v) * torch.nn.functional.silu(z.double())
        for named in ({}, {"initial_states": state, "return_final_states": True}):
            for wants_gradients in (False, True):
                y = ssd(v.clone().requires_grad_(wants_gradients), ones, rate, q, q, skip, z=z, **named)
                y = y[0] if named else y
                assert y.requires_grad == wants_gradients and ((y - exact).abs() <= 1.001 * 2**-8 * exact.abs()).all(), (of_z, named)


def check_sequences():
    """Numbers of sequences: a state before belongs to number 0, and each forgets the one before it."""
    q, k, v = draw(67)
    steps, rate, state = torch.rand(BATCH, 67, OWN), -torch.rand(OWN), torch.randn(BATCH, OWN, V, K)
    call = lambda own=slice(None), **named: ssd(v[:, own], steps[:, own], rate, k[:, own], q[:, own], return_final_states=True, **named)
    numbers = (torch.arange(67) // 20).expand(BATCH, 67)
    for first in (0, 1):
        y, last = call(seq_idx=(numbers + first).int(), initial_states=state)
        for number in range(4):
            own = slice(20 * number, 20 * number + 20)
            expected, expected_last = call(own, initial_states=state if number + first == 0 else None)
            check(f"sequence {number}", y[:, own], expected.double())
        check("state of the last sequence", last, expected_last.double())
    assert torch.equal(call(seq_idx=numbers.contiguous().long())[0], call(seq_idx=numbers.int())[0])
    for tokens in (0, 1):
        own = slice(0, tokens)
        found, expected = (call(own, **named, initial_states=state) for named in ({"seq_idx": numbers[:, own].int()}, {}))
        check("few tokens", *(torch.cat([x.flatten().double() for x in results]) for results in (found, expected)))


def check_modes():
    """Calls in inference mode leave nothing that later ones with gradients cannot take."""
    q, k, v = (torch.randn(1, 5, heads, K).half() for heads in (3, 3, 3))
    with torch.inference_mode():
        want = retention(q, k, v)[0].clone()
    got = retention(q.requires_grad_(), k, v)[0]
    assert torch.equal(got, want)
    got.float().sum().backward()
    state = torch.randn(1, 3, K, K)
    # A step of decoding has a kernel of its own, and in compiled code the walk.
    step = torch.compile(lambda *given: retention(*given, initial_state=state, output_final_state=True), fullgraph=True, backend="eager")
    given = [x.detach()[:, :1] for x in (q, k, v)]
    assert torch.allclose(step(*given)[0], retention(*given, initial_state=state, output_final_state=True)[0], rtol=2e-2, atol=2e-2)


def check_refusals():
    q, k, v = draw(5)
    gates = torch.rand(BATCH, 5, OWN)

    def refused(text, function, *arguments, error=ValueError, **named):
        try:
            function(*arguments, **named)
        except error as caught:
            assert text in str(caught), f"{caught}, expected {text}"
        else:
            raise AssertionError(f"not refused: {text}")

    refused("argument 'q' has type torch.float32; torch.bfloat16 and torch.float16 would work", retention, q.float(), k, v, error=TypeError)
    refused("argument 'k' has type torch.float16; torch.bfloat16 would work", retention, q, k.half(), v, error=TypeError)
    refused("argument 'q' has a head dimension of 32; 64, 128, 192, 256 would work", retention, q[..., :32], k[..., :32], v)
    wide = torch.zeros(BATCH, 5, HEADS, 320).bfloat16()
    refused("argument 'q' has a head dimension of 320; 64, 128, 192, 256 would work", gated_delta_rule, wide, wide, v, wide.float(), gates)
    refused("argument 'v' has a head dimension of 20; a multiple of 8 would work", retention, q, k, v[..., :20])
    refused("argument 'v' has 2 heads and 'q' 3; a multiple of these would work", retention, q.expand(-1, -1, 3, -1), k, v)
    refused("argument 'k' has shape (2, 4, 1, 64); (2, 5, 1, 64) would work", retention, q, k[:, :4], v)
    refused("argument 'q' has shape (5, 1, 64); 4 dimensions", retention, q[0], k, v)
    refused("in its last dimension; .contiguous() would work", retention, q.transpose(1, 3).contiguous().transpose(1, 3), k, v)
    refused("argument 'initial_state' has shape (2, 2, 32, 64); (2, 2, 64, 32) would work", retention, q, k, v,
            initial_state=torch.zeros(BATCH, OWN, V, K))  # fmt: skip
    refused("argument 'initial_state' has type torch.float64; torch.float32 would work", retention, q, k, v,
            initial_state=torch.zeros(BATCH, OWN, K, V).double(), error=TypeError)  # fmt: skip
    refused("argument 'q' is of type list; it is a tensor", retention, [1], k, v, error=TypeError)
    refused("argument 'initial_state' is of type list; it is a tensor", retention, q, k, v, initial_state=[1], error=TypeError)
    refused("argument 'cu_seqlens' is of type list; it is a tensor", gla, q, k, v, -q.float(), cu_seqlens=[0, 5], error=TypeError)
    refused("argument 'g' is None; it is a tensor", gated_delta_rule, q, k, v, None, gates, error=TypeError)
    refused("argument 'D' is of type float; it is a tensor", ssd, v, gates, gates[0, 0], k, q, 1.0, error=TypeError)
    refused("argument 'beta' has type torch.int32; torch.float32 and other types of floating point", gated_delta_rule, q, k, v, gates,
            gates.int(), error=TypeError)  # fmt: skip
    refused("argument 'scale' is 'a'; a number or None would work", retention, q, k, v, "a", error=TypeError)
    refused("argument 'scale' requires a gradient", retention, q, k, v, torch.ones(()).requires_grad_(), error=NotImplementedError)
    refused("argument 'beta' has shape (2, 5, 1); (2, 5, 2) would work", gated_delta_rule, q, k, v, gates, gates[..., :1])
    refused("argument 'g' has shape (2, 5, 2); (2, 5, 1, 64) would work", gla, q, k, v, gates)
    refused("argument 'g' has shape (2, 5, 2, 64); (2, 5, 1, 64) would work", gated_delta_rule, q, k, v,
            torch.zeros(BATCH, 5, OWN, K), gates)  # fmt: skip
    options = {"use_gate_in_kernel": True, "A_log": gates[0, 0]}
    for named, text in (
        ({"A_log": gates[0, 0]}, "argument 'A_log' is given, of which use_gate_in_kernel=True makes gates; that or None would work"),
        ({"dt_bias": gates[0, 0]}, "argument 'dt_bias' is given, of which use_gate_in_kernel=True makes gates; that or None would work"),
        ({"use_gate_in_kernel": True}, "argument 'A_log' is None with use_gate_in_kernel=True; logarithms of rates, or a 'lower_bound'"),
        ({**options, "safe_gate": True}, "argument 'lower_bound' is None with safe_gate=True; a number below 0 would work"),
        ({**options, "lower_bound": 5.0}, "argument 'lower_bound' is 5.0; a number below 0 would work"),
        ({"use_gate_in_kernel": True, "A_log": gates[0, 0, :1]}, "argument 'A_log' has shape (1,); (2,) would work"),
        ({**options, "dt_bias": gates[0]}, "argument 'dt_bias' has shape (5, 2); (2,) would work"),
        ({**options, "dt_bias": gates[0, 0].to("meta")}, "argument 'dt_bias' is on meta and another one on cpu; they must be equal"),
        ({"allow_neg_eigval": True}, "argument 'allow_neg_eigval' is given without use_beta_sigmoid_in_kernel=True; that, or twice"),
        ({"state_v_first": True, "initial_state": torch.zeros(BATCH, OWN, K, V)},
         "argument 'initial_state.mT' has shape (2, 2, 32, 64); (2, 2, 64, 32) would work"),
    ):  # fmt: skip
        refused(text, gated_delta_rule, q, k, v, gates, gates, **named)
    refused("argument 'A_log' has type torch.int64; torch.float32 and other", gated_delta_rule, q, k, v, gates, gates, error=TypeError,
            use_gate_in_kernel=True, A_log=torch.zeros(OWN).long())  # fmt: skip
    rule = gated_delta_rule
    others = {
        "cp_context": (rule, object(), "None, and states that devices hand on as 'initial_state' and by 'output_final_state', would"),
        "return_intermediate_states": (rule, True, "False, and a call of each part of the sequence that gives its final state, would"),
        "head_first": (rule, True, "tensors [B, T, H, D], as .transpose(1, 2) gives them, would work"),
        "return_varlen_states": (ssd, True, "'cu_seqlens' with return_final_states, which gives the states of each sequence, would work"),
    }
    for name, (function, value, works) in others.items():
        given = (v, gates, gates[0, 0], k, q) if function is ssd else (q, k, v, gates, gates)
        text = f"argument '{name}' is given, which {function.__name__} does not take; {works}"
        refused(text, function, *given, error=NotImplementedError, **{name: value})
        function(*given, **{name: None})
    refused("retention() got an unexpected keyword argument 'state_dtype'", retention, q, k, v, state_dtype=None, error=TypeError)
    channels = -torch.rand(q.shape)
    for function, given, named in (
        (retention, (q, k, v), {"chunk_size": 32}), (gla, (q, k, v, channels), {"cu_seqlens_cpu": None}),
        (ssd, (v, gates, -gates[0, 0], k, q), {"state_dtype": torch.float32}),
        (rule, (q, k, v, channels, gates), {"disable_recompute": True, "use_graph": True, "max_num_seqs": 8, "chunk_indices": None}),
    ):  # fmt: skip
        plain, own = (x if isinstance(x, torch.Tensor) else x[0] for x in (function(*given), function(*given, **named)))
        assert torch.equal(plain, own), function
    state = torch.randn(BATCH, OWN, K, V)
    for call in (lambda **named: gla(q, k, v, channels, output_final_state=True, **named),
                 lambda **named: gated_delta_rule(q, k, v, channels, gates, output_final_state=True, **named)):
        turned = {"initial_state": state.transpose(2, 3).contiguous()}
        plain, own = call(initial_state=state), call(**turned, state_v_first=True)
        assert torch.equal(plain[0], own[0]) and torch.equal(plain[1], own[1].transpose(2, 3))
        if "gla" not in call.__code__.co_names:
            assert torch.equal(call(**turned, transpose_state_layout=True)[1], own[1])
    refused("argument 'z' has shape (2, 5, 2, 31); (2, 5, 2, 32) would work", ssd, v, gates, gates[0, 0], k, q, z=v[..., 1:])
    refused("argument 'D' has shape (2, 31); (2, 32) would work", ssd, v, gates, gates[0, 0], k, q, v[0, 0, :, 1:].float())
    refused("argument 'dt_limit' is (1, 0); two numbers", ssd, v, gates, gates[0, 0], k, q, dt_limit=(1, 0))
    numbers = torch.zeros(BATCH, 5, dtype=torch.int32)
    named = {"seq_idx": numbers[:1], "cu_seqlens": torch.tensor([0, 5])}
    refused("argument 'seq_idx' is given beside 'cu_seqlens'; one of them would work",
            ssd, v[:1], gates[:1], gates[0, 0], k[:1], q[:1], **named)  # fmt: skip
    refused("argument 'seq_idx' has shape (2, 4); (2, 5) would work", ssd, v, gates, gates[0, 0], k, q, seq_idx=numbers[:, 1:])
    refused("argument 'seq_idx' has type torch.int16; torch.int32 would work", ssd, v, gates, gates[0, 0], k, q, seq_idx=numbers.short(),
            error=TypeError)  # fmt: skip
    refused("argument 'seq_idx' is of type list; it is a tensor", ssd, v, gates, gates[0, 0], k, q, seq_idx=[0], error=TypeError)
    refused("argument 'chunk_size' is 0; any positive number of tokens", ssd, v, gates, gates[0, 0], k, q, chunk_size=0)
    refused("argument 'dt' has shape (2, 4, 2); (2, 5, 2) would work", ssd, v, gates[:, :4], gates[0, 0], k, q)
    refused("argument 'x' has shape (5, 2, 32); 4 dimensions", ssd, v[0], gates, gates[0, 0], k, q, initial_states=gates)
    refused("argument 'v' has 2 heads and 'q' 0; a multiple", retention, q[:, :, :0], k[:, :, :0], v)
    refused("argument 'A' has shape (1,); (2,) would work", ssd, v, gates, gates[0, 0, :1], k, q)
    q.requires_grad_()
    refused("argument 'v' has a head dimension of 32, of which there are no gradients; 64, 128, 192, 256 would work", retention, q, k, v)
    refused("argument 'v' has a head dimension of 32, of which there are no gradients; 64, 128, 192, 256 would work", gated_delta_rule,
            q, k, v, torch.zeros(BATCH, 5, HEADS, K), gates)  # fmt: skip
    q = q.detach()
    channels = -torch.rand(q.shape)
    calls = {
        "k": lambda x: retention(q, x, v)[0], "v": lambda x: gla(q, k, x, channels)[0],
        "beta": lambda x: gated_delta_rule(q, k, v, -gates, x)[0], "dt": lambda x: ssd(v, x, -gates[0, 0], k, q),
        "initial_state": lambda x: retention(q[:, :1], k[:, :1], v[:, :1], None, x, True)[0],
    }  # fmt: skip
    named = {"k": k, "v": v, "beta": gates, "dt": gates, "initial_state": torch.zeros(BATCH, OWN, K, V)}
    for name, call in calls.items():
        given = named[name], torch.ones_like(named[name])
        refused(f"argument '{name}' has a tangent", torch.func.jvp, call, *((x,) for x in given), error=NotImplementedError)
        with torch.autograd.forward_ad.dual_level():
            assert torch.equal(call(given[0]), call(given[0]))
            dual = torch.autograd.forward_ad.make_dual(*given)
            refused(f"argument '{name}' has a tangent", call, dual, error=NotImplementedError)
    use_interpreter(False)
    refused("argument 'q' is on cpu", retention, q.detach(), k, v)


use_interpreter()
torch.manual_seed(1)
check_values()
check_ops()
check_numbers()
check_roundings()
check_sequences()
check_modes()
check_refusals()
