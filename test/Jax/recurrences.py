# RUN: env TESSERA_LIBRARY=%build/lib %jax-python %s
"""Recurrences for JAX on the interpreter, against their definitions token by token in float64, with gradients and states: heads that share
keys, lengths that no chunk divides. What is refused names the argument."""

import functools
import itertools
import json
import math
import os
import tempfile
import unittest
import unittest.mock

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np

import tessera.jax
from tessera.jax import _call, _segments, _walks, gated_delta_rule, gla, retention, ssd

K, V = 64, 64
# Tokens: one is a step of decoding.
LENGTHS = 65, 1


def recur(q, k, v, decays, steps=None, scale=1.0, state=None, rates=None):
    """Outputs and the last state, of heads of values that share keys."""
    group = v.shape[2] // q.shape[2]
    q, k = (jnp.repeat(x, group, 2) for x in (q, k))
    decays = jnp.repeat(decays, group, 2)[..., None] if decays.ndim == 4 else decays[..., None, None]
    state = jnp.zeros((v.shape[0], v.shape[2], K, V)) if state is None else state

    def step(state, token):
        query, key, value, decay, rate = token
        state = state * decay
        if rates is not None:
            value = value - jnp.einsum("bhk,bhkv->bhv", key, state)
        state = state + key[..., None] * (rate * value)[:, :, None]
        return state, scale * jnp.einsum("bhk,bhkv->bhv", query, state)

    rate = rates if rates is not None else steps if steps is not None else jnp.ones(v.shape[:3])
    tokens = (jnp.swapaxes(x, 0, 1) for x in (q, k, v, decays, rate[..., None]))
    last, out = jax.lax.scan(step, state, tuple(tokens))
    return jnp.swapaxes(out, 0, 1), last


def define_ssd(C, B, x, dt, A, D=None, initial_states=None):
    state = None if initial_states is None else jnp.swapaxes(initial_states, 2, 3)
    out, last = recur(C, B, x, jnp.exp(dt * A), dt, state=state)
    return out if D is None else out + D.reshape(len(D), -1) * x, jnp.swapaxes(last, 2, 3)


def call_ssd(C, B, x, dt, A, **named):
    return ssd(x, dt, A, B, C, return_final_states=True, **named)


class Cases(unittest.TestCase):
    def setUp(self):
        self.addCleanup(tessera.jax.use_interpreter, tessera.jax.use_interpreter())
        # Of numpy: what JAX computes outside of jax.jit is compiled for each operation and shape.
        self.generator = np.random.default_rng(1)

    def draw(self, *shape):
        return jnp.asarray(self.generator.standard_normal(shape), jnp.float32)

    def draw_rates(self, *shape):
        return jnp.asarray(self.generator.uniform(size=shape), jnp.float32)

    def draw_own(self, tokens, heads, own, widths=(K, V)):
        rows, columns = widths
        q, k, v = (self.generator.standard_normal((1, tokens, *of)) for of in ((heads, rows), (heads, rows), (own, columns)))
        k = k / np.linalg.norm(k, axis=-1, keepdims=True)
        return [jnp.asarray(x, jnp.float16) for x in (q, k, v)]

    def assert_close(self, found, expected, most, name=None):
        found, expected = (np.asarray(x, np.float64).ravel() for x in (found, expected))
        self.assertLess(np.linalg.norm(found - expected) / np.linalg.norm(expected), most, name)

    def check(self, call, define, given):
        exact = {name: x.astype(jnp.float64) for name, x in given.items()}
        weights = [self.draw(*x.shape) for x in jax.eval_shape(lambda: define(**exact))]

        def weigh(function, given):
            return sum((x.astype(jnp.float64) * w).sum() for x, w in zip(function(**given), weights))

        with unittest.mock.patch.object(_walks, "_step", wraps=_walks._step) as step:
            found = jax.jit(lambda given: call(**given))(given)
        self.assertEqual(step.called, next(iter(given.values())).shape[1] == 1)
        gradients = jax.jit(jax.grad(functools.partial(weigh, call)))(given)
        expected, exact_gradients = jax.jit(lambda given: (define(**given), jax.grad(functools.partial(weigh, define))(given)))(exact)
        results = [(f"result {i}", *both) for i, both in enumerate(zip(found, expected))]
        for name, result, wanted in [*results, *((name, gradients[name], exact_gradients[name]) for name in given)]:
            self.assert_close(result, wanted, 1e-2 if wanted.ndim > 1 else 5e-2, name)

    def test_retention(self):
        for tokens in LENGTHS:
            q, k, v = self.draw_own(tokens, 1, 2)
            decays = jnp.broadcast_to(1 - 2.0 ** (-5 - jnp.arange(2)), (1, tokens, 2))
            self.check(
                lambda **given: retention(**given, output_final_state=True),
                lambda q, k, v, initial_state: recur(q, k, v, decays, scale=K**-0.5, state=initial_state),
                {"q": q, "k": k, "v": v, "initial_state": self.draw(1, 2, K, V)},
            )

    def test_delta_rule(self):
        for tokens in LENGTHS:
            q, k, v = self.draw_own(tokens, 1, 2)
            self.check(
                lambda **given: gated_delta_rule(**given, output_final_state=True),
                lambda q, k, v, g, beta, initial_state: recur(q, k, v, jnp.exp(g), scale=K**-0.5, state=initial_state, rates=beta),
                {"q": q, "k": k, "v": v, "g": -self.draw_rates(1, tokens, 2), "beta": self.draw_rates(1, tokens, 2),
                 "initial_state": self.draw(1, 2, K, V)},
            )  # fmt: skip

    def test_delta_rule_of_channels(self):
        for tokens, heads, own in ((65, 1, 2), (65, 1, 1), (1, 1, 2)):
            q, k, v = self.draw_own(tokens, heads, own)
            self.check(
                lambda **given: gated_delta_rule(**given, output_final_state=True),
                lambda q, k, v, g, beta, initial_state: recur(q, k, v, jnp.exp(g), scale=K**-0.5, state=initial_state, rates=beta),
                {"q": q, "k": k, "v": v, "g": -self.draw_rates(1, tokens, heads, K), "beta": self.draw_rates(1, tokens, own),
                 "initial_state": self.draw(1, own, K, V)},
            )  # fmt: skip

    def test_made_gates(self):
        """Gates and rates of raw numbers, and states with the columns first, as flash-linear-attention has them."""
        for (heads, own, *channels), bound in itertools.product(((1, 2), (1, 1, K)), (None, -5.0)):
            q, k, v = self.draw_own(5, heads, own)
            of = (heads, K) if channels else (own,)
            given = {"g": self.draw(1, 5, *of), "beta": self.draw(1, 5, own)}
            given.update(A_log=self.draw(of[0]), dt_bias=self.draw(math.prod(of)))

            def define(q, k, v, g, beta, A_log, dt_bias, initial_state):
                wide, rates = g + dt_bias.reshape(of), jnp.exp(A_log.reshape(-1, *channels and [1]))
                g = -rates * jax.nn.softplus(wide) if bound is None else bound * jax.nn.sigmoid(rates * wide)
                state = jnp.swapaxes(initial_state, 2, 3)
                out, last = recur(q, k, v, jnp.exp(g), scale=K**-0.5, state=state, rates=2 * jax.nn.sigmoid(beta))
                return out, jnp.swapaxes(last, 2, 3)

            call = functools.partial(
                gated_delta_rule, output_final_state=True, state_v_first=True, use_gate_in_kernel=True, lower_bound=bound,
                use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True, chunk_size=64,
            )  # fmt: skip
            self.check(call, define, {"q": q, "k": k, "v": v, **given, "initial_state": self.draw(1, own, V, K)})

    def test_gla(self):
        for tokens in LENGTHS:
            q, k, v = self.draw_own(tokens, 1, 2)
            self.check(
                lambda **given: gla(**given, output_final_state=True),
                lambda q, k, v, g, initial_state: recur(q, k, v, jnp.exp(g), scale=K**-0.5, state=initial_state),
                {"q": q, "k": k, "v": v, "g": -self.draw_rates(1, tokens, 1, K), "initial_state": self.draw(1, 2, K, V)},
            )

    def test_wide_channels(self):
        q, k, v = self.draw_own(5, 1, 1, (192, 128))
        given = {"q": q, "k": k, "v": v, "g": -self.draw_rates(1, 5, 1, 192), "initial_state": self.draw(1, 1, 192, 128)}
        for call, rates in ((gla, {}), (gated_delta_rule, {"beta": self.draw_rates(1, 5, 1)})):
            self.check(
                lambda **named: call(**named, output_final_state=True),
                lambda q, k, v, g, initial_state, beta=None: recur(q, k, v, jnp.exp(g), scale=192**-0.5, state=initial_state, rates=beta),
                {**given, **rates},
            )

    def test_ssd(self):
        for tokens in LENGTHS:
            C, B, x = self.draw_own(tokens, 1, 2)
            given = {"C": C, "B": B, "x": x, "dt": self.draw_rates(1, tokens, 2), "A": -self.draw_rates(2) - 0.1}
            self.check(call_ssd, define_ssd, {**given, "D": self.draw(2), "initial_states": self.draw(1, 2, V, K)})
        y = ssd(x, given["dt"], given["A"], B, C, dt_limit=(0.2, 0.5), chunk_size=128)
        self.assertTrue((y == call_ssd(**given | {"dt": jnp.clip(given["dt"], 0.2, 0.5)})[0]).all())
        either = given | {"dt": self.draw(1, 1, 2).at[0, 0, 0].set(0)}
        limits = {"none": (-math.inf, math.inf), "positive": (0, math.inf)}
        for name, limit in limits.items():
            own = either | {"dt": jnp.clip(either["dt"], *limit)}
            self.assertTrue((call_ssd(**either, dt_limit=limit)[0] == call_ssd(**own, dt_limit=limits["none"])[0]).all(), name)
        of_dt = jax.grad(lambda dt: call_ssd(**either | {"dt": dt})[0].astype(jnp.float32).sum())
        for dt in (-1.0, 0.0, 1.0):  # A step at a limit has its gradient.
            self.assertEqual(bool((of_dt(jnp.full((1, 1, 2), dt)) != 0).all()), dt >= 0)

    def test_outputs(self):
        """z and D of each element, which are applied before outputs are rounded."""
        for tokens, of_z in itertools.product(LENGTHS, (jnp.float16, jnp.float32)):
            C, B, x = self.draw_own(tokens, 1, 2)
            given = {"C": C, "B": B, "x": x, "dt": self.draw_rates(1, tokens, 2), "A": -self.draw_rates(2) - 0.1, "D": self.draw(2, V)}

            def define(z, **given):
                out, last = define_ssd(**given)
                return out * jax.nn.silu(z), last

            self.check(call_ssd, define, {**given, "z": self.draw(*x.shape).astype(of_z), "initial_states": self.draw(1, 2, V, K)})

    def test_sequences(self):
        """Numbers of sequences, of which the first has the state before."""
        for tokens in LENGTHS:
            C, B, x = self.draw_own(tokens, 1, 2)
            numbers = (jnp.arange(tokens)[None] + 10) // 30
            given = {"C": C, "B": B, "x": x, "dt": self.draw_rates(1, tokens, 2), "A": -self.draw_rates(2) - 0.1, "D": self.draw(2)}

            def define(C, B, x, dt, A, D, initial_states):
                own = numbers == jnp.pad(numbers, ((0, 0), (1, 0)))[:, :-1]
                out, last = recur(C, B, x, jnp.exp(dt * A) * own[..., None], dt, state=jnp.swapaxes(initial_states, 2, 3))
                return out + D[:, None] * x, jnp.swapaxes(last, 2, 3)

            self.check(functools.partial(call_ssd, seq_idx=numbers), define, {**given, "initial_states": self.draw(1, 2, V, K)})

    def check_packed(self, call, given):
        """Packed sequences, each against a call of its own."""
        starts = [0, 3, 3, 70]

        def pack(given):
            return call(**given, cu_seqlens=jnp.asarray(starts))

        def cut(given):
            for i in (0, 2):
                own = {name: x[:, starts[i] : starts[i + 1]] if x.ndim > 2 else x for name, x in given.items()}
                yield {**own, "initial_state": given["initial_state"][i : i + 1]}

        def apart(given):
            first, third = (call(**own) for own in cut(given))
            return jnp.concatenate((first[0], third[0]), 1), jnp.concatenate((first[1], given["initial_state"][1:2], third[1]))

        weights = [self.draw(*x.shape) for x in jax.eval_shape(apart, given)]

        def weigh(function, given):
            return sum((x.astype(jnp.float64) * w).sum() for x, w in zip(function(given), weights))

        both = [jax.jit(lambda given, function=function: (function(given), jax.grad(functools.partial(weigh, function))(given)))(given)
                for function in (pack, apart)]  # fmt: skip
        for found, expected in zip(*map(jax.tree.leaves, both)):
            self.assert_close(found, expected, 5e-3)

    def test_packed_delta_rule(self):
        q, k, v = self.draw_own(70, 1, 1)
        given = {"g": -self.draw_rates(1, 70, 1), "beta": self.draw_rates(1, 70, 1), "initial_state": self.draw(3, 1, K, V)}
        self.check_packed(functools.partial(gated_delta_rule, output_final_state=True), {"q": q, "k": k, "v": v, **given})

    def test_packed_delta_rule_of_channels(self):
        q, k, v = self.draw_own(70, 1, 1)
        given = {"g": -self.draw_rates(1, 70, 1, K), "beta": self.draw_rates(1, 70, 1), "initial_state": self.draw(3, 1, K, V)}
        self.check_packed(functools.partial(gated_delta_rule, output_final_state=True), {"q": q, "k": k, "v": v, **given})

    def test_packed_gla(self):
        q, k, v = self.draw_own(70, 1, 1)
        given = {"g": -self.draw_rates(1, 70, 1, K), "initial_state": self.draw(3, 1, K, V)}
        self.check_packed(functools.partial(gla, output_final_state=True), {"q": q, "k": k, "v": v, **given})

    def test_packed_ssd(self):
        def call(q, k, v, dt, A, D, z, initial_state, cu_seqlens=None):
            return ssd(v, dt, A, k, q, D, initial_states=initial_state, return_final_states=True, cu_seqlens=cu_seqlens, z=z)

        q, k, v = self.draw_own(70, 1, 1)
        given = {"dt": self.draw_rates(1, 70, 1), "A": -self.draw_rates(1) - 0.1, "initial_state": self.draw(3, 1, V, K)}
        given |= {"D": self.draw(1, V), "z": self.draw(*v.shape).astype(v.dtype)}
        self.check_packed(call, {"q": q, "k": k, "v": v, **given})

    def test_packed_retention(self):
        q, k, v = self.draw_own(70, 1, 1)
        given = {"q": q, "k": k, "v": v, "initial_state": self.draw(3, 1, K, V)}
        self.check_packed(functools.partial(retention, output_final_state=True), given)

    def check_segments(self, call, given, walks):
        """A long sequence of few heads in segments side by side, and as a whole, with gradients."""
        weights = [self.draw(*x.shape) for x in jax.eval_shape(lambda: call(**given))]

        def weigh(given):
            outputs = call(**given)
            return sum((x.astype(jnp.float64) * w).sum() for x, w in zip(outputs, weights)), outputs

        def compute():
            with unittest.mock.patch.object(_walks, "_launch", wraps=_walks._launch) as launches:
                found = jax.jit(jax.grad(weigh, has_aux=True))(given)
            return found, sum("PACKED" in call.args[1] for call in launches.call_args_list)

        whole, none = compute()
        with unittest.mock.patch.object(_segments, "find_own", lambda v: 128):
            cut, packed = compute()
        self.assertEqual((none, packed), (0, walks))
        for found, expected in zip(*map(jax.tree.leaves, (cut, whole))):
            self.assert_close(found, expected, 5e-3)

    def test_segments(self):
        q, k, v = self.draw_own(284, 1, 2)
        state, rates = {"initial_state": self.draw(1, 2, K, V)}, self.draw_rates(1, 284, 2)
        channels = -self.draw_rates(1, 284, 1, K)
        self.check_segments(functools.partial(retention, output_final_state=True), {"q": q, "k": k, "v": v, **state}, 7)
        self.check_segments(functools.partial(gla, output_final_state=True), {"q": q, "k": k, "v": v, "g": channels, **state}, 6)
        given = {"C": q, "B": k, "x": v, "dt": rates, "A": -self.draw_rates(2), "initial_states": self.draw(1, 2, V, K)}
        self.check_segments(call_ssd, given, 7)
        numbers = jnp.array([x in (3, 4, 64, 100, 192) for x in range(284)]).cumsum()[None]
        self.check_segments(functools.partial(call_ssd, seq_idx=numbers, z=v), given, 7)

    def test_vmap(self):
        """One call after the other, gradients of what all have in common too: a step, packed sequences, and a walk with a state."""
        q, k, v = (jnp.stack(of) for of in zip(*(self.draw_own(40, 1, 2) for _ in range(2))))
        dt, rates, states = self.draw_rates(2, 1, 40, 2), -self.draw_rates(2), self.draw(2, 1, 2, K, V)
        starts = jnp.array([0, 7, 40], jnp.int32)

        def walk(q, k, v, state):
            return retention(q, k, v, initial_state=state, output_final_state=True)

        def pack(q, k, v, dt):
            out, last = call_ssd(q, k, v, dt, rates, cu_seqlens=starts)
            return out.astype(jnp.float32), last

        def differentiate(q, k, v, dt):
            return jax.grad(lambda v, rates: call_ssd(q, k, v, dt, rates)[0].astype(jnp.float32).sum(), (0, 1))(v, rates)

        first = q[:, :, :1], k[:, :, :1], v[:, :, :1]
        for function, given in ((walk, (*first, states)), (walk, (q, k, v, states)), (pack, (q, k, v, dt)), (differentiate, (q, k, v, dt))):
            found = jax.jit(jax.vmap(function))(*given)
            for i in range(2):
                for one, wanted in zip(found, function(*(x[i] for x in given))):
                    self.assertTrue(bool((one[i] == wanted).all()), function.__name__)

    def test_numbers_of_segments(self):
        for tokens, own in ((4095, None), (4096, 1024), (65536, 65536 // 16)):
            v = jax.ShapeDtypeStruct((1, tokens, 4, 64), jnp.bfloat16)
            self.assertEqual(_segments.find_own(v), own)
        self.assertIsNone(_segments.find_own(jax.ShapeDtypeStruct((2, 65536, 4, 64), jnp.bfloat16)))

    def test_no_state(self):
        q, k, v = self.draw_own(5, 1, 1)
        out, last = retention(q, k, v)
        self.assertEqual((out.shape, last), (v.shape, None))
        gradient = jax.grad(lambda v: retention(q, k, v)[0].astype(jnp.float32).sum())(v)
        self.assertTrue(bool(jnp.isfinite(gradient).all()))

    def test_card(self):
        row = {"source": "chunk.tile", "card": "Card of tomorrow", "take": {"DV": 48}}
        file = self.enterContext(tempfile.NamedTemporaryFile("w", suffix=".json"))
        json.dump({"format": "tessera-rules", "version": 1, "rules": [row]}, file)
        file.flush()
        self.enterContext(unittest.mock.patch.dict(os.environ, {"TESSERA_RULES": file.name}))
        for card, columns in (("Card of tomorrow", 48), ("NVIDIA H200", 32)):
            with unittest.mock.patch.object(_call, "find_card", lambda card=card: card):
                self.assertEqual(_walks._choose("retention", 64, 1, 2, 64), ({"DV": columns}, "retention"))

    def test_refusals(self):
        q, k, v = self.draw_own(5, 1, 2)
        gates = jnp.zeros((1, 5, 2))
        with self.assertRaisesRegex(ValueError, "argument 'beta' has shape .1, 5, 1.; .1, 5, 2. would work"):
            gated_delta_rule(q, k, v, gates, gates[..., :1])
        with self.assertRaisesRegex(TypeError, "argument 'q' has type float32; bfloat16 and float16 would work"):
            retention(q.astype(jnp.float32), k, v)
        with self.assertRaisesRegex(ValueError, "argument 'v' has a head dimension of 32; 64, 128, 192, 256 would work"):
            retention(q, k, v[..., :32])
        with self.assertRaisesRegex(ValueError, "argument 'initial_state' has shape .1, 2, 64, 32.; .1, 2, 64, 64. would work"):
            retention(q, k, v, initial_state=jnp.zeros((1, 2, 64, 32)))
        with self.assertRaisesRegex(ValueError, "argument 'g' has shape .1, 5, 2.; .1, 5, 1, 64. would work"):
            gla(q, k, v, gates)
        with self.assertRaisesRegex(ValueError, "argument 'g' has shape .1, 5, 2, 64.; .1, 5, 1, 64. would work"):
            gated_delta_rule(q, k, v, jnp.zeros((1, 5, 2, K)), gates)
        with self.assertRaisesRegex(ValueError, "argument 'A' has shape .1,.; .2,. would work"):
            ssd(v, gates, jnp.zeros(1), k, q)
        with self.assertRaisesRegex(ValueError, "argument 'dt_bias' has shape .1,.; .2,. would work"):
            gated_delta_rule(q, k, v, gates, gates, use_gate_in_kernel=True, A_log=gates[0, 0], dt_bias=gates[0, 0, :1])
        with self.assertRaisesRegex(ValueError, "argument 'initial_state.mT' has shape .1, 2, 64, 32.; .1, 2, 64, 64. would work"):
            gla(q, k, v, jnp.zeros(q.shape), initial_state=jnp.zeros((1, 2, 32, 64)), state_v_first=True)
        with self.assertRaisesRegex(NotImplementedError, "argument 'cp_context' is given, which gated_delta_rule does not take; None, and"):
            gated_delta_rule(q, k, v, gates, gates, cp_context=1)
        numbers = {"seq_idx": jnp.zeros((1, 5), jnp.int32)}
        with self.assertRaisesRegex(ValueError, "argument 'seq_idx' is given beside 'cu_seqlens'; one of them would work"):
            ssd(v, gates, gates[0, 0], k, q, cu_seqlens=jnp.array([0, 5]), **numbers)
        with self.assertRaisesRegex(ValueError, "argument 'seq_idx' has shape .1, 4.; .1, 5. would work"):
            ssd(v, gates, gates[0, 0], k, q, seq_idx=numbers["seq_idx"][:, 1:])
        with self.assertRaisesRegex(TypeError, "argument 'seq_idx' has type float64; int32 would work"):
            ssd(v, gates, gates[0, 0], k, q, seq_idx=gates[..., 0])
        with self.assertRaisesRegex(ValueError, "argument 'cu_seqlens' has shape .1,.; .sequences . 1,. would work"):
            retention(q, k, v, cu_seqlens=jnp.zeros(1, jnp.int32))
        with self.assertRaisesRegex(TypeError, "argument 'cu_seqlens' has type float32; int32 would work"):
            retention(q, k, v, cu_seqlens=jnp.zeros(2, jnp.float32))
        with self.assertRaisesRegex(TypeError, "argument 'q' is of type list; it is an array"):
            retention([1], k, v)
        with self.assertRaisesRegex(TypeError, "argument 'g' is None; it is an array"):
            gated_delta_rule(q, k, v, None, gates)
        with self.assertRaisesRegex(TypeError, "argument 'D' is of type float; it is an array"):
            ssd(v, gates, gates[0, 0], k, q, 1.0)
        with self.assertRaisesRegex(TypeError, "argument 'beta' has type int32; float32 and other types of floating point would work"):
            gated_delta_rule(q, k, v, gates, gates.astype(jnp.int32))
        with self.assertRaisesRegex(TypeError, "argument 'scale' is 'a'; a number or None would work"):
            retention(q, k, v, "a")
        with self.assertRaisesRegex(TypeError, "argument 'scale' is traced by JAX"):
            jax.jit(lambda scale: retention(q, k, v, scale)[0])(1.0)
        sum_of = lambda q: retention(q, k, v)[0].astype(jnp.float32).sum()
        with self.assertRaisesRegex(NotImplementedError, "gradients of recurrences have no gradients themselves"):
            jax.grad(lambda q: jax.grad(sum_of)(q).astype(jnp.float32).sum())(q)
        twice = (jnp.concatenate((x, x)) for x in (q, k, v))
        with self.assertRaisesRegex(ValueError, "argument 'cu_seqlens' is given for a batch of 2"):
            retention(*twice, cu_seqlens=jnp.asarray([0, 5]))


unittest.main()
