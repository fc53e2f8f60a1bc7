#!/usr/bin/env python3
"""Calls of tessera.torch in random order on the GPU, through what was prepared for other ones: on several streams, from several
threads, in captured graphs, with memory freed in between. Each agrees with operations of torch in f32, or is refused.

    python3 test/gpu/random_calls.py [--calls 1000] [--seed 1]

Needs libtessera and ptxas, as each kernel is compiled when it is first called. The last line reads "N passed, N failed".
"""

import argparse
import random
import threading

import torch

import checks
from kernels import tessera  # puts the package on the path
from tessera.torch import attention, attention_fp8, create_block_mask

DEVICE = "cuda"
# Batch, heads, key heads, queries, keys, head dimension and that of values.
SHAPES = ((1, 2, 2, 96, 96, 64, 64), (2, 4, 2, 65, 130, 64, 64), (1, 2, 1, 130, 65, 128, 128), (1, 4, 4, 300, 300, 64, 64))
# The most that the norm of an error may be of the norm of what is expected: outputs, gradients, numbers of 8 bits. Sums that are
# learned may cancel: of the sum of their terms without signs.
OUTPUT, GRADIENT, BYTES, TERMS = 8e-3, 2e-2, 1e-1, 1e-2


def capped(s, b, h, q, k, cap, slopes):
    return cap * tessera.tanh(s / cap) - slopes[h] * k


CAPPED = tessera.Variant(score=capped, mask=lambda b, h, q, k: q >= k, cap=float, slopes=("H",))


class Call:
    """One that is drawn: attention with `options`, which computes as `score` and `mask` say, and a sink for each head or None."""

    def __init__(self, drawn, masks):
        self.random, self.masks = drawn, masks
        batch, heads, kv_heads, rows, keys, d, dv = self.shape = drawn.choice(SHAPES)
        layout = drawn.randrange(3)
        self.q = self.draw_tensor(layout, batch, heads, rows, d)
        self.k, self.v = (self.draw_tensor(layout, batch, kv_heads, keys, width) for width in (d, dv))
        self.scale, self.wanted = drawn.uniform(0.05, 0.2), drawn.random() < 0.4
        self.function, self.options, self.score, self.mask, self.sinks, self.learned = attention, {}, None, None, None, []
        self.factor = lambda b, h, q, k: 1  # By which the learned number of a head is multiplied in a score.
        kinds = [name for name in dir(self) if name.startswith("draw_option_")]
        getattr(self, drawn.choice(kinds))(heads, rows, keys)
        self.is_refused = drawn.random() < 0.05
        if self.is_refused:  # It begins amid 16 bytes, where the same layout does not.
            self.k = torch.empty(self.k.numel() + 4, dtype=self.k.dtype, device=DEVICE)[4:].view(self.k.shape).copy_(self.k)
        for tensor in (self.q, self.k, self.v) if self.wanted else ():
            if drawn.random() < 0.8:
                tensor.requires_grad_()

    def draw_tensor(self, layout, batch, heads, length, width):
        """[B, H, S, D] in the layout of a dense tensor, one with rows of all heads, or a slice of a wider one."""
        if layout == 1:
            return self.draw_normal(batch, length, heads, width).transpose(1, 2)
        return self.draw_normal(batch, heads, length, width + 8 * (layout == 2))[..., :width]

    def draw_normal(self, *shape, dtype=torch.bfloat16):
        return torch.randn(shape, device=DEVICE).to(dtype)

    def draw_heads(self, heads, learned=False):
        numbers = torch.rand(heads, device=DEVICE) * 0.1
        if learned and self.wanted:
            self.learned.append(numbers.requires_grad_())
        return numbers

    def draw_option_nothing(self, *_):
        self.options = {"deterministic": self.random.random() < 0.5}

    def draw_option_causal(self, heads, rows, keys):
        self.options, self.mask = {"causal": True}, lambda b, h, q, k: k - q <= keys - rows

    def draw_option_window(self, heads, rows, keys):
        left, cap = self.random.randrange(8, 64), self.random.uniform(1, 4)
        self.options = {"window": (left, 5), "softcap": cap}
        self.score = lambda s, b, h, q, k: cap * torch.tanh(s / cap)
        self.mask = lambda b, h, q, k: (k - q <= keys - rows + 5) & (q + keys - rows - k <= left)

    def draw_option_slopes(self, heads, rows, keys):
        slopes = self.draw_heads(heads, learned=True)
        self.factor = lambda b, h, q, k: abs(q + keys - rows - k)
        self.options, self.score = {"alibi": slopes}, lambda s, b, h, q, k: s - slopes[h] * self.factor(b, h, q, k)

    def draw_option_bias(self, heads, rows, keys):
        shape = self.random.choice(((rows, keys + -keys % 8), (heads, 1, keys + -keys % 8)))
        bias = self.draw_normal(*shape, dtype=self.random.choice((torch.float32, torch.bfloat16)))[..., :keys]
        values = bias.float().expand(heads, rows, keys)
        self.options, self.score = {"bias": bias}, lambda s, b, h, q, k: s + values[h, q, k]

    def draw_option_sinks(self, heads, *_):
        self.sinks = self.draw_heads(heads, learned=True)
        self.options = {"sinks": self.sinks}

    def draw_option_score(self, heads, *_):
        slopes, factor = self.draw_heads(heads), self.random.uniform(1, 2)
        self.score = lambda s, b, h, q, k: s * factor - slopes[h] * (q - k)
        self.options = {"score_mod": self.score}

    def draw_option_learned(self, heads, *_):
        table, most = self.draw_heads(heads, learned=True), self.random.randrange(200, 400)
        self.factor = lambda b, h, q, k: q - k
        self.score, self.mask = (lambda s, b, h, q, k: s - table[h] * (q - k)), lambda b, h, q, k: q + most >= k
        self.options = {"score_mod": self.score, "mask_mod": self.mask}

    def draw_option_documents(self, heads, rows, keys):
        numbers = torch.arange(512, device=DEVICE, dtype=torch.int32) // self.random.choice((20, 50))
        self.mask = lambda b, h, q, k: numbers[q] == numbers[k]
        self.options = {"mask_mod": self.mask}

    def draw_option_block_mask(self, heads, rows, keys):
        """Lists that outlive the call."""
        if (rows, keys) not in self.masks:
            numbers = torch.arange(512, device=DEVICE, dtype=torch.int32) // 40

            def documents(b, h, q, k):
                return numbers[q] == numbers[k]

            self.masks[rows, keys] = create_block_mask(documents, None, None, rows, keys, device=DEVICE)
        self.options = {"block_mask": self.masks[rows, keys]}
        self.mask = self.options["block_mask"].mask_mod

    def draw_option_variant(self, heads, *_):
        slopes, cap = self.draw_heads(heads), self.random.uniform(1, 4)
        self.options = {"variant": CAPPED, "arguments": {"cap": cap, "slopes": slopes}}
        self.score = lambda s, b, h, q, k: cap * torch.tanh(s / cap) - slopes[h] * k
        self.mask = lambda b, h, q, k: q >= k

    def draw_option_bytes(self, heads, rows, keys):
        self.function, self.wanted = attention_fp8, False
        if self.random.random() < 0.5:
            self.draw_option_causal(heads, rows, keys)

    def run(self):
        """Output, LSE, and gradients of what requires some, by one gradient of the output."""
        results = self.function(self.q, self.k, self.v, scale=self.scale, return_lse=True, **self.options)
        return [*results, *self.differentiate(results[0])]

    def differentiate(self, out, *others):
        leaves = [tensor for tensor in (self.q, self.k, self.v, *self.learned) if tensor.requires_grad]
        return torch.autograd.grad(out, (*leaves, *others), self.weigh(out)) if leaves else []

    def weigh(self, out):
        """A gradient of the output, the same for each that has its shape."""
        numbers = torch.arange(out.numel(), device=DEVICE) % 7 - 3
        return numbers.view(out.shape).to(out.dtype)

    def compute(self):
        """The same by operations of torch in f32."""
        batch, heads, kv_heads, rows, keys, *_ = self.shape
        q, k, v = (tensor.float() for tensor in (self.q, self.k, self.v))
        k, v = (tensor.repeat_interleave(heads // kv_heads, 1) for tensor in (k, v))
        scores = q @ k.mT * self.scale
        extents = (batch, 1, 1, 1), (heads, 1, 1), (rows, 1), (keys,)
        places = [torch.arange(extent[0], device=DEVICE).view(extent) for extent in extents]
        if self.score is not None:
            scores = self.score(scores, *places)
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask(*places), float("-inf"))
        if self.sinks is not None:
            scores = torch.cat([scores, self.sinks.view(-1, 1, 1).expand(batch, heads, rows, 1)], -1)
        # Rows that see nothing have no gradients either.
        largest = scores.detach().amax(-1, keepdim=True).clamp(min=-1e30)
        weights = (scores - largest).exp()
        total = weights.sum(-1, keepdim=True)
        lse, out = (total.log() + largest)[..., 0], (weights / total.clamp(min=1e-30))[..., :keys] @ v
        if not self.learned:
            return [out, lse, *self.differentiate(out)]
        *gradients, of_scores = self.differentiate(out, scores)
        terms = of_scores[..., :keys] * self.factor(*places) if self.sinks is None else of_scores[..., keys:]
        self.terms = terms.abs().sum((0, 2, 3)).norm().item()
        return [out, lse, *gradients]

    def check(self, results):
        for i, (found, expected) in enumerate(zip(results, self.compute(), strict=True)):
            found, expected = found.detach().float(), expected.detach().float()
            if i == 1:
                found, expected = (lse.masked_fill(lse.isinf(), -1e3) for lse in (found, expected))
            error, norm = (found - expected).norm().item(), expected.norm().item()
            most = norm * (BYTES if self.function is attention_fp8 else OUTPUT if i < 2 else GRADIENT)
            if self.learned and i == len(results) - 1:
                most = TERMS * self.terms
            if not error <= most + 1e-3:
                raise AssertionError(f"{self.describe()}: result {i} is wrong by {error:.3g} of {norm:.3g}")

    def describe(self):
        return f"{self.function.__name__} {self.shape} {list(self.options)} {'with gradients' if self.wanted else ''}"

    def run_checked(self):
        """Makes the call, which is right or refused; whether it was refused."""
        with torch.set_grad_enabled(self.wanted):
            if not self.is_refused:
                self.check(self.run())
                return False
            try:
                self.run()
            except ValueError as error:
                if "'k'" not in str(error):
                    raise
                return True
            raise AssertionError(f"{self.describe()}: took rows that begin amid 16 bytes")


def check_streams(options):
    """One after another, on one of several streams."""
    drawn, masks, refused = random.Random(options.seed), {}, 0
    streams = [torch.cuda.default_stream(), *(torch.cuda.Stream() for _ in range(3))]
    for number in range(options.calls):
        with torch.cuda.stream(drawn.choice(streams)):
            refused += Call(drawn, masks).run_checked()
            torch.cuda.current_stream().synchronize()
        if number % 50 == 0:
            torch.cuda.empty_cache()
    if not 0 < refused < options.calls // 5:
        raise AssertionError(f"{refused} of {options.calls} calls were refused")


def check_threads(options):
    """At the same time, each thread on a stream of its own."""
    failures = []

    def run(seed):
        drawn, masks = random.Random(seed), {}
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(options.calls // 8):
                    Call(drawn, masks).run_checked()
        except Exception as error:  # Raised below.
            failures.append(error)

    threads = [threading.Thread(target=run, args=(options.seed + number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def check_captures(options):
    """In graphs, which compute with what their tensors hold when they run."""
    drawn, masks = random.Random(options.seed), {}
    for _ in range(options.calls // 10):
        call = Call(drawn, masks)
        if call.is_refused:
            continue
        with torch.set_grad_enabled(call.wanted):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                call.run()  # It compiles, and makes lists.
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                results = call.run()
            with torch.no_grad():
                for tensor in (call.q, call.k, call.v):
                    tensor.copy_(torch.randn_like(tensor))
            # Calls in between take memory of their own.
            attention(*(torch.randn_like(call.q) for _ in range(3)))
            graph.replay()
            torch.cuda.synchronize()
            call.check(results)
        del graph, results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    checks.run([check_streams, check_threads, check_captures], parser.parse_args())


if __name__ == "__main__":
    main()
