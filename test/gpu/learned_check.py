"""Checks on the GPU the gradients of what scores ask for, for each way in which it is looked at, against autograd in f64. Errors
are at most twice those of PyTorch in the same type, plus two units of the last place of the largest element.

    learned_check.py --write DIR          write the sources, and compile them with `tessera` where there is no GPU
    learned_check.py --bundles DIR        check them
    learned_check.py --bundles DIR --time how long gradients take with and without what is learned

What must not be read holds NaN before, and so do results and the workspace; sums begin at 0.
"""

import argparse
import itertools
import os
import subprocess
import sys

import kernels  # noqa: F401 (finds the package)

import tessera
from tessera import masks

BATCH, TABLE = 2, 129
FORMS = {"any": False, "fixed": True}
DIMS = (64, 128)
LENGTHS = ((1, 1), (63, 113), (203, 203), (203, 1023), (1023, 203), (1500, 2100))
HEADS = ((3, 1), (3, 3))

# (score, mask, the views)
VARIANTS = {
    "slopes": (lambda s, b, h, q, k, slopes: s - slopes[h] * abs(q - k), masks.causal, {"slopes": ("H",)}),
    "cap": (lambda s, b, h, q, k, cap: (s / cap[0]).tanh() * cap[0], None, {"cap": (1,)}),
    "rows": (lambda s, b, h, q, k, rows: s * rows[h, q], masks.causal, {"rows": ("H", "SQ")}),
    "keys": (lambda s, b, h, q, k, keys: s + keys[b, k], None, {"keys": ("B", "SK")}),
    "bias": (lambda s, b, h, q, k, bias: s + bias[h, q, k], None, {"bias": ("H", "SQ", "SK")}),
    "pairs": (lambda s, b, h, q, k, pairs: s + pairs[b, h, q, k], masks.causal, {"pairs": ("B", "H", "SQ", "SK")}),
    "table": (lambda s, b, h, q, k, table: s + table[h, (q - k).clamp(-64, 64) + 64], None, {"table": ("H", TABLE)}),
    "both": (lambda s, b, h, q, k, slopes, gate: s / gate[b, k] - slopes[h] * abs(q - k), None,
             {"slopes": ("H",), "gate": ("B", "SK")}),
}  # fmt: skip
# Whose sums have one order in the fixed form.
EXACT = ("pairs",)


def make_variant(name):
    score, mask, views = VARIANTS[name]
    return tessera.Variant(score=score, mask=mask, **views)


def path_of(directory, name, form, d, learned=True):
    return os.path.join(directory, f"{name}-{form}-{d}{'' if learned else '-plain'}.bundle")


def write(directory):
    """Compiles all; what no schedule fits is left out and named."""
    os.makedirs(directory, exist_ok=True)
    for name, (form, fixed), d, learned in itertools.product(VARIANTS, FORMS.items(), DIMS, (True, False)):
        variant, path = make_variant(name), path_of(directory, name, form, d, learned)
        source = path.replace(".bundle", ".tile")
        with open(source, "w") as file:
            file.write(variant.write_gradients(fixed, tuple(VARIANTS[name][2]) if learned else ()))
        command = ["tessera", "compile", source, "-D", f"D={d}", "-o", path]
        run = subprocess.run(command, capture_output=True, text=True)
        reason = next((line for line in run.stderr.splitlines() if "error" in line), "")
        print(f"{'ok  ' if run.returncode == 0 else 'none'} {os.path.basename(path)} {reason}", flush=True)


def draw(shape):
    """About 1, in rows of multiples of 16 bytes, with NaN between them."""
    import torch

    padded = torch.full((*shape[:-1], -(-shape[-1] // 4) * 4), float("nan"), device="cuda")
    view = padded[..., : shape[-1]]
    view.copy_(1 + torch.randn(shape, device="cuda").clamp(-1, 1) / 4)
    return view


def attend(q, k, v, scale, name, views):
    """O and LSE of [B, H, S, D] in the type of q; rows that see nothing 0 and -inf."""
    import torch

    score, mask, _ = VARIANTS[name]
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    (batch, heads, sq, _), sk = q.shape, k.shape[2]
    place = [torch.arange(n, device="cuda").view(*(-1 if i == dim else 1 for i in range(4))) for dim, n in
             enumerate((batch, heads, sq, sk))]  # fmt: skip
    s = score(q @ k.mT * scale, *place, **{key: view.to(q.dtype) for key, view in views.items()})
    if mask is not None:
        s = s.masked_fill(place[3] > place[2] + sk - sq, -torch.inf)
    return torch.softmax(s, 3).nan_to_num() @ v, torch.logsumexp(s, 3)


def differentiate(tensors, views, scale, name, do, dlse):
    """Gradients in the type of the tensors."""
    import torch

    leaves = [x.detach().requires_grad_() for x in tensors]
    learned = {key: view.detach().to(tensors[0].dtype).requires_grad_() for key, view in views.items()}
    o, lse = attend(*leaves, scale, name, learned)
    lse = torch.where(lse.isinf(), 0, lse)
    loss = (o * do.to(o.dtype)).sum() + (lse * dlse.to(lse.dtype)).sum()
    found = torch.autograd.grad(loss, [*leaves, *learned.values()])
    return dict(zip(("dq", "dk", "dv", *(f"d{key}" for key in views)), found))


def make_case(name, d, shape):
    import torch

    heads, kv_heads, sq, sk = shape
    torch.manual_seed(sq * 1000 + sk)
    extents = {"B": BATCH, "H": heads, "SQ": sq, "SK": sk}
    tensors = [
        torch.randn(BATCH, n, length, d, device="cuda").bfloat16()
        for n, length in ((heads, sq), (kv_heads, sk), (kv_heads, sk))
    ]
    views = {key: draw([extents.get(dim, dim) for dim in dims]) for key, dims in VARIANTS[name][2].items()}
    do = torch.randn(BATCH, heads, sq, d, device="cuda").bfloat16()
    dlse = torch.randn(BATCH, heads, sq, device="cuda")
    return tensors, views, do, dlse


def launch(kernel, name, tensors, views, scale, do, learned=True):
    """(the results by name, a function that launches again)."""
    import torch

    o, lse = attend(*(x.double() for x in tensors), scale, name, views)
    results = {key: torch.full_like(x, float("nan")) for key, x in zip(("dq", "dk", "dv"), tensors)}
    if learned:
        for key, view in views.items():
            results[f"d{key}"] = torch.zeros_like(draw(list(view.shape)))
    arguments = dict(zip("qkv", tensors), o=o.bfloat16(), do=do, lse=lse.float(), scale=scale, **views, **results)
    arguments = {key: value for key, value in arguments.items() if key in kernel.names}
    size = kernel.workspace_bytes(**arguments)

    def run():
        workspace = torch.full((size // 4 + 64,), float("nan"), device="cuda")
        kernel(**arguments, workspace=workspace)

    run()
    return results, run


def load(path):
    return tessera.Bundle(path).kernel("attention_gradients")


def check(kernel, name, form, d, shape):
    import torch

    tensors, views, do, dlse = make_case(name, d, shape)
    dlse.zero_()
    scale = d**-0.5
    found, _ = launch(kernel, name, tensors, views, scale, do)
    again, _ = launch(kernel, name, tensors, views, scale, do)
    exact = differentiate([x.double() for x in tensors], views, scale, name, do, dlse)
    rounded = differentiate(tensors, views, scale, name, do, dlse)
    errors, holds = [], True
    for key, want in exact.items():
        error, allowed = ((x[key].double() - want).abs().max().item() for x in (found, rounded))
        # Terms of about 10 that cancel in f64, as those of a single key, leave what f32 rounds.
        limit = 2 * (0 if allowed != allowed else allowed) + 2 * 2**-8 * want.abs().max().item() + 2**-18
        holds &= error <= limit
        errors.append(f"{key} {error:.1e} ({limit:.1e})")
        if form == "fixed" and (key in ("dq", "dk", "dv") or name in EXACT) and not torch.equal(found[key], again[key]):
            holds = False
            errors.append("differs from run to run")
    print(f"{'ok  ' if holds else 'FAIL'} {name} {form} d={d} {shape}: {', '.join(errors)}", flush=True)
    return holds


def measure(directory):
    """Milliseconds of one call, in turns."""
    import torch

    for name, form, d in itertools.product(VARIANTS, FORMS, DIMS):
        runs = []
        for learned in (True, False):
            path = path_of(directory, name, form, d, learned)
            if os.path.exists(path):
                tensors, views, do, _ = make_case(name, d, (2048 // d, 2048 // d, 2048, 2048))
                runs.append(launch(load(path), name, tensors, views, d**-0.5, do, learned)[1])
        if len(runs) != 2:
            continue
        times = [[], []]
        for _, i in itertools.product(range(20), (0, 1)):
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            runs[i]()
            events[1].record()
            events[1].synchronize()
            times[i].append(events[0].elapsed_time(events[1]))
        with_it, without = (sorted(part)[len(part) // 2] for part in times)
        print(f"{name} {form} d={d}: {with_it:.3f} ms with, {without:.3f} ms without what is learned", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="DIR")
    parser.add_argument("--bundles", metavar="DIR")
    parser.add_argument("--time", action="store_true")
    options = parser.parse_args()
    if options.write:
        return write(options.write)
    if options.time:
        return measure(options.bundles)
    passed = failed = 0
    for name, form, d in itertools.product(VARIANTS, FORMS, DIMS):
        path = path_of(options.bundles, name, form, d)
        if not os.path.exists(path):
            print(f"none {name} {form} d={d}")
            continue
        kernel = load(path)
        for (sq, sk), (heads, kv_heads) in itertools.product(LENGTHS, HEADS):
            holds = check(kernel, name, form, d, (heads, kv_heads, sq, sk))
            passed, failed = passed + holds, failed + (not holds)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
