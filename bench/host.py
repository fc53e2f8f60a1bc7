"""What a launch costs the host, in microseconds: through the Python package with tensors of PyTorch, and through C.

Attention forward with one query and one key, so that the host is what takes time. The launches of a batch go to a
stream one after another, too few to fill it; the device is waited for between batches, outside of the timed part.

Beside each batch a loop of arithmetic is timed: where other work has its share of a core, or the clock is low, the loop
and the launches take up to twice as long. The median over the batches counts whose loop was nearly as fast as the fastest
one. The share of these batches stands beside it, and so does the median over all.

Python and C launch the same bundles; the C program is bench/host.c. Measured too are
- what the driver alone takes for a kernel that does nothing, with as many bytes of parameters;
- what the choice among alternatives takes of a launch with a causal mask: remembered for its extents or computed anew, of
  one sequence and of shapes that are drawn;
- calls of attention from PyTorch, which allocate their results: tessera.torch, PyTorch's own, FlashAttention and
  FlexAttention, and the first two for tensors that require gradients.
The batches of the C program and of calls from PyTorch are those of several processes.

Bundles: those of test/gpu/build_bundles.py.
"""

import functools
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import common
from common import cases

DRIVER = "the driver alone"
# Packages whose flash_attn_func takes (B, S, H, D): FlashAttention-3, 4, and 2. The first one that is here is measured.
FLASH_ATTENTION = ("flash_attn_interface", "flash_attn.cute", "flash_attn")
# The choice among alternatives, and what bench/host.c takes for the lengths.
CHOICES = {"the choice, remembered": "1", "the choice, computed": "1000", "the choice, computed, drawn": "drawn"}
# What compiles in its process. Each comes by itself and last: calls with gradients were slower behind it, those of PyTorch too.
COMPILED = ("FlashAttention (flash_attn.cute)", "FlexAttention")
# What the C program measures.
IN_C = {DRIVER, *CHOICES, "C"}
# A batch counts where the loop beside it took at most so many times what the fastest one did.
QUIET = 1.25


def parse_arguments():
    parser = common.argument_parser(__doc__, gpu=False)
    parser.add_argument("--bundles", metavar="DIR", help="of test/gpu/build_bundles.py; otherwise it is run first")
    parser.add_argument("--d", type=common.numbers, default=(64, 128, 256), help="head dimensions")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--launches", type=int, default=200, help="of a batch")
    parser.add_argument("--processes", type=int, default=6, help="of the C program and of PyTorch, which share the batches")
    parser.add_argument("--torch", type=int, metavar="D", help="print the batches of calls from PyTorch alone, as JSON")
    program = os.path.join(common.ROOT, "build", "bin", "bench-host")
    parser.add_argument("--program", default=program, metavar="PATH", help="the C program (default: %(default)s)")
    return parser.parse_args()


def time_loop():
    """Microseconds of a loop that is the same each time."""
    start, total = time.perf_counter(), 0
    for number in range(2000):
        total += number
    return (time.perf_counter() - start) * 1e6


def time_batches(calls, options):
    """(microseconds of a call, of the loop beside it) for each batch, by the name of the call: batches of the calls in turns.
    Autograd is on where the name says that there are gradients."""
    import torch

    found, before = {name: [] for name in calls}, time_loop()
    for _ in range(options.batches + 1):
        for name, call in calls.items():
            with torch.set_grad_enabled("gradients" in name):
                start = time.perf_counter()
                for _ in range(options.launches):
                    call()
                taken = time.perf_counter() - start
            torch.cuda.synchronize()
            behind = time_loop()
            found[name].append((taken / options.launches * 1e6, max(before, behind)))
            before = behind
    return {name: batches[1:] for name, batches in found.items()}  # The first batch loads the kernel.


def through_python(kernel, d, options):
    import torch

    q, k, v, o = (torch.zeros((1, 1, 1, d), device="cuda", dtype=torch.bfloat16) for _ in range(4))
    lse = torch.empty((1, 1, 1), device="cuda")
    return time_batches({"Python": lambda: kernel(q, k, v, o, lse, 1.0)}, options)["Python"]


def find_flash_attention():
    """FlashAttention's function by a name that says which package it is of; nothing where there is none."""
    for package in FLASH_ATTENTION:
        try:
            return {f"FlashAttention ({package})": importlib.import_module(package).flash_attn_func}
        except (ImportError, AttributeError):  # FlashAttention-4 alone makes flash_attn a namespace without the function.
            continue
    return {}


def list_peers():
    """Functions of others that compute attention from PyTorch and are here, by name."""
    import torch

    found = {"PyTorch's own": torch.nn.functional.scaled_dot_product_attention, **find_flash_attention()}
    try:
        from torch.nn.attention.flex_attention import flex_attention
    except ImportError:
        pass
    else:
        found["FlexAttention"] = torch.compile(flex_attention)
    return found


def keep_working(peers, *tensors):
    """The peers that take the tensors, each after a first call, which may compile. A line says why another one does not."""
    found = {}
    for name, peer in peers.items():
        try:
            peer(*tensors)
        except Exception as error:  # Packages of others refuse by errors of any kind.
            lines = str(error).strip().splitlines() or [""]
            print(f"{name} is left out: {type(error).__name__}: {lines[0]}", flush=True)
        else:
            found[name] = peer
    return found


def run_processes(name, count, script, *words):
    """What each of several processes of a script prints last, as JSON. Its other lines are printed once, and why it ends if it fails."""
    told = set()
    for _ in range(count):
        process = subprocess.run([sys.executable, script, *map(str, words)], capture_output=True, text=True)
        if process.returncode:
            print(f"{name}: {process.stderr.strip().splitlines()[-1:] or process.returncode}", flush=True)
            continue
        *lines, measured = process.stdout.splitlines()
        for line in lines:
            if line not in told:
                print(line, flush=True)
                told.add(line)
        yield json.loads(measured)


def through_torch_processes(d, options):
    """Of each function that computes attention from PyTorch and is here, by its name, in several processes."""
    found, batches = {}, -(-options.batches // options.processes)
    words = "--torch", d, "--batches", batches, "--launches", options.launches
    for measured in run_processes("PyTorch", options.processes, __file__, *words):
        for name, times in measured.items():
            found.setdefault(name, []).extend(times)
    return found


def through_torch(d, options):
    """The same in this process."""
    import torch

    from tessera.torch import attention

    q, k, v = (torch.zeros((1, 1, 1, d), device="cuda", dtype=torch.bfloat16) for _ in range(3))
    # What autograd keeps of a call goes with its result.
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]

    peers = list_peers()
    compiled = {name: peers.pop(name) for name in COMPILED if name in peers}
    peers = keep_working(peers, q, k, v)
    calls = {
        "tessera.torch": attention,
        "tessera.torch, return_lse": lambda *tensors: attention(*tensors, return_lse=True),
        **peers,
    }
    calls = {name: functools.partial(call, q, k, v) for name, call in calls.items()}
    for name, call in (("tessera.torch", attention), ("PyTorch's own", peers["PyTorch's own"])):
        calls[f"{name}, with gradients"] = functools.partial(call, *leaves)
    found = time_batches(calls, options)
    for name, call in compiled.items():
        with torch.no_grad():  # As in the batches: the mode is part of what FlexAttention compiles for.
            working = keep_working({name: call}, q, k, v)
        found |= time_batches({name: functools.partial(call, q, k, v) for name, call in working.items()}, options)
    return found


def through_c(options, *what):
    """The same of the C program, None after a line that says why there is nothing."""
    batches = -(-options.batches // options.processes)
    found = []
    for _ in range(options.processes):
        command = [options.program, *what, str(batches), str(options.launches)]
        try:
            process = subprocess.run(command, capture_output=True, text=True)
        except OSError as error:
            print(f"C: {error}", flush=True)
            return None
        if process.returncode:
            print(f"C: {process.stderr.strip() or f'exits with {process.returncode}'}", flush=True)
            return None
        found += [tuple(map(float, line.split())) for line in process.stdout.splitlines()]
    return found


def to_record(through, kernel, batches, fastest):
    """A record of the microseconds of the batches whose loop is not much slower than the fastest one; of all where there are none."""
    all_of_them = [taken for taken, _ in batches]
    quiet = [taken for taken, loop in batches if loop <= QUIET * fastest]
    counted = quiet or all_of_them
    return {
        "through": through,
        "kernel": kernel,
        "microseconds": round(statistics.median(counted), 2),
        "min": round(min(counted), 2),
        "90%": round(statistics.quantiles(counted, n=10, method="inclusive")[-1], 2) if len(counted) > 1 else round(counted[0], 2),
        "quiet": f"{len(quiet) / len(batches):.0%}",
        "of all": round(statistics.median(all_of_them), 2),
    }


def to_records(found):
    """The records of what was measured, each (through, kernel, batches). Loops in C and in Python differ."""
    loops = {True: [], False: []}
    for through, _, batches in found:
        loops[through in IN_C] += [loop for _, loop in batches]
    records = [to_record(through, kernel, batches, min(loops[through in IN_C])) for through, kernel, batches in found]
    driver = next((record["microseconds"] for record in records if record["through"] == DRIVER), None)
    for record in records:
        if driver is not None and record["through"] not in (DRIVER, *CHOICES):
            record["above the driver"] = round(record["microseconds"] - driver, 2)
    return records


def open_bundles(options, configurations, directory):
    """The bundles of --bundles, or those of the configurations, built in a directory."""
    if options.bundles:
        return common.kernels.open_source(options.bundles)
    script, listed = os.path.join(common.ROOT, "test", "gpu", "build_bundles.py"), os.path.join(directory, "list.json")
    with open(listed, "w") as file:
        json.dump(list(configurations), file)
    subprocess.run([sys.executable, script, "--out", directory, "--groups=", "--extra", listed], check=True)
    return common.kernels.open_source(directory)


def measure_driver(options):
    batches = through_c(options, "--driver")
    return [(DRIVER, "empty", batches)] if batches else []


def measure_choice(source, configuration, options):
    """What the choice among alternatives takes, whose extents are known or come for the first time."""
    if not common.load_kernel(source, configuration):
        return []
    path, found = source.path(configuration), []
    kernel = f"{configuration['kernel']}, d = {configuration['parameters']['D']}"
    for through, lengths in CHOICES.items():
        batches = through_c(options, "--choice", path, lengths)
        found += [(through, kernel, batches)] if batches else []
    return found


def measure_launches(source, configuration, d, options):
    """What launches through each interface take."""
    kernel = common.load_kernel(source, configuration)
    if not kernel:
        return []
    found = {
        "Python": through_python(kernel, d, options),
        "C": through_c(options, source.path(configuration), str(d)),
        **through_torch_processes(d, options),
    }
    return [(through, f"{configuration['kernel']}, d = {d}", batches) for through, batches in found.items() if batches]


def main():
    options = parse_arguments()
    if options.torch:
        print(json.dumps(through_torch(options.torch, options)))
        return
    wanted = {d: cases.attention("bf16", d, d, False) for d in options.d}
    chosen = [
        cases.configuration(cases.ATTENTION, {"T": "bf16", "D": d, "CAUSAL": True}, alternatives=True) for d in wanted
    ]
    method = (
        "Host time of a launch of attention forward with one query and one key, microseconds: medians of "
        f"the quiet ones of {options.batches} batches of {options.launches} launches, those of C, of PyTorch and of the driver "
        f"alone in {options.processes} processes. A batch is quiet if a loop of arithmetic beside it took at most {QUIET} times "
        "what the fastest loop did."
    )
    with tempfile.TemporaryDirectory() as directory:
        source = open_bundles(options, (*wanted.values(), *chosen), directory)
        results = common.Results(options, "host", {**common.describe_gpu(), **common.describe_cpu()}, method)
        found = measure_driver(options)
        for configuration in chosen:
            found += measure_choice(source, configuration, options)
        for d, configuration in wanted.items():
            found += measure_launches(source, configuration, d, options)
        if found:
            results.add(to_records(found), lambda record: record)
        results.finish()


if __name__ == "__main__":
    main()
