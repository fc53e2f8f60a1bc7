# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib TESSERA_CACHE_DIR= %torch-python %s \
# RUN:   %source/test/Python
"""Functions for serving engines through what was prepared for earlier calls: real PyTorch, tensors of the CPU, and a fake driver. What
reaches the driver belongs to the call, little of Python runs, and what differs is refused as where nothing was prepared."""

import gc
import itertools
import math
import re
import sys
import threading
import unittest
import unittest.mock

import prepared  # Which takes the directory of what follows from the arguments.
import fake_cuda  # isort: skip
import on_cpu
import torch

import tessera.torch as tt
from tessera._attention import _recipes
from tessera.torch import _kept, _native, _prepared

setUpModule = prepared.setUpModule
# The most functions of Python that a prepared call enters.
MOST = 16


def make(*shape, dtype=torch.bfloat16):
    return torch.empty(shape, dtype=dtype)


def number(*values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype)


def make_calls():
    """By name (function, arguments by name, launches), and the names of tensors that are copied or not looked at, if there are some."""
    table = torch.zeros(2, 3, dtype=torch.int32)
    caches = {"k_cache": make(9, 64, 2, 64), "v_cache": make(9, 64, 2, 64)}
    paged = {**caches, "page_table": table}
    dense = {"k_cache": make(2, 256, 2, 64), "v_cache": make(2, 256, 2, 64)}
    new = {"q": make(2, 1, 8, 64), "k": make(2, 1, 2, 64), "v": make(2, 1, 2, 64), "cache_seqlens": number(5, 7), "num_splits": 1}
    turn = {"rotary_cos": make(300, 32), "rotary_sin": make(300, 32), "causal": True}
    tokens = {"k": make(5, 2, 64), "v": make(5, 2, 64), **caches, "slots": number(1, 2, 3, 4, -1)}
    angles = {"q": make(5, 8, 64), "cos": make(300, 32), "sin": make(300, 32), "positions": number(1, 2, 3, 4, 5)}
    short = {name: torch.zeros(9, 64, 2, 64).to(torch.float8_e4m3fn) for name in ("k_cache", "v_cache")}
    packed = {"q": make(70, 8, 64), "cu_seqlens_q": number(0, 30, 70), "max_seqlen_q": 40, "max_seqlen_k": 50}
    keys = {"k": make(90, 2, 64), "v": make(90, 2, 64), "cu_seqlens_k": number(0, 40, 90)}
    pages = {"k": paged["k_cache"], "v": paged["v_cache"], "block_table": table, "cu_seqlens_k": None, "seqused_k": number(40, 50)}
    latent = {"q": make(2, 1, 16, 576), "k_cache": make(9, 64, 1, 576), "block_table": table, "cache_seqlens": number(5, 7)}
    listed = {**latent, "block_table": None, "cache_seqlens": None, "indices": torch.zeros(2, 1, 128, dtype=torch.int32)}
    rows = {"q": make(3, 16, 576), "kv": make(400, 1, 576), "indices": torch.zeros(3, 1, 256, dtype=torch.int32), "sm_scale": 0.5}
    shares, starts = tt.get_mla_metadata(latent["cache_seqlens"], 16)
    byte_rows = torch.zeros(9, 64, 1, 656, dtype=torch.uint8)
    unlike = {name: make(2, 2, 2, 64).transpose(0, 1) for name in "kv"}
    lists = {**listed, "q": make(2, 3, 16, 576), "indices": torch.zeros(2, 3, 128, dtype=torch.int32), "topk_length": number(100, 128)}
    step = {"q": make(2, 1, 4, 64), "k": make(2, 1, 4, 64), "v": make(2, 1, 8, 64)}
    step.update(initial_state=make(2, 8, 64, 64, dtype=torch.float32), output_final_state=True)
    gates = {"g": torch.ones(2, 1, 8), "beta": make(2, 1, 8)}
    slopes, fixed = torch.ones(2), {"q": make(1, 2, 96, 64), "k": make(1, 2, 96, 64), "v": make(1, 2, 96, 64), "scale": 0.25}
    return {
        "new keys": (tt.flash_attn_with_kvcache, {**new, **dense}, 2),
        "new keys in pages": (tt.flash_attn_with_kvcache, {**new, **paged, "num_splits": 2}, 3),
        "new keys by slots": (tt.flash_attn_with_kvcache, {**new, **dense, "cache_batch_idx": number(1, 0)}, 2),
        "rotated keys": (tt.flash_attn_with_kvcache, {**new, **paged, **turn}, 2),
        "flags": (tt.flash_attn_with_kvcache, {**new, **paged, "k": None, "v": None, "causal": number(1, 0)}, 1),
        "new keys, copied": (tt.flash_attn_with_kvcache, {**new, **paged, **unlike}, 2, "kv"),
        "rotated keys, copied": (
            tt.flash_attn_with_kvcache, {**new, **paged, **turn, **unlike, "q": make(2, 2, 8, 64).transpose(0, 1)}, 2, "qkv",
        ),
        "a number of keys": (tt.flash_attn_with_kvcache, {**new, **paged, "k": None, "v": None, "cache_seqlens": 9}, 1),
        "all keys, by a number": (tt.flash_attn_with_kvcache, {**new, **dense, "k": None, "v": None, "cache_seqlens": 256}, 1),
        "a list of two, short sinks": (
            tt.flash_attn_with_kvcache,
            {**new, **paged, "k": None, "v": None, "window_size": [16, 0], "sinks": make(8), "pack_gqa": False, "sm_margin": 8}, 1,
            ["sinks"],
        ),
        "8 bits without numbers": (tt.flash_attn_with_kvcache, {**new, **short, "page_table": table, "k": None, "v": None}, 1),
        "8 bits with one number": (
            tt.flash_attn_with_kvcache, {**new, **short, "page_table": table, "k": None, "v": None, "v_descale": torch.ones(2, 2)}, 1,
        ),
        "kv_append": (tt.kv_append, tokens, 1),
        "kv_append of 8 bits": (tt.kv_append, {**tokens, **short, "k_scale": torch.ones(()), "v_scale": torch.ones(1)}, 1),
        "rotating kv_append": (tt.kv_append, {**tokens, **angles}, 1),
        "merge_states": (tt.merge_states, {"parts": make(3, 2, 1, 4, 64), "lses": torch.empty(3, 2, 4, 1)}, 1),
        "merge_states, copied": (
            tt.merge_states, {"parts": make(3, 2, 4, 1, 64).transpose(2, 3), "lses": torch.empty(3, 2, 1, 4).mT}, 1, ["parts"],
        ),
        "merge_states of columns": (
            tt.merge_states, {"parts": make(3, 2, 4, 4, 64).mT.contiguous().mT, "lses": torch.empty(3, 2, 4, 4).mT}, 1, ["parts", "lses"],
        ),
        "packed sequences": (tt.flash_attn_varlen_func, {**packed, **keys}, 2),
        "packed sequences, used": (tt.flash_attn_varlen_func, {**packed, **keys, "seqused_k": number(40, 50), "causal": True}, 1),
        "packed sequences, out": (tt.flash_attn_varlen_func, {**packed, **keys, "out": make(70, 8, 64)}, 2),
        "packed queries, pages": (tt.flash_attn_varlen_func, {**packed, **pages, "window_size": (16, 0)}, 1),
        "packed queries, invariant": (tt.flash_attn_varlen_func, {**packed, **pages, "invariant": True}, 1),
        "packed queries, starts of no use": (
            tt.flash_attn_varlen_func, {**packed, **pages, "cu_seqlens_k": number(0, 40, 90)}, 1, ["cu_seqlens_k"],
        ),
        "packed queries, one each": (tt.flash_attn_varlen_func, {**packed, **pages, "q": make(3, 8, 64), "max_seqlen_q": 1}, 3),
        "packed queries, one each, out": (
            tt.flash_attn_varlen_func,
            {**packed, **pages, "q": make(3, 8, 64), "max_seqlen_q": 1, "seqused_k": None, "cu_seqlens_k": number(0, 40, 90),
             "out": make(3, 8, 64)}, 4,
        ),
        "metadata": (tt.get_mla_metadata, {"cache_seqlens": latent["cache_seqlens"], "num_q_tokens_per_head_k": 16}, 1),
        "latent": (tt.mla_with_kvcache, latent, 3),
        "latent, metadata": (tt.mla_with_kvcache, {**latent, "tile_scheduler_metadata": shares, "num_splits": starts}, 2),
        "latent, parts": (tt.mla_with_kvcache, {**latent, "keys_per_part": 64, "attn_sink": torch.ones(16)}, 2),
        "latent, pages of bytes": (tt.mla_with_kvcache, {**latent, "k_cache": byte_rows}, 3),
        "latent, lists": (tt.mla_with_kvcache, {**listed, "topk_length": number(100, 128)}, 1),
        "latent, lists of bytes": (tt.mla_with_kvcache, {**listed, "k_cache": byte_rows}, 1),
        "latent, lists of queries": (tt.mla_with_kvcache, lists, 1, ["topk_length"]),
        "latent, lists, copied": (
            tt.mla_with_kvcache, {**lists, "q": make(3, 2, 16, 576).transpose(0, 1), "indices": lists["indices"].repeat(1, 2, 1)[:, ::2]}, 1,
            ["q", "indices", "topk_length"],
        ),
        "latent, lists, copied, of any length": (
            tt.mla_with_kvcache, {**lists, "indices": torch.zeros(3, 2, 128, dtype=torch.int32).transpose(0, 1)[..., :125]}, 1,
            ["indices", "topk_length"],
        ),
        "latent, rows": (tt.mla_sparse, rows, 1),
        "latent, rows of lists that begin anywhere": (tt.mla_sparse, {**rows, "indices": rows["indices"][..., :61].contiguous()}, 1, ["indices"]),
        "latent, rows in parts": (tt.mla_sparse, {**rows, "keys_per_part": 64, "topk_length": number(1, 2, 200)}, 2),
        "8 bits": (tt.attention_fp8, {**fixed, "causal": True}, 4),
        "8 bits, functions": (
            tt.attention_fp8, {**fixed, "score_mod": lambda s, b, h, q, k, fall: s - fall[h] * (q - k), "score_args": (slopes,)}, 4,
        ),
        "8 bits, a variant": (tt.attention_fp8, {**fixed, "variant": prepared.CAPPED, "arguments": {"cap": 2.0, "slopes": slopes}}, 4),
        "a step": (tt.gated_delta_rule, {**step, **gates}, 1, ["beta"]),
        "a step of lengths 1": (tt.gated_delta_rule, {**step, **gates, "scale": 0.5, "use_qk_l2norm_in_kernel": True}, 1, ["beta"]),
        "a step with gates of channels": (tt.gated_delta_rule, {**step, **gates, "g": torch.ones(2, 1, 4, 64)}, 1, ["beta"]),
        "a step with gates of channels, copied": (tt.gated_delta_rule, {**step, **gates, "g": torch.ones(2, 1, 64, 4).mT}, 1, ["g", "beta"]),
        "a step of gated attention": (tt.gla, {**step, "g": make(2, 1, 4, 64)}, 1, ["g"]),
        "a step of retention": (tt.retention, step, 1),
    }  # fmt: skip


def make_walks():
    """Forward passes of recurrences, as `make_calls` has calls."""
    tokens = {"q": make(1, 70, 4, 64), "k": make(1, 70, 4, 64), "v": make(1, 70, 8, 64)}
    of_heads, of_channels, starts = {"g": torch.ones(1, 70, 8), "beta": make(1, 70, 8)}, torch.ones(1, 70, 4, 64), number(0, 3, 3, 70)
    packed, state = {**tokens, "cu_seqlens": starts}, {"initial_state": torch.ones(3, 8, 64, 64), "output_final_state": True}
    spaces = {"x": tokens["v"], "dt": torch.ones(1, 70, 8), "A": torch.ones(8), "B": tokens["k"], "C": tokens["q"]}
    models = {**spaces, "dt": make(1, 70, 8), "D": torch.ones(8), "dt_bias": torch.ones(8), "dt_softplus": True}
    numbers = {"seq_idx": torch.zeros(1, 70, dtype=torch.int32)}
    step = {each: x[:, :1] if isinstance(x, torch.Tensor) and x.dim() > 2 else x for each, x in models.items()}
    return {
        "a walk": (tt.gated_delta_rule, {**tokens, **of_heads, "scale": 0.5}, 5),
        "packed walks": (tt.gated_delta_rule, {**packed, **of_heads, **state}, 6),
        "packed walks of lengths 1": (tt.gated_delta_rule, {**packed, **of_heads, "use_qk_l2norm_in_kernel": True}, 7),
        "packed walks with gates of channels": (tt.gated_delta_rule, {**packed, **of_heads, "g": of_channels}, 5),
        "packed walks of gated attention": (tt.gla, {**packed, "g": of_channels, **state}, 3),
        "packed walks of retention": (tt.retention, {**packed, "cu_seqlens": starts.long()}, 2),
        "packed walks of spaces": (
            tt.ssd,
            {**spaces, "D": torch.ones(8), "initial_states": torch.ones(3, 8, 64, 64), "return_final_states": True, "cu_seqlens": starts}, 3,
            ["initial_states"],
        ),
        "walks of spaces, any steps": (tt.ssd, {**spaces, "dt_limit": (-math.inf, math.inf)}, 2),
        "walks of spaces, models": (tt.ssd, {**models, "dt_limit": [0.001, 0.1]}, 2),
        "walks of spaces, models, sequences": (tt.ssd, {**models, **numbers, "z": tokens["v"]}, 2),
        "packed walks of spaces, models": (tt.ssd, {**models, "cu_seqlens": starts, "D": torch.ones(8, 64)}, 3),
        "a step of spaces, models": (
            tt.ssd, {**step, "initial_states": torch.ones(1, 8, 64, 64), "return_final_states": True}, 1, ["initial_states", "dt"],
        ),
    }  # fmt: skip


def list_tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    return [tensor for each in value for tensor in list_tensors(each)] if isinstance(value, (tuple, list, type({}.values()))) else []


def list_constants():
    """Addresses of what calls have of the module: a rotation, factors of 1, a number for all sequences, gates of retention."""
    cpu = torch.device("cpu")
    kept = [tt._bytes._make_rotation(64, 0, torch.bfloat16, cpu), tt._kept.full((1, 1), 1.0, torch.float32, cpu),
            tt._kept.full((2,), 9, torch.int32, cpu)]
    return [x.data_ptr() for x in (*kept, *tt._linear._find_step_gates(8, cpu).values(), tt._linear._make_decays(8, cpu))]


def count_functions(call):
    """Functions of Python, and of C, that a call enters."""
    counts = {"call": 0, "c_call": 0}

    def count(frame, event, argument):
        if event in counts:
            counts[event] += 1

    gc.disable()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return counts["call"], counts["c_call"]


def nothing_is_prepared():
    return unittest.mock.patch.object(_prepared, "compute", side_effect=AssertionError("nothing was prepared"))


def refuse(function, arguments):
    """What a call is refused by, without addresses."""
    try:
        function(**arguments)
    except Exception as error:
        return re.sub("0x[0-9a-f]+", "0x", f"{type(error).__name__}: {error}")
    return "no refusal"


@unittest.skipUnless(on_cpu.has_native, "PyTorch is older than 2.10")
class Engines(prepared.Cases):
    def setUp(self):
        super().setUp()
        self.calls = make_calls() | make_walks()

    def test_calls(self):
        """The second call gives the driver its tensors, results and memory of its own, and no other addresses."""
        for name, (function, arguments, launches, *unseen) in self.calls.items():
            with self.subTest(name):
                function(**arguments)
                first, self.recorder.ranges[:] = fake_cuda.launch_count(), []
                with nothing_is_prepared():
                    results = function(**arguments)
                addresses, _ = prepared.read_launches(first)
                self.assertEqual(fake_cuda.launch_count() - first, launches)
                own = {x.data_ptr() for x in list_tensors((arguments, results if isinstance(results, tuple) else (results,)))}
                others = [x for x in addresses - own if not fake_cuda.is_allocated(x)]
                inside = [*self.recorder.ranges, *(range(x.data_ptr(), x.data_ptr() + x.nbytes) for x in list_tensors(arguments))]
                self.assertEqual([x for x in others if x not in list_constants() and not any(x in memory for memory in inside)], [])
                given = {each: x for each, x in arguments.items() if each not in [name for names in unseen for name in names]}
                self.assertLessEqual({x.data_ptr() for x in list_tensors(given)}, addresses)

    def test_captured_graphs(self):
        """Numbers that a graph makes are its own, which no call behind it takes. Those of calls before it that it takes live on."""
        for (name, (function, arguments, *_)), is_known in itertools.product(self.calls.items(), (False, True)):
            with self.subTest(name, is_known=is_known):
                _prepared._plans.clear()
                if is_known:
                    function(**arguments)
                first = fake_cuda.launch_count()
                with unittest.mock.patch.object(_kept, "is_capturing", return_value=True):
                    function(**arguments)
                addresses, _ = prepared.read_launches(first)
                of_plans = {x.data_ptr() for _, constants, _ in _prepared._plans.values() for x in constants}
                taken = addresses.intersection((*list_constants()[1:], *of_plans))
                self.assertLessEqual(taken, {x.data_ptr() for x in _kept._of_graphs.values()})

    def test_counts(self):
        for name, (function, arguments, *_) in self.calls.items():
            with self.subTest(name):
                function(**arguments), function(**arguments)
                counts = count_functions(lambda: function(**arguments))
                print(f"{name}: {counts[0] - 1} functions of Python, {counts[1] - 1} of C")
                self.assertLessEqual(counts[0] - 1, MOST)

    def change(self, arguments):
        """Arguments that differ from prepared ones in one thing."""
        for name, value in arguments.items():
            if isinstance(value, torch.Tensor):
                wider = torch.int64 if value.dtype == torch.int32 else torch.float64
                moved = torch.empty(value.numel() + 4, dtype=value.dtype)[4:].view(value.shape)
                others = value.to(wider), value.to("meta"), value[None], 3.5, *([value[..., :-1]] if value.dim() else [])
                yield from ({**arguments, name: other} for other in others)
                if value.dim() > 2 and value.element_size() == 2:
                    yield {**arguments, name: moved}
                    yield {**arguments, name: value.mT.contiguous().mT}
                if value.is_floating_point():
                    yield {**arguments, name: value.clone().requires_grad_()}
            elif type(value) is int:
                yield {**arguments, name: value + 0.5}
                yield {**arguments, name: -value}
        for name, value in (("softmax_scale", -1.0), ("window_size", (2.5, 0)), ("keys_per_part", 3), ("scale", "x"), ("causal", "x")):
            yield {**arguments, name: value}

    def test_changes(self):
        """What differs is refused, or launched, as where nothing was prepared."""
        for name, (function, arguments, *_) in self.calls.items():
            function(**arguments), function(**arguments)
            changes = list(self.change(arguments))
            found = []
            for changed in changes:
                first = fake_cuda.launch_count()
                found.append((refuse(function, changed), fake_cuda.launch_count() - first))
            for changed, (text, launches) in zip(changes, found):
                _prepared._plans.clear()
                _native.reset()
                first = fake_cuda.launch_count()
                with self.subTest(name, changed={each: getattr(x, "shape", x) for each, x in changed.items()}):
                    self.assertEqual(refuse(function, changed), text)
                    if text != "no refusal":
                        self.assertEqual(launches, 0)

    def test_options_and_types(self):
        """An option is read with the types of its own call."""
        short, wide, sums = make(3, 2, 1, 4, 64), make(3, 2, 1, 4, 64, dtype=torch.float32), torch.empty(3, 2, 4, 1)
        tt.merge_states(short, sums), tt.merge_states(wide, sums, dtype=torch.bfloat16)
        self.assertEqual(tt.merge_states(wide, sums)[0].dtype, torch.float32)
        function, arguments, *_ = self.calls["latent"]
        _, bytes_of, *_ = self.calls["latent, pages of bytes"]
        function(**arguments), function(**bytes_of, is_fp8_kvcache=True)
        with self.assertRaisesRegex(ValueError, "'is_fp8_kvcache' is True"):
            function(**arguments, is_fp8_kvcache=True)

    def test_memory_and_threads(self):
        """Each thread gets results of its own, with memory freed in between."""
        failed = []

        def run():
            fake_cuda.library.fake_cuda_set_device(0)
            try:
                for _ in range(8):
                    for name, (function, arguments, *_) in self.calls.items():
                        copies = {each: x.clone() if isinstance(x, torch.Tensor) else x for each, x in arguments.items()}
                        if "8 bits" not in name:
                            function(**copies)
            except Exception as error:  # Shown by the assertion.
                failed.append(error)

        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])


def read_parameters(first):
    """What kernels get but for addresses: grids are not recorded."""
    found = []
    for launch in range(first, fake_cuda.launch_count()):
        for parameter in fake_cuda.read_launch(launch):
            if len(parameter) == 128:
                found.append(fake_cuda.read_map(parameter)[1])
            elif len(parameter) < 8 or int.from_bytes(parameter, "little") < 1 << 40:
                found.append(parameter)
    return found


@unittest.skipUnless(on_cpu.has_native, "PyTorch is older than 2.10")
class Growing(prepared.Cases):
    """Of calls that differ in free extents one is described."""

    def check(self, call, extents, described):
        """Makes calls of extents; nothing but so many is described, and kernels get what they get where nothing was prepared."""
        with unittest.mock.patch.object(_recipes, "make", side_effect=_recipes.make) as make_recipe:
            found = []
            for extent in extents:
                first = fake_cuda.launch_count()
                results = call(extent)
                found.append(([x.shape for x in results], [x.stride() for x in results], read_parameters(first), fake_cuda.last_launch()[0]))
        self.assertLessEqual(make_recipe.call_count, described)
        for extent, known in list(zip(extents, found))[:: max(1, len(found) // 8)]:
            _native.reset()
            first = fake_cuda.launch_count()
            results = call(extent)
            fresh = [x.shape for x in results], [x.stride() for x in results], read_parameters(first), fake_cuda.last_launch()[0]
            self.assertEqual(fresh, known, extent)

    def test_keys(self):
        """As keys grow, parts change now and then."""

        def call(keys):
            q, k, v = make(1, 8, 1, 64), make(1, 2, keys, 64), make(1, 2, keys, 64)
            with unittest.mock.patch.object(tt._cache_recipes, "find_ready", tt._kernels.find):
                return tt.attention(q, k, v, return_lse=True)

        self.check(call, range(700, 830), 6)

    def test_tables(self):
        cache = make(9, 64, 2, 64)

        def call(entries):
            table = torch.zeros(2, entries, dtype=torch.int32)
            return tt.flash_attn_with_kvcache(
                make(2, 3, 8, 64), cache, cache, cache_seqlens=number(5, 7), page_table=table, return_softmax_lse=True, num_splits=1
            )

        self.check(call, range(3, 20), 1)

    def test_batches(self):
        """Where keys are not divided, or into parts whose number does not depend on the batch."""
        caches, count = (make(9, 64, 2, 64), make(9, 64, 2, 64)), tt._kernels.count_multiprocessors(torch.device("cpu"))

        def attend(batch, new=False, paged=True, **options):
            own = {"page_table": torch.zeros(batch, 3, dtype=torch.int32)} if paged else {}
            k, v = caches if paged else (make(batch, 130, 2, 64), make(batch, 130, 2, 64))
            if new:
                own.update(k=make(1, batch, 2, 64).transpose(0, 1), v=make(batch, 1, 2, 64), causal=True)
                own.update(rotary_cos=torch.ones(300, 16), rotary_sin=torch.ones(300, 16))
            lengths = torch.full((batch,), 9, dtype=torch.int32)
            q = make(batch, 1, 8, 64)
            return tt.flash_attn_with_kvcache(q, k, v, cache_seqlens=lengths, return_softmax_lse=True, **own, **options)

        self.check(lambda batch: attend(batch, num_splits=1), range(11, 30), 1)
        self.check(lambda batch: attend(batch, num_splits=1, paged=False), range(11, 30), 1)
        self.check(lambda batch: attend(batch, new=True, num_splits=1), range(11, 30), 1)
        self.check(lambda batch: attend(batch, keys_per_part=128, sinks=torch.ones(8)), range(11, 30), 1)
        self.check(lambda batch: attend(batch, window_size=(16, 0), alibi_slopes=torch.ones(8)), range(count, count + 12), 1)
        # The batch is that of all tensors.
        own, first = {"page_table": torch.zeros(12, 3, dtype=torch.int32), "num_splits": 1}, fake_cuda.launch_count()
        with self.assertRaisesRegex(ValueError, "'cache_seqlens'"):
            tt.flash_attn_with_kvcache(make(12, 1, 8, 64), *caches, cache_seqlens=number(*range(13)), **own)
        self.assertEqual(fake_cuda.launch_count(), first)

    def test_tokens(self):
        cache, other = make(9, 64, 2, 64), make(9, 64, 2, 64)
        used, table = number(5, 7), torch.zeros(2, 3, dtype=torch.int32)

        def attend(tokens):
            q = make(tokens, 8, 64)
            return tt.flash_attn_varlen_func(
                q, cache, cache, number(0, 3, tokens), None, tokens - 3, 0, block_table=table, seqused_k=used, return_attn_probs=True
            )[:2]

        def pack(tokens):
            q, k, v = make(tokens, 8, 64), make(tokens + 9, 2, 64), make(tokens + 9, 2, 64)
            starts = number(0, 30, tokens), number(0, 40, tokens + 9)
            return tt.flash_attn_varlen_func(q, k, v, *starts, 64, 0, causal=True, return_attn_probs=True)[:2]

        def fill(tokens):
            q, starts = make(tokens, 8, 64), number(0, 3, tokens)
            pages = {"block_table": table, "seqused_k": used}
            return tt.flash_attn_varlen_func(q, cache, cache, starts, None, 400, 0, return_attn_probs=True, **pages)[:2]

        def append(tokens):
            k, v, q = make(tokens, 2, 64), make(tokens, 2, 64), make(tokens, 8, 64)
            places = torch.arange(tokens, dtype=torch.int32)
            angles = {"cos": torch.ones(100, 8), "sin": torch.ones(100, 8), "positions": places}
            return [tt.kv_append(k, v, cache, other, places, q=q, **angles)]

        self.check(attend, range(70, 127), 1)
        self.check(pack, range(70, 94), 1)
        # Tiles as many as tokens fill, up to as many of each sequence as of the longest one.
        self.check(fill, range(70, 170), 1)
        self.check(fill, range(900, 960), 2)
        self.check(append, range(20, 60), 1)

    def test_latent(self):
        """Tables between two powers of 2 of steps, and lists of as many tokens as fill the GPU."""
        used, cache, bytes_of = number(5, 7), make(90, 64, 1, 576), torch.zeros(900, 1, 656, dtype=torch.uint8)

        def page(entries, **options):
            table = torch.zeros(2, entries, dtype=torch.int32)
            return tt.mla_with_kvcache(make(2, 1, 16, 576), cache, table, used, **options)

        def gather(tokens, rows=make(900, 1, 576), width=192):
            q, indices = make(tokens, 16, 576), torch.zeros(tokens, 1, width, dtype=torch.int32)
            return tt.mla_sparse(q, rows, indices, 0.5, topk_length=torch.ones(tokens, dtype=torch.int32))

        self.check(page, range(17, 32), 1)
        self.check(lambda entries: page(entries, keys_per_part=1024), range(17, 33), 1)
        self.check(gather, range(70, 140), 1)
        self.check(lambda tokens: gather(tokens, bytes_of), range(70, 90), 1)
        self.check(lambda rows: gather(75, make(rows, 1, 576)), range(900, 930), 1)

    def test_other_extents_are_checked(self):
        """A free extent is that of all tensors that have it."""
        q, k = make(1, 8, 1, 64), make(1, 2, 700, 64)
        with unittest.mock.patch.object(tt._cache_recipes, "find_ready", tt._kernels.find):
            tt.attention(q, k, k), tt.attention(q, k[:, :, :699], k[:, :, :699])
            first = fake_cuda.launch_count()
            with self.assertRaisesRegex(ValueError, "'v'"):
                tt.attention(q, make(1, 2, 701, 64), make(1, 2, 702, 64))
            with self.assertRaisesRegex(ValueError, "'k'.*(16 bytes|multiples)"):
                tt.attention(q, make(1, 2, 701, 68)[..., :64], make(1, 2, 701, 64))
        self.assertEqual(fake_cuda.launch_count(), first)


if __name__ == "__main__":
    unittest.main()
