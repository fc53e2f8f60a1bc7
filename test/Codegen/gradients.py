# Gradients of attention assemble for every pair of head dimensions, and in every form that calls from PyTorch and JAX take where
# that has schedules of its own: the gate refuses what spills and what ptxas serialises. So do those of soft caps whose dots are
# divided, where one consumer has more registers.
#
# REQUIRES: ptxas
# RUN: %python %s %source/kernels %ptxas %t

import itertools
import subprocess
import sys

KERNELS, PTXAS, OUTPUT = sys.argv[1:]
NARROW = (64, 96, 128)
WIDE = (*((d, d) for d in (*NARROW, 192, 256)), (192, 128))
MASKS = (["-DCAUSAL=false"], ["-DCAUSAL=true"], ["-DCAUSAL=true", "-DGROUP=8"])
PLAIN = [(pair, []) for pair in itertools.product(NARROW, NARROW) if pair not in WIDE]
FORMS = [(pair, [*mask, f"-DFIXED={fixed}"]) for pair in WIDE for mask in MASKS for fixed in ("false", "true")]
FORMS += [((192, dv), ["-DCAUSAL=true", f"-DGROUP={group}", "-DFIXED=true"]) for dv, group in ((192, 4), (128, 2), (128, 4))]
CAPPED = [["-DSOFTCAP=exact", "-DALIBI=true", "-DDIVIDED=true", f"-DMASK={mask}"] for mask in ("none", "causal", "window")]

calls = [("attention_bwd", [f"-DD={d}", f"-DDV={dv}", *form]) for (d, dv), form in PLAIN + FORMS]
failures = []
for source, defines in calls + [("attention_variants_bwd", form) for form in CAPPED]:
    command = ["tessera", "compile", f"{KERNELS}/{source}.tile", *defines, "--ptxas", PTXAS, "-o", OUTPUT]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        failures.append(f"{source} {' '.join(defines)}: exit code {done.returncode}: {done.stderr[:500]}")
sys.exit("\n".join(failures) or 0)
