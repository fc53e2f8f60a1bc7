# RUN: env TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s
"""The ops: what torch's transformations make of them, and which kernels they choose."""

import subprocess
import sys
import threading
import unittest
import unittest.mock

import problems
import torch
from problems import make
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode

from tessera._compiler import _compile
from tessera._attention import _variants
from tessera.torch import _op, attention, scaled_dot_product_attention

FORWARD = torch.ops.tessera.attention_forward.default
INFERENCE = torch.ops.tessera.attention_inference.default
NAMED = {"variant": "attention_fwd CAUSAL=true", "scale": 0.125}


def module(function):
    class Module(torch.nn.Module):
        def forward(self, *tensors):
            return function(*tensors)

    return Module()


class Import(unittest.TestCase):
    def test_loads_no_compiler_of_torch(self):
        """Which takes a second, and several from a cold disk. Some versions of torch load parts of it themselves."""
        code = "import sys, torch; before = {*sys.modules}; import tessera.torch; print(*{*sys.modules} - before)"
        loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        self.assertIn("tessera.torch._op", loaded)
        slow = ("torch._dynamo", "torch._inductor", "torch.fx", "torch.distributed", "torch.nn.attention.flex_attention", "sympy")
        self.assertEqual([name for name in loaded if name.startswith(slow)], [])


class Transformations(problems.Interpreted):
    def test_opcheck(self):
        for layout in ("BHSD", "BSHD"):
            q, k, v = make(batch=1, layout=layout, rows=32, keys=48)
            if layout == "BSHD":
                q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
            for op in (FORWARD, INFERENCE):
                torch.library.opcheck(op, (q, k, v, None), NAMED)

    def test_fake_strides_are_those_of_the_kernel(self):
        q, k, v = make(batch=3, layout="BSHD", heads=4, kv_heads=4, rows=40, keys=40)
        packed = torch.stack((q, k, v), 2).unbind(2)
        for tensors in ((q, k, v), packed):
            views = [tensor.transpose(1, 2) for tensor in tensors]
            fake = FORWARD(*map(_to_meta, views), None, **NAMED)
            for real, expected in zip(FORWARD(*views, None, **NAMED), fake):
                self.assertEqual((real.shape, real.stride()), (expected.shape, expected.stride()))
                self.assertEqual(real.dtype, expected.dtype)

    def check_compiles(self, function, most):
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(function, fullgraph=True, backend=counter)
        for length in range(30, 130, 5):
            tensors = make(batch=1, rows=length, keys=length)
            self.assertTrue(torch.equal(compiled(*tensors), function(*tensors)))
        self.assertLessEqual(counter.frame_count, most)

    def test_lengths_do_not_recompile(self):
        self.check_compiles(lambda q, k, v: attention(q, k, v, causal=True), 2)
        self.check_compiles(lambda q, k, v: attention(q, k, v, window=(16, 4), softcap=2.0, return_lse=True)[0], 2)
        self.check_compiles(
            lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), 2
        )

    def test_refusals_in_compiled_code(self):
        """The same exception where a graph may break, its text where none may, and code that is compiled catches both."""
        q, k, v = make(batch=1)

        def named(q, k, v):
            return attention(q, k, v, causal=True)

        def scored(q, k, v):
            return attention(q, k, v, score_mod=lambda score, b, h, i, j: score + i)

        for function, kind, bad, text in (
            (named, ValueError, (q, k[0], v), "argument 'k' has 3 dimensions"),
            (named, TypeError, (q.float(), k.float(), v.float()), "argument 'q' has type torch.float32"),
            (named, ValueError, (q, k, v[:, :, :80]), "argument 'v' has length 80 and 'k' 90"),
            (scored, TypeError, (q, k, v.float()), "argument 'v' has type torch.float32"),
        ):

            def caught(*tensors, function=function, kind=kind):
                try:
                    return function(*tensors)
                except kind:
                    return tensors[0] + 1

            # What an op refuses while it is traced would be logged, with stacks.
            with self.subTest(text), self.assertNoLogs("torch._subclasses.fake_tensor", "ERROR"):
                torch._dynamo.reset()
                with self.assertRaisesRegex(kind, text):
                    torch.compile(function, backend="eager")(*bad)
                torch._dynamo.reset()
                with self.assertRaises(Exception) as refused:
                    torch.compile(function, fullgraph=True, backend="eager")(*bad)
                self.assertIn(text, str(refused.exception))
                self.assertTrue(torch.equal(torch.compile(caught, fullgraph=True, backend="eager")(*bad), bad[0] + 1))

    def test_inductor(self):
        compiled = torch.compile(lambda q, k, v: attention(q * 2, k, v, causal=True) + 1, fullgraph=True)
        q, k, v = make(batch=1)
        self.assertTrue(torch.equal(compiled(q, k, v), attention(q * 2, k, v, causal=True) + 1))

    def test_export(self):
        tensors = make(batch=1)
        rows, keys = torch.export.Dim("rows", min=2), torch.export.Dim("keys", min=2)
        exported = torch.export.export(
            module(lambda q, k, v: attention(q, k, v, causal=True)), tensors,
            dynamic_shapes=[({2: rows}, {2: keys}, {2: keys})],
        )  # fmt: skip
        ops = [node for node in exported.graph.nodes if node.target is INFERENCE]
        self.assertEqual([node.args[4] for node in ops], ["attention_fwd CAUSAL=true"])
        others = make(batch=1, rows=33, keys=57)
        self.assertTrue(torch.equal(exported.module()(*others), attention(*others, causal=True)))

    def test_vmap(self):
        stacked = [torch.stack(pair) for pair in zip(make(seed=1), make(seed=2))]
        out, lse = torch.vmap(lambda q, k, v: attention(q, k, v, return_lse=True))(*stacked)
        for index in range(2):
            expected = attention(*(tensor[index] for tensor in stacked), return_lse=True)
            self.assertTrue(torch.equal(out[index], expected[0]) and torch.equal(lse[index], expected[1]))
        q, k, v = stacked
        shared = torch.vmap(lambda q: attention(q, k[0], v[0]), in_dims=1, out_dims=1)(q.transpose(0, 1))
        self.assertTrue(torch.equal(shared[:, 1], attention(q[1], k[0], v[0])))
        none = torch.vmap(attention)(*(tensor[:0] for tensor in stacked))
        self.assertEqual(none.shape, (0, *out.shape[1:]))
        with self.assertRaisesRegex(NotImplementedError, "argument 'alibi' is mapped over"):
            torch.vmap(lambda slopes: attention(q[0], k[0], v[0], alibi=slopes))(torch.ones(3, 2))

    def test_flops(self):
        with FlopCounterMode(display=False) as counter:
            attention(*make(heads=4, rows=10, keys=20, d=128, dv=64))
        self.assertEqual(counter.get_total_flops(), 2 * 2 * 4 * 10 * 20 * (128 + 64))

    def test_selective_checkpointing_sees_the_op(self):
        seen = []

        def policy(context, function, *arguments, **named):
            seen.append(function)
            return CheckpointPolicy.MUST_SAVE if function is INFERENCE else CheckpointPolicy.PREFER_RECOMPUTE

        weight = torch.ones((), requires_grad=True)
        tensors = make(batch=1)
        checkpoint(
            lambda weight: attention(*tensors) * weight, weight, use_reentrant=False,
            context_fn=lambda: create_selective_checkpoint_contexts(policy),
        ).sum().backward()  # fmt: skip
        self.assertIn(INFERENCE, seen)
        self.assertIsNotNone(weight.grad)


def _to_meta(view):
    return torch.empty_strided(view.shape, view.stride(), dtype=view.dtype, device="meta")


class Choice(unittest.TestCase):
    """Classes of shapes, with a compiler that says what it was asked for."""

    def setUp(self):
        self.compiled, self.gate = [], threading.Event()
        self.gate.set()

        def compile(source, shape_class, **parameters):
            self.gate.wait(10)
            self.compiled.append(shape_class)
            return shape_class

        patch = unittest.mock.patch.object(_compile, "compile", compile)
        patch.start()
        self.addCleanup(patch.stop)
        _variants._variants.clear()
        _variants._by_sizes.clear()
        self.addCleanup(_variants._variants.clear)
        self.addCleanup(_variants._by_sizes.clear)

    def find(self, text="attention_fwd CAUSAL=true", **sizes):
        tensors = make(**sizes)
        return _variants.find_kernel(text, "f16", _op.get_sizes(*tensors))[:2]

    def test_first_class_is_waited_for_and_others_are_not(self):
        self.assertEqual(self.find(), ("few-short", []))
        self.gate.clear()
        sizes = {"batch": 1, "rows": 4000, "keys": 4000}
        self.assertEqual(self.find(**sizes), ("few-short", []))
        self.assertEqual(self.find(**sizes), ("few-short", []))
        self.gate.set()
        self.assertTrue(_variants.finish_aside())
        self.assertFalse(_variants.finish_aside())
        self.assertEqual(self.find(**sizes), ("few-medium", []))
        self.assertEqual(self.compiled, ["few-short", "few-medium"])

    def test_extra_arguments(self):
        text = "attention_variants MASK=window SOFTCAP=exact ALIBI=true"
        self.assertEqual(self.find(text), (None, ["left", "right", "softcap", "alibi"]))

    def test_all_classes(self):
        _variants.find_variant("attention_fwd CAUSAL=true", "f16", 64, 64).compile_all()
        self.assertEqual(len(set(self.compiled)), 6)


if __name__ == "__main__":
    unittest.main()
