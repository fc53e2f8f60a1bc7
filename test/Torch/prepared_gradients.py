# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s \
# RUN:   %source/test/Python
"""Recurrences with gradients through functions of autograd that were made for earlier calls: real PyTorch, tensors of the CPU, and a fake
driver. What reaches the driver is what ops give it, and what differs goes by the ops."""

import math
import threading
import unittest
import unittest.mock

import prepared  # Which takes the directory of what follows from the arguments.
import fake_cuda  # isort: skip
import on_cpu
import torch
import torch.utils.checkpoint
from prepared_engines import count_functions

import tessera.torch as tt
from tessera.torch import _kept, _prepared, _walk_ops

setUpModule = prepared.setUpModule
BATCH, TOKENS, WIDTH = 2, 70, 64
# Heads of queries beside two of values, and whether sequences are packed.
FORMS = (2, False), (1, True)


def draw(*shape, dtype=torch.bfloat16):
    return torch.empty(shape, dtype=dtype)


def make_tensors(heads, own, packed):
    batch = 1 if packed else BATCH
    rows = {"q": draw(batch, TOKENS, heads, WIDTH), "k": draw(batch, TOKENS, heads, WIDTH), "v": draw(batch, TOKENS, own, WIDTH)}
    of_heads, of_channels = torch.ones(batch, TOKENS, own), torch.ones(batch, TOKENS, heads, WIDTH)
    starts = {"cu_seqlens": torch.tensor([0, 3, 3, 70], dtype=torch.int32)} if packed else {}
    return rows, of_heads, of_channels, starts


def make_calls(heads=2, packed=False, own=2):
    """By name (function, tensors that have gradients, further arguments)."""
    rows, of_heads, of_channels, starts = make_tensors(heads, own, packed)
    sequences = 3 if packed else BATCH
    state = {"initial_state": torch.ones(sequences, own, WIDTH, WIDTH)}
    spaces = {"x": rows["v"], "dt": of_heads, "A": torch.ones(own), "B": rows["k"], "C": rows["q"]}
    models = {**spaces, "dt": of_heads.bfloat16(), "D": torch.ones(own), "dt_bias": torch.ones(own)}
    last, delta = {"output_final_state": True, **starts}, {**rows, "g": of_heads, "beta": of_heads.clone()}
    return {
        "retention": (tt.retention, rows, starts),
        "retention, states": (tt.retention, {**rows, **state}, {"scale": 0.5, **last}),
        "gated attention": (tt.gla, {**rows, "g": of_channels}, starts),
        "gated attention, short gates": (tt.gla, {**rows, "g": of_channels.bfloat16()}, {"scale": 0.5, **starts}),
        "gated attention, states": (tt.gla, {**rows, "g": of_channels, **state}, last),
        "delta rule": (tt.gated_delta_rule, delta, starts),
        "delta rule, states": (tt.gated_delta_rule, {**delta, **state}, last),
        "delta rule, lengths": (tt.gated_delta_rule, delta, {"use_qk_l2norm_in_kernel": True, **starts}),
        "delta rule, short gates": (tt.gated_delta_rule, {**delta, "beta": of_heads.bfloat16()}, starts),
        "channels": (tt.gated_delta_rule, {**delta, "g": of_channels}, starts),
        "channels, states": (tt.gated_delta_rule, {**delta, "g": of_channels, **state}, last),
        "channels, lengths": (tt.gated_delta_rule, {**delta, "g": of_channels}, {"use_qk_l2norm_in_kernel": True, **starts}),
        "spaces": (tt.ssd, spaces, starts),
        "spaces, skip": (tt.ssd, {**spaces, "D": torch.ones(own)}, {"dt_limit": (-math.inf, math.inf), **starts}),
        "spaces, states": (
            tt.ssd, {**spaces, "D": torch.ones(own), "initial_states": state["initial_state"]},
            {"return_final_states": True, **starts},
        ),
        "spaces, models, limits": (tt.ssd, models, {"dt_softplus": True, "dt_limit": (0.001, 0.1), **starts}),
        "spaces, gated, elements": (
            tt.ssd, {**models, "D": torch.ones(own, WIDTH), "z": torch.ones(rows["v"].shape), "initial_states": state["initial_state"]},
            {"dt_softplus": True, "return_final_states": True, **starts},
        ),
        "spaces, elements": (tt.ssd, {**models, "D": torch.ones(own, WIDTH)}, starts),
        "spaces, sequences": (
            tt.ssd, models, starts or {"dt_softplus": True, "seq_idx": torch.zeros(BATCH, TOKENS, dtype=torch.int32)},
        ),
    }  # fmt: skip


class SeesOps(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        return function(*arguments, **(named or {}))


class Keeper(prepared.Recorder):
    """A recorder of memory that stays, so that an address means one thing."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def __call__(self, *arguments):
        self.kept.append(super().__call__(*arguments))
        return self.kept[-1]


def differentiate(function, tensors, others, by_last=True):
    """(leaves, results, gradients of outputs, gradients), by names; of the states behind too where they are results."""
    leaves = {name: x.detach().requires_grad_() for name, x in tensors.items()}
    results = function(**leaves, **others)
    results = [x for x in (results if isinstance(results, tuple) else (results,)) if x is not None]
    outputs = results if by_last else results[:1]
    grads = [torch.empty_like(x) for x in outputs]
    return leaves, results, grads, dict(zip(leaves, torch.autograd.grad(outputs, list(leaves.values()), grads)))


def list_addresses(first, of_names):
    """What each launch from a number on gets, in order: names of tensors, and numbers that are no addresses."""
    names, found = {x.data_ptr(): name for name, x in of_names.items() if x.numel()}, []
    for number in range(first, fake_cuda.launch_count()):
        for parameter in fake_cuda.read_launch(number):
            if len(parameter) == 128:
                address, numbers = fake_cuda.read_map(parameter)
                found.append((names.get(address, "memory"), numbers))
            elif len(parameter) == 8 and (value := int.from_bytes(parameter, "little")) >= 1 << 40:
                found.append(names.get(value, "memory"))
            else:
                found.append(parameter)
    return found


def no_ops():
    return unittest.mock.patch.object(_walk_ops, "call", side_effect=AssertionError("an op is called"))


@unittest.skipUnless(on_cpu.has_native, "PyTorch is older than 2.10")
class Gradients(prepared.Cases):
    def setUp(self):
        super().setUp()
        self.keeper = Keeper()
        patches = (
            unittest.mock.patch.object(torch._C._dynamo.guards, "_empty_strided_cpu", self.keeper),
            unittest.mock.patch.multiple(_prepared, _learned={}),
        )
        for patch in patches:
            patch.start()
            self.addCleanup(patch.stop)

    def record(self, call, **named):
        """(what launches get, layouts of results and gradients) of a call."""
        function, tensors, others = call
        first = fake_cuda.launch_count()
        leaves, results, grads, gradients = differentiate(function, tensors, others, **named)
        of_names = {**leaves, **{f"gradient of {name}": x for name, x in gradients.items()}}
        of_names.update({f"result {i}": x for i, x in enumerate(results)}, **{f"of result {i}": x for i, x in enumerate(grads)})
        layouts = [(x.shape, x.stride(), x.dtype, x.requires_grad) for x in (*results, *gradients.values())]
        return list_addresses(first, of_names), layouts

    def test_launches(self):
        """The same reaches the driver as through ops, of which a second call makes none."""
        for heads, packed in FORMS:
            for name, call in make_calls(heads, packed).items():
                for by_last in (True, False):
                    with self.subTest(name, heads=heads, packed=packed, by_last=by_last):
                        if "gated, " in name or "elements" in name:
                            # Of calls that follow each other the first may be prepared and launched where the next is not.
                            differentiate(*call, by_last=by_last)
                        expected, layouts = self.record(call, by_last=by_last)
                        with unittest.mock.patch.object(_prepared, "_recall_learned", return_value=None):
                            self.assertEqual(self.record(call, by_last=by_last), (expected, layouts))
                        with no_ops():
                            self.assertEqual(self.record(call, by_last=by_last), (expected, layouts))
                        self.keeper.kept.clear()

    def test_numbers_of_heads(self):
        """Calls of other numbers of heads, which have other decays, are prepared beside each other."""
        for function, tensors, others in (calls := [make_calls(own=own)["retention"] for own in (2, 4)]):
            differentiate(function, tensors, others)
        with no_ops():
            for function, tensors, others in calls:
                differentiate(function, tensors, others)

    def test_counts(self):
        """Of each allocation two functions are the test's."""
        for name, (function, tensors, others) in make_calls().items():
            differentiate(function, tensors, others)
            leaves = {key: x.detach().requires_grad_() for key, x in tensors.items()}
            counts = count_functions(lambda: function(**leaves, **others))
            print(f"{name}: {counts[0] - 1} functions of Python, {counts[1] - 1} of C")
            self.assertLessEqual(counts[0] - 1, 30, name)

    def test_what_is_not_prepared(self):
        """Other extents, strides, types and places go by the ops, and then by what these have prepared."""
        function, tensors, others = make_calls()["delta rule"]
        differentiate(function, tensors, others)
        short = {name: x[:, :40] for name, x in tensors.items()}
        moved = {**tensors, "q": torch.empty(tensors["q"].numel() + 8, dtype=torch.bfloat16)[8:].view(tensors["q"].shape)}
        turned = {**tensors, "v": tensors["v"].transpose(1, 2).contiguous().transpose(1, 2)}
        halves = {name: x.half() if x.dim() == 4 else x for name, x in tensors.items()}
        doubles = {**tensors, "g": tensors["g"].double()}
        for name, changed in (("short", short), ("turned", turned), ("halves", halves)):
            with self.subTest(name):
                with self.assertRaisesRegex(AssertionError, "an op is called"), no_ops():
                    differentiate(function, changed, others)
                expected = self.record((function, changed, others))
                with no_ops():
                    self.assertEqual(self.record((function, changed, others)), expected)
        with no_ops():  # The same layout at another place.
            differentiate(function, moved, others)
        for _ in range(2):  # No kernel takes these: a call converts them.
            self.assertEqual(differentiate(function, doubles, others)[3]["g"].dtype, torch.float64)
        with self.assertRaisesRegex(TypeError, "argument 'k' has type torch.float16"):
            differentiate(function, {**tensors, "k": halves["k"]}, others)
        with self.assertRaisesRegex(ValueError, "argument 'beta' has shape"):
            differentiate(function, {**tensors, "beta": tensors["beta"][:, :-1]}, others)
        with self.assertRaisesRegex(ValueError, "argument 'v' is on meta"):
            differentiate(function, {**tensors, "v": tensors["v"].to("meta")}, others)
        nothing = {name: x[:, :0] for name, x in tensors.items()}
        for _ in range(2):
            self.assertEqual(differentiate(function, nothing, others)[3]["v"].shape, nothing["v"].shape)

    def test_who_wants_gradients(self):
        """It is asked in each call."""
        for name, (function, tensors, others) in make_calls().items():
            differentiate(function, tensors, others)
            for _ in range(2):
                for wanted in (None, "v" if "v" in tensors else "x"):
                    with self.subTest(name, wanted=wanted):
                        leaves = {each: x.detach().requires_grad_(each == wanted) for each, x in tensors.items()}
                        results = function(**leaves, **others)
                        out = results[0] if isinstance(results, tuple) else results
                        self.assertEqual(out.requires_grad, wanted is not None)
                        if wanted:
                            self.assertEqual(torch.autograd.grad(out, leaves[wanted], torch.empty_like(out))[0].shape, leaves[wanted].shape)
                leaves = {each: x.detach().requires_grad_() for each, x in tensors.items()}
                with torch.no_grad():
                    results = function(**leaves, **others)
                self.assertFalse((results[0] if isinstance(results, tuple) else results).requires_grad)

    def test_gradients_of_any_layout(self):
        """Gradients of outputs that do not lie as kernels take them are copied."""
        for name in ("retention", "gated attention", "channels", "spaces"):
            function, tensors, others = make_calls()[name]
            for lay in (lambda x: x.new_ones(()).expand(x.shape), lambda x: x.transpose(1, 2).contiguous().transpose(1, 2)):
                for may_call in (True, True, False):
                    leaves = [x.detach().requires_grad_() for x in tensors.values()]
                    results = function(**dict(zip(tensors, leaves)), **others)
                    out = results[0] if isinstance(results, tuple) else results
                    with self.subTest(name), unittest.mock.patch.object(_walk_ops, "call", wraps=_walk_ops.call) as call:
                        found = torch.autograd.grad(out, leaves, lay(out))
                    self.assertEqual([x.shape for x in found], [x.shape for x in leaves])
                    self.assertTrue(may_call or not call.called)

    def test_checkpoints(self):
        """The same is saved where a call goes by the ops, and where the one that computes it again does not."""
        for heads, packed in FORMS:
            for name, (function, tensors, others) in make_calls(heads, packed).items():
                for _ in range(2):
                    leaves = {each: x.detach().requires_grad_() for each, x in tensors.items()}
                    with self.subTest(name, heads=heads, packed=packed):
                        results = torch.utils.checkpoint.checkpoint(lambda: function(**leaves, **others), use_reentrant=False)
                        out = results[0] if isinstance(results, tuple) else results
                        found = torch.autograd.grad(out, list(leaves.values()), torch.empty_like(out))
                        self.assertEqual([x.shape for x in found], [x.shape for x in leaves.values()])

    def test_scale_of_nothing(self):
        """A scale of 0 is one where gradients go by the ops, too."""
        function, tensors, _ = make_calls()["retention"]
        for _ in range(2):
            with unittest.mock.patch.object(_walk_ops, "call", wraps=_walk_ops.call) as call:
                differentiate(function, tensors, {"scale": 0.0})
                leaves = {each: x.detach().requires_grad_() for each, x in tensors.items()}
                out, _ = function(**leaves, scale=0.0)
                torch.autograd.grad(out, leaves["v"], torch.empty_like(out), create_graph=True)
            scales = [x for each in call.call_args_list for x in each.args if isinstance(x, float)]
            self.assertTrue(scales and not any(scales), scales)

    def test_scales(self):
        """Calls that differ in their scale are of one kind, and kernels of each get its own, in gradients too."""
        for name, (function, tensors, others) in make_calls().items():
            if function is tt.ssd:
                continue
            with self.subTest(name):
                self.record((function, tensors, {**others, "scale": 0.75}))
                count = len(_prepared._learned)
                for scale in (0.375, 2, None):
                    first = fake_cuda.launch_count()
                    differentiate(function, tensors, {**others, "scale": scale})
                    _, floats = prepared.read_launches(first)
                    self.assertNotIn(0.75, floats)
                    self.assertIn(tensors["q"].shape[3] ** -0.5 if scale is None else scale, floats)
                self.assertEqual(len(_prepared._learned), count)

    def test_refusals(self):
        """Gradients of gradients, and tensors that change between a forward pass and its gradients."""
        function, tensors, others = make_calls(packed=True)["delta rule"]
        for _ in range(3):
            leaves = {name: x.detach().requires_grad_() for name, x in tensors.items()}
            out, _ = function(**leaves, **others)
            (gradient,) = torch.autograd.grad(out, leaves["v"], torch.empty_like(out), create_graph=True)
            with self.assertRaisesRegex(NotImplementedError, "gradients of recurrences have no gradients themselves"):
                torch.autograd.grad(gradient.sum(), leaves["q"])
            starts = others["cu_seqlens"].clone()
            out, _ = function(**leaves, cu_seqlens=starts)
            starts += 1
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                torch.autograd.grad(out, leaves["v"], torch.empty_like(out))

    def test_captured_graphs(self):
        """Gates of retention that a call has made before a graph live on, and the graph makes none."""
        call = make_calls()["retention"]
        for is_known in (False, True):
            _prepared._learned.clear()
            if is_known:
                self.record(call)
            decays = tt._linear._make_decays(2, torch.device("cpu")).data_ptr()
            first = fake_cuda.launch_count()
            with unittest.mock.patch.object(_kept, "is_capturing", return_value=True):
                differentiate(*call)
            addresses, _ = prepared.read_launches(first)
            self.assertIn(decays, addresses)
            self.assertIn(decays, [x.data_ptr() for x in _kept._of_graphs.values()])
            self.assertEqual(len(_prepared._learned), int(is_known))

    def test_transforms_and_modes(self):
        """What sees ops gets them."""
        function, tensors, others = make_calls()["retention"]
        differentiate(function, tensors, others)
        found = torch.func.grad(lambda v: function(**{**tensors, "v": v}, **others)[0].float().sum())(tensors["v"])
        self.assertEqual(found.shape, tensors["v"].shape)
        with no_ops(), self.assertRaisesRegex(AssertionError, "an op is called"), SeesOps():
            differentiate(function, tensors, others)

    def test_threads(self):
        """Each thread gets what its own tensors give, with memory freed in between."""
        failed = []

        def run(form):
            fake_cuda.library.fake_cuda_set_device(0)
            try:
                calls = make_calls(*form)
                for _ in range(3):
                    for name, (function, tensors, others) in calls.items():
                        leaves, results, _, gradients = differentiate(function, {key: x.clone() for key, x in tensors.items()}, others)
                        for key, x in gradients.items():
                            if (x.shape, x.dtype) != (leaves[key].shape, leaves[key].dtype):
                                failed.append((name, key, x.shape))
            except Exception as error:  # Shown by the assertion.
                failed.append(error)

        threads = [threading.Thread(target=run, args=(form,)) for form in (*FORMS, FORMS[0])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])


if __name__ == "__main__":
    unittest.main()
