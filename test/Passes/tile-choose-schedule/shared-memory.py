# RUN: %python %s %source/kernels %build/bin/tessera
"""The bytes of shared memory that tile-choose-schedule counts for the shipped kernels are never less than what the passes
after it allocate."""

import itertools
import pathlib
import re
import subprocess
import sys

# Parameters, each with values that change what lies in shared memory.
SOURCES = {
    "attention_fwd": {"D": (64, 128, 256), "CAUSAL": ("false", "true")},
    "attention_variants": {"D": (64, 128), "ALIBI": ("true",)},
    "attention_fp8": {"D": (64, 128), "V_TRANSPOSED": ("false", "true")},
    "attention_bwd": {"D": (64, 128)},
    "attention_bwd_deterministic": {"D": (128, 256)},
    "gemm": {"BIAS": ("false", "true"), "PART": (0, 32), "SPLITS": (0, 8)},
    "linear/ssd": {"DK": (64, 192)},
}
SCHEDULES = ("", "persistent=dynamic", "store=tma")
# The remark of the pass, and the kernel's entry of the bundle.
COUNTED = re.compile(r"remark: schedule chosen: .*registers per consumer thread and (\d+) bytes of shared memory")
ALLOCATED = re.compile(r'shared_memory = (\d+)')


def measure(tessera, source, defines, schedule):
    """Pairs of bytes that were counted and allocated, one for each kernel of the source; none where it is refused."""
    command = [tessera, "compile", source, *defines, "--no-database", "--remarks", "--emit", "llvm", "-o", "-"]
    run = subprocess.run([*command, *(["--schedule", schedule] if schedule else [])], capture_output=True, text=True)
    if run.returncode:
        return []
    return list(zip(map(int, COUNTED.findall(run.stderr)), map(int, ALLOCATED.findall(run.stdout))))


def main(kernels, tessera):
    count, failures = 0, 0
    for name, parameters in SOURCES.items():
        own = 0
        for values in itertools.product(*parameters.values()):
            defines = [f"-D{key}={value}" for key, value in zip(parameters, values)]
            for schedule in SCHEDULES:
                for counted, allocated in measure(tessera, str(kernels / f"{name}.tile"), defines, schedule):
                    own += 1
                    if counted < allocated:
                        failures += 1
                        print(f"FAIL {name} {' '.join(defines)} {schedule}: {counted} bytes counted, {allocated} allocated")
        if not own:
            failures += 1
            print(f"FAIL {name}: not compiled with any schedule")
        count += own
    print(f"{count} kernels, {failures} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
