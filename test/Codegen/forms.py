# The forms of kernels that calls from PyTorch and JAX take compile without a fallback, by the oldest ptxas that is here and by the
# newest. Without TESSERA_THOROUGH=1 each of the two takes some of them, and not the same.
#
# REQUIRES: ptxas
# UNSUPPORTED: asan
# RUN: env TESSERA_LIBRARY=%build/lib %python %s %source/scripts/assemble_forms.py 0 %ptxas-oldest
# RUN: env TESSERA_LIBRARY=%build/lib %python %s %source/scripts/assemble_forms.py 1 %ptxas-newest

import os
import subprocess
import sys

SCRIPT, TURN, PTXAS, *OTHERS = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
# Prime numbers, so that the forms which are chosen are of all kinds; a call has several.
PARTS = 1 if os.environ.get("TESSERA_THOROUGH") == "1" else 1021 if OTHERS else 97

command = [sys.executable, SCRIPT, PTXAS, *OTHERS, "--part", f"{TURN % PARTS}/{PARTS}", "--processes", "2"]
done = subprocess.run(command, capture_output=True, text=True)
sys.exit(done.stdout + done.stderr[-2000:] if done.returncode else 0)
