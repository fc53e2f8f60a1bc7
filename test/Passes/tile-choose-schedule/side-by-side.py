# Kernels of a module are scheduled side by side. What is said of one is no reason to reject a schedule of another.
#
# RUN: %python %s %S/basic.mlir %t
import pathlib
import re
import subprocess
import sys

source, scratch = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(f"{sys.argv[2]}.mlir")
kernel = re.search(r"^tile\.kernel @three.*?^}\n", source, re.DOTALL | re.MULTILINE).group()
scratch.write_text("".join(kernel.replace("@three", f"@kernel{i}") for i in range(48)))
run = subprocess.run(["tessera-opt", str(scratch), "--tile-choose-schedule"], capture_output=True, text=True, check=True)
schedules = set(re.findall(r"schedule (#tile\.schedule<[^>]*>)", run.stdout))
assert len(schedules) == 1, schedules
