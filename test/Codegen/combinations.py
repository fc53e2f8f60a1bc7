# Attention under every combination of the schedule's switches: it compiles to PTX or is refused with exit code 3 and a reason.
# Without TESSERA_THOROUGH=1 each kernel takes the half of them in which the numbers of the values have an even sum, or that with
# an odd one: any values of all switches but one are still together in each kernel, and every combination is in two of four.
#
# RUN: %python %s %source/kernels/attention_fwd.tile

import itertools
import os
import subprocess
import sys

SOURCE = sys.argv[1]
KERNELS = [["-DD=64", "-DCAUSAL=false"], ["-DD=64", "-DCAUSAL=true"], ["-DD=128", "-DCAUSAL=false"], ["-DD=128", "-DCAUSAL=true"]]
SWITCHES = {
    "producer": ("operands", "none"),
    "overlap": ("1", "2"),
    "pingpong": ("true", "false"),
    "stages": ("1", "2", "3"),
    "store": ("direct", "tma"),
    "split": ("--split", "--no-split"),
}
# What a refusal may be for: each names the limit that the schedule breaks.
REASONS = ("bytes of shared memory", "a consumer thread needs", "warpgroups take")


def contents(ptx, wanted):
    """Returns what of `ptx` contradicts the switches, or nothing."""
    signs = {
        "registers given back without a producer": (wanted["producer"] != "none") == ("setmaxnreg.dec" in ptx),
        "turns without pingpong": (wanted["pingpong"] == "true") == ("bar.arrive" in ptx),
        "bulk stores without store=tma": (wanted["store"] == "tma") == (".global.shared::cta" in ptx),
    }
    return [f"{sign}, or the other way about" for sign, holds in signs.items() if not holds]


def check(kernel, values):
    wanted = dict(zip(SWITCHES, values))
    schedule = ",".join(f"{name}={value}" for name, value in wanted.items() if name != "split")
    command = ["tessera", "compile", SOURCE, *kernel, "--schedule", schedule, wanted["split"], "--emit", "ptx", "-o", "-"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    where = f"{' '.join(kernel)} {schedule}"
    if done.returncode == 0:
        return True, [f"{where}: {wrong}" for wrong in contents(done.stdout, wanted)]
    if done.returncode != 3 or not any(reason in done.stderr for reason in REASONS):
        return False, [f"{where}: exit code {done.returncode}: {done.stderr[-500:]}"]
    return False, []


def choose(number):
    """The combinations that a kernel takes."""
    for values in itertools.product(*SWITCHES.values()):
        total = number // 2 + number + sum(SWITCHES[name].index(value) for name, value in zip(SWITCHES, values))
        if total % 2 == 0 or os.environ.get("TESSERA_THOROUGH") == "1":
            yield values


compiled, refused, failures = 0, 0, []
for kernel, values in [(kernel, values) for number, kernel in enumerate(KERNELS) for values in choose(number)]:
    fits, wrong = check(kernel, values)
    compiled, refused = compiled + fits, refused + (not fits)
    failures += wrong
if not compiled or not refused:
    failures.append(f"{compiled} compile and {refused} are refused; of both there are some")
sys.exit("\n".join(failures) or 0)
