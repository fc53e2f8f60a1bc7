"""What a launch costs the host, in microseconds: through the Python package with tensors of PyTorch, and through C.

Attention forward with one query and one key, so that the host is what takes time. The launches of a batch go to a
stream one after another, too few to fill it; the device is waited for between batches, outside of the timed part. The
median over the batches counts. Both interfaces launch the same bundles; the C program is bench/host.c. Beside them
stands what the driver alone takes for a kernel that does nothing, with as many bytes of parameters, what the choice among
alternatives takes of a launch with a causal mask, remembered for its extents or computed anew, of one sequence and of shapes
that are drawn, and what calls of attention take from PyTorch,
which allocate their results: tessera.torch, PyTorch's own, FlashAttention and FlexAttention, and the first two for tensors
that require gradients. A process is faster or slower than another one by up to a half for as long as it runs, so the
batches of the C program and of calls from PyTorch are those of several.
Bundles: those of test/gpu/build_bundles.py.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import common
from common import cases


def parse_arguments():
    parser = common.argument_parser(__doc__, gpu=False)
    parser.add_argument("--bundles", metavar="DIR", help="of test/gpu/build_bundles.py; otherwise it is run first")
    parser.add_argument("--d", default="64,128,256", help="head dimensions")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--launches", type=int, default=200, help="of a batch")
    parser.add_argument("--processes", type=int, default=6, help="of the C program and of PyTorch, which share the batches")
    parser.add_argument("--torch", type=int, metavar="D", help="print the batches of calls from PyTorch alone, as JSON")
    program = os.path.join(common.ROOT, "build", "bin", "bench-host")
    parser.add_argument("--program", default=program, metavar="PATH", help="the C program (default: %(default)s)")
    return parser.parse_args()


def time_batches(call, options):
    """Microseconds of a call, for each batch."""
    import torch

    found = []
    for _ in range(options.batches + 1):
        start = time.perf_counter()
        for _ in range(options.launches):
            call()
        taken = time.perf_counter() - start
        torch.cuda.synchronize()
        found.append(taken / options.launches * 1e6)
    return found[1:]  # The first batch loads the kernel.


def through_python(kernel, d, options):
    import torch

    q, k, v, o = (torch.zeros((1, 1, 1, d), device="cuda", dtype=torch.bfloat16) for _ in range(4))
    lse = torch.empty((1, 1, 1), device="cuda")
    return time_batches(lambda: kernel(q, k, v, o, lse, 1.0), options)


def list_peers():
    """Functions of others that compute attention from PyTorch and are here, by name."""
    import torch

    found = {"PyTorch's own": torch.nn.functional.scaled_dot_product_attention}
    try:
        from flash_attn import flash_attn_func
    except ImportError:
        pass
    else:
        found["FlashAttention"] = flash_attn_func
    try:
        from torch.nn.attention.flex_attention import flex_attention
    except ImportError:
        pass
    else:
        found["FlexAttention"] = torch.compile(flex_attention)
    return found


def through_torch_processes(d, options):
    """Of each function that computes attention from PyTorch and is here, by its name, in several processes."""
    found = {}
    for _ in range(options.processes):
        batches = -(-options.batches // options.processes)
        command = [sys.executable, __file__, "--torch", str(d), "--batches", str(batches), "--launches", str(options.launches)]
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            print(f"PyTorch: {process.stderr.strip().splitlines()[-1:] or process.returncode}", flush=True)
            continue
        for name, times in json.loads(process.stdout.splitlines()[-1]).items():
            found.setdefault(name, []).extend(times)
    return found


def through_torch(d, options):
    """The same in this process."""
    import torch

    from tessera.torch import attention

    q, k, v = (torch.zeros((1, 1, 1, d), device="cuda", dtype=torch.bfloat16) for _ in range(3))
    calls = {
        "tessera.torch": attention,
        "tessera.torch, return_lse": lambda *tensors: attention(*tensors, return_lse=True),
        **list_peers(),
    }
    # Last what compiles: calls with gradients were slower behind it, those of PyTorch too.
    compiled = {name: calls.pop(name) for name in ("FlexAttention",) if name in calls}
    found = {}

    def measure(calls):
        for name, call in calls.items():
            with torch.no_grad():
                found[name] = time_batches(lambda call=call: call(q, k, v), options)

    measure(calls)
    # What autograd keeps of a call goes with its result.
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    for name in ("tessera.torch", "PyTorch's own"):
        found[f"{name}, with gradients"] = time_batches(lambda call=calls[name]: call(*leaves), options)
    measure(compiled)
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
        found += [float(line) for line in process.stdout.split()]
    return found


def to_record(through, kernel, batches):
    """A record of the microseconds of all batches."""
    return {
        "through": through,
        "kernel": kernel,
        "microseconds": round(statistics.median(batches), 2),
        "min": round(min(batches), 2),
        "90%": round(statistics.quantiles(batches, n=10)[-1], 2),
    }


def open_bundles(options, configurations, directory):
    """The bundles of --bundles, or those of the configurations, built in a directory."""
    if options.bundles:
        return common.kernels.open_source(options.bundles)
    script, listed = os.path.join(common.ROOT, "test", "gpu", "build_bundles.py"), os.path.join(directory, "list.json")
    with open(listed, "w") as file:
        json.dump(list(configurations), file)
    subprocess.run([sys.executable, script, "--out", directory, "--groups=", "--extra", listed], check=True)
    return common.kernels.open_source(directory)


def measure_choice(source, configuration, options):
    """Records of the choice among alternatives, whose extents are known or come for the first time."""
    if not common.load_kernel(source, configuration):
        return []
    path, found = source.path(configuration), []
    kernel = f"{configuration['kernel']}, d = {configuration['parameters']['D']}"
    for name, lengths in (("remembered", "1"), ("computed", "1000"), ("computed, drawn", "drawn")):
        batches = through_c(options, "--choice", path, lengths)
        found += [to_record(f"the choice, {name}", kernel, batches)] if batches else []
    return found


def main():
    options = parse_arguments()
    if options.torch:
        print(json.dumps(through_torch(options.torch, options)))
        return
    wanted = {d: cases.attention("bf16", d, d, False) for d in map(int, options.d.split(","))}
    chosen = [
        cases.configuration(cases.ATTENTION, {"T": "bf16", "D": d, "CAUSAL": True}, alternatives=True) for d in wanted
    ]
    method = (
        "Host time of a launch of attention forward with one query and one key, microseconds: medians of "
        f"{options.batches} batches of {options.launches} launches, those of C, of PyTorch and of the driver "
        f"alone in {options.processes} processes."
    )
    with tempfile.TemporaryDirectory() as directory:
        source = open_bundles(options, (*wanted.values(), *chosen), directory)
        results = common.Results(options, "host", {**common.describe_gpu(), **common.describe_cpu()}, method)
        driver = through_c(options, "--driver")
        records = [to_record("the driver alone", "empty", driver)] if driver else []
        for configuration in chosen:
            records += measure_choice(source, configuration, options)
        for record in records:
            common.print_row(record)
        for d, configuration in wanted.items():
            kernel = common.load_kernel(source, configuration)
            if not kernel:
                continue
            found = {
                "Python": through_python(kernel, d, options),
                "C": through_c(options, source.path(configuration), str(d)),
                **through_torch_processes(d, options),
            }
            name = f"{configuration['kernel']}, d = {d}"
            measured = [to_record(through, name, batches) for through, batches in found.items() if batches]
            for record in measured:
                common.print_row(record)
            records += measured
            results.write(records, records)
        results.finish()


if __name__ == "__main__":
    main()
