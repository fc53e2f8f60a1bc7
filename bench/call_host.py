"""The host's time of calls of attention through the package's public functions, beside those of others: the part `host` of
bench/calls.py.

Tensors are small, so that the host is what takes time: a queue never fills. A call is timed in batches, in turns with all
others, beside a loop of arithmetic, as in bench/host.py. A backward pass is that of one forward pass, again and again:
`backward` by torch.autograd.grad, which hands it to a thread of PyTorch's engine and waits for that, and `gradients` the last
node of the same graph alone. "no kernel" is a function of autograd in Python that computes nothing. What torch.compile makes, and
what compiles by itself, is timed in processes of its own.
"""

import functools
import gc
import json
import os
import time

import common
import host

PLAIN, SDPA = "attention", "SDPA (cuDNN)"
# A mode of torch.compile.
IN_GRAPHS = "reduce-overhead"
KINDS = ("forward", "with gradients", "backward", "gradients")
# (call, what it is held against, at most so many times its time), forward and of gradients.
FORWARD_GOALS = {
    "fp8": (PLAIN, 3.0), "fp8, causal": (PLAIN, 3.0), "compiled": ("compiled SDPA", 1.0),
    "compiled, reduce-overhead": ("compiled SDPA, reduce-overhead", 1.0),
    **{name: (PLAIN, 2.0) for name in (
        "window", "soft cap", "ALiBi", "bias", "score_mod", "score_mod, new closure", "mask_mod", "mask_mod, by data", "variant",
        "block_mask", "score_mod and block_mask")},
}  # fmt: skip
GRADIENT_GOALS = {
    **{name: (SDPA, 0.35) for name in (PLAIN, "causal", "return_lse", "deterministic")},
    **{name: (PLAIN, 1.3) for name in (
        "window", "soft cap", "ALiBi", "ALiBi, learned", "bias", "score_mod", "score_mod, new closure", "score_mod, learned",
        "mask_mod", "mask_mod, by data", "variant", "block_mask", "score_mod and block_mask")},
    "compiled": ("compiled SDPA", 1.0),
}  # fmt: skip


def make_tensors(torch, device, d=64, batch=1, heads=4, length=128):
    return [torch.randn((batch, heads, length, d), device=device, dtype=torch.bfloat16) for _ in range(3)]


def list_own(torch, device, d=64):
    """{name: function of q, k and v}, of calls in eager mode."""
    import tessera
    from tessera.torch import attention, attention_fp8, create_block_mask

    slopes, learned = (torch.full((4,), 0.1, device=device) for _ in range(2))
    learned.requires_grad_()
    bias = torch.randn((128, 128), device=device, dtype=torch.bfloat16)
    documents = torch.arange(128, device=device, dtype=torch.int32) // 32
    width = 64

    def score(s, b, h, q, k):
        return s - slopes[h] * (q - k)

    def score_learned(s, b, h, q, k):
        return s - learned[h] * (q - k)

    def by_data(b, h, q, k):
        return (documents[q] == documents[k]) & (q >= k)

    def call_new_closure(q, k, v):
        factor = slopes
        return attention(q, k, v, score_mod=lambda s, b, h, q, k: s - factor[h] * (q - k))

    def window(b, h, q, k):
        return (q - k < width) & (q >= k)

    capped = tessera.Variant(score=lambda s, b, h, q, k, cap: cap * tessera.tanh(s / cap), mask=tessera.masks.causal, cap=float)
    block_mask = create_block_mask(by_data, None, None, 128, 128, device=device).prepare(d, gradients=True)
    call = functools.partial
    return {
        PLAIN: attention,
        "causal": call(attention, causal=True),
        "return_lse": call(attention, return_lse=True),
        "deterministic": call(attention, deterministic=True),
        "window": call(attention, window=(width, 0)),
        "soft cap": call(attention, softcap=30.0),
        "ALiBi": call(attention, alibi=slopes),
        "ALiBi, learned": call(attention, alibi=learned),
        "bias": call(attention, bias=bias),
        "score_mod": call(attention, score_mod=score),
        "score_mod, new closure": call_new_closure,
        "score_mod, learned": call(attention, score_mod=score_learned),
        "mask_mod": call(attention, mask_mod=window),
        "mask_mod, by data": call(attention, mask_mod=by_data),
        "variant": call(attention, variant=capped, arguments={"cap": 30.0}),
        "block_mask": call(attention, block_mask=block_mask),
        "score_mod and block_mask": call(attention, score_mod=score, block_mask=block_mask),
        "fp8": attention_fp8,
        "fp8, causal": call(attention_fp8, causal=True),
    }


def list_peers(torch):
    """Those of others. Only cuDNN's backend is left to PyTorch's own function, for the whole process."""
    for name in ("flash", "mem_efficient", "math"):
        getattr(torch.backends.cuda, f"enable_{name}_sdp")(False)
    torch.backends.cuda.enable_cudnn_sdp(True)
    found = {"no kernel": functools.partial(make_empty(torch).apply), SDPA: torch.nn.functional.scaled_dot_product_attention}
    return {**found, **host.find_flash_attention()}


def make_empty(torch):
    """A function of autograd that computes nothing, of which everything is PyTorch's own."""

    class Empty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v):
            ctx.save_for_backward(q, k, v)
            return torch.empty_like(q)

        @staticmethod
        def backward(ctx, grad):
            return ctx.saved_tensors

    return Empty


def list_compiled(torch, device, d=64):
    """What torch.compile makes of ours, of PyTorch's own function and of flex_attention."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    own, peers = list_own(torch, device, d), list_peers(torch)
    found = {}
    for name, function in (("compiled", own[PLAIN]), ("compiled SDPA", peers[SDPA])):
        found[name] = torch.compile(wrap(function))
        found[f"{name}, {IN_GRAPHS}"] = begin_step(torch, torch.compile(wrap(function), mode=IN_GRAPHS))
    for name in ("causal", "score_mod", "block_mask"):
        found[f"compiled, {name}"] = torch.compile(wrap(own[name]))
    causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 128, 128, device=device)
    for backend in ("TRITON", "FLASH"):
        call = functools.partial(flex_attention, block_mask=causal, kernel_options={"BACKEND": backend})
        found[f"FlexAttention ({backend})"] = torch.compile(wrap(call))
    return found


def wrap(function):
    """The same function with a code of its own. Compiled code is kept by that, and looked through: functions without one would
    share it, and those behind the limit of recompilations would not be compiled."""
    names = {"function": function}
    exec("def call(q, k, v): return function(q, k, v)", names)
    return names["call"]


def begin_step(torch, function):
    """A function whose results live until its next call, as those of CUDA graphs do."""

    def call(*tensors):
        torch.compiler.cudagraph_mark_step_begin()
        return function(*tensors)

    return call


def has_gradients(name):
    """Whether backward passes of a call are timed. Those of a CUDA graph would be of results that later calls overwrite."""
    return not name.startswith("fp8") and not name.endswith(IN_GRAPHS)


def take_output(results):
    """Some return an LSE beside the output."""
    return results[0] if isinstance(results, (tuple, list)) else results


def keep_working(torch, functions, tensors):
    """The calls by name, (forward, with gradients): each after a first one, which may compile; the latter only where there is a
    backward pass. A line says what does not work, and why."""
    found = {}
    for name, function in functions.items():
        for wanted in (False, True) if has_gradients(name) else (False,):
            leaves = [tensor.clone().requires_grad_(wanted) for tensor in tensors]
            try:
                with torch.set_grad_enabled(wanted):
                    call = functools.partial(function, *leaves)
                    common.settle(call)
                    found[name, "with gradients" if wanted else "forward"] = call
                    if wanted:
                        found[name, "backward"], found[name, "gradients"] = make_backward(torch, call, leaves)
            except Exception as error:  # Packages of others refuse by errors of any kind.
                what, lines = "gradients" if wanted else "forward", str(error).strip().splitlines() or [""]
                print(f"{name}, {what}: left out: {type(error).__name__}: {lines[0][:160]}", flush=True)
                found.pop((name, "with gradients"), None)
    return found


def make_backward(torch, call, leaves):
    """The backward pass of a call by PyTorch's engine, and the last node of its graph alone."""
    results = call()
    out = take_output(results)
    grad, node = torch.randn_like(out), out.grad_fn
    run = functools.partial(torch.autograd.grad, out, leaves, grad, retain_graph=True)
    others = [None] * (len(results) - 1 if isinstance(results, (tuple, list)) and results[1].grad_fn is node else 0)
    # Nodes that are written in Python have their function under that name.
    alone = functools.partial(getattr(node, "apply", node), grad, *others)
    common.settle(run)
    alone()
    return run, alone


def time_batches(torch, calls, batches, launches, synchronize):
    """(microseconds of a call, of the loop beside it) of each batch, by the key of the call."""
    found, before = {key: [] for key in calls}, host.time_loop()
    for number in range(batches + 1):
        for key, call in calls.items():
            with torch.set_grad_enabled(key[1] == "with gradients"):
                start = time.perf_counter()
                for _ in range(launches):
                    call()
                taken = time.perf_counter() - start
            synchronize()
            behind = host.time_loop()
            if number:  # The first batch loads kernels.
                found[key].append((taken / launches * 1e6, max(before, behind)))
            before = behind
    return found


def run_process(options):
    """Inside a process: prints the batches of all calls as JSON, [name, what, batches] each."""
    import torch
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False  # A backward pass runs again.
    tensors = make_tensors(torch, "cuda", d=options.d)
    if options.inside == "compiled":
        functions = list_compiled(torch, "cuda", options.d)
    else:
        functions = {**list_own(torch, "cuda", options.d), **list_peers(torch)}
    calls = keep_working(torch, functions, tensors)
    gc.collect()
    gc.freeze()
    found = time_batches(torch, calls, options.batches, options.launches, torch.cuda.synchronize)
    print(json.dumps([[*key, batches] for key, batches in found.items()]))


def measure(options):
    """The records of all calls so far, after each of several processes."""
    found, script = {}, os.path.join(os.path.dirname(os.path.abspath(__file__)), "calls.py")
    for kind in ("eager", "compiled"):
        words = "--inside", kind, "--d", options.d, "--batches", options.batches, "--launches", options.launches
        for measured in host.run_processes(kind, options.processes, script, *words):
            for name, what, batches in measured:
                found.setdefault((name, what), []).extend(batches)
            yield to_records(found)


def to_records(found):
    """One record a call, with the times of its parts."""
    loops = [loop for batches in found.values() for _, loop in batches]
    records = {}
    for (name, what), batches in found.items():
        timing = host.to_record(name, what, batches, min(loops))
        records.setdefault(name, {"part": "host", "call": name, "timings": {}})["timings"][what] = timing
    return list(records.values())


def find_time(records, name, what):
    for record in records:
        if record["call"] == name and what in record["timings"]:
            return record["timings"][what]["microseconds"]
    return None


def list_goals(records):
    """(call, "forward" or "backward", what it is held against, how many times its time it may take, and takes)."""
    for what, goals in (("forward", FORWARD_GOALS), ("backward", GRADIENT_GOALS)):
        for name, (other, most) in goals.items():
            own, of_other = find_time(records, name, what), find_time(records, other, what)
            if own is not None and of_other:
                yield name, what, other, most, own / of_other


def to_rows(records):
    """A row of a table for each call."""
    reached = {(name, what): (f"{ratio:.2f} of {other}, at most {most:g}") for name, what, other, most, ratio in list_goals(records)}
    rows = []
    for record in records:
        times = {what: record["timings"].get(what, {}).get("microseconds") for what in KINDS}
        goals = {f"{what} to goal": reached.get((record["call"], what)) for what in ("forward", "backward")}
        rows.append({"call": record["call"], **times, **goals})
    return rows


def list_cliffs(records):
    """Goals that are missed."""
    for name, what, other, most, ratio in list_goals(records):
        if ratio > most:
            yield {
                "part": "host", "point": f"{name}, {what}", "ours": f"{ratio:.2f} of {other}", "goal": f"at most {most:g}",
                "cause": "the host",
            }  # fmt: skip
