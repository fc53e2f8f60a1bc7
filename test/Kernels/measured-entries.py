# RUN: %python %s %source
"""Every measured schedule that ships is of a kernel that ships, and is what a compilation takes that asks for the fields that tuning
was told to keep."""

import concurrent.futures
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "scripts"))
import same_ptx


def check(entry):
    """What is wrong with an entry, or None."""
    given = {name: value for name, value in entry["parameters"].items() if name not in entry["tuned"]}
    command = ["tessera", "compile", f"{same_ptx.find_source(ROOT / 'kernels', entry)}.tile", *same_ptx.defines(given)]
    command += ["--schedule", entry.get("fixed", ""), "--gpu", entry["gpu"], "--shape-class", entry["class"]]
    command += ["--emit", "scheduled", "--remarks", "-o", "/dev/null"]
    done = subprocess.run(command, cwd=ROOT / "kernels", capture_output=True, text=True)
    values = ", ".join(f"{name} = {value}" for name, value in sorted(given.items()))
    fixed = f", {entry['fixed']}" if "fixed" in entry else ""
    wanted = f"schedule from the database: entry '{entry['kernel']}', {entry['class']}, {entry['gpu']}, {values}{fixed}"
    if done.returncode == 0 and "warning: " not in done.stderr and wanted in done.stderr:
        return None
    return f"FAIL {' '.join(command)}\n{wanted}\n{done.stderr}\nof a compiler that changed: ./dev tune --adopt kernels/*.tile"


entries = json.loads((ROOT / "kernels/schedules.json").read_text())["entries"]
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    problems = list(filter(None, pool.map(check, entries)))
print(*problems, sep="\n")
sys.exit(bool(problems) or not entries)
