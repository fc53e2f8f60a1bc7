# Gradients of attention assemble for every pair of head dimensions: the gate refuses what spills and what ptxas serialises.
#
# REQUIRES: ptxas
# RUN: %python %s %source/kernels/attention_bwd.tile %ptxas %t

import itertools
import subprocess
import sys

SOURCE, PTXAS, OUTPUT = sys.argv[1:]
NARROW = (64, 96, 128)
PAIRS = [*itertools.product(NARROW, NARROW), (192, 128), (192, 192), (256, 256)]
FORMS = [(pair, "false") for pair in PAIRS] + [((d, d), "true") for d in NARROW]

failures = []
for (d, dv), fixed in FORMS:
    defines = [f"-DD={d}", f"-DDV={dv}", f"-DFIXED={fixed}"]
    done = subprocess.run(["tessera", "compile", SOURCE, *defines, "--ptxas", PTXAS, "-o", OUTPUT], capture_output=True, text=True)
    if done.returncode:
        failures.append(f"{' '.join(defines)}: exit code {done.returncode}: {done.stderr[:500]}")
sys.exit("\n".join(failures) or 0)
