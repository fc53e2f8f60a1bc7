#!/usr/bin/env python3
"""Holds the grid of same_ptx.py to the pipeline: each pass changes some configuration of it.

  pass_coverage.py check --tessera PATH     compiles the configurations of the table and says where it is wrong; exit 1 if it is
  pass_coverage.py refresh --tessera PATH   looks for others among samples of the grid, and writes the table: minutes

The table, test/Kernels/passes.json, has for each configuration the passes that change it, each pass once. UNCHANGING has the
passes that change no kernel of the grid, with the reason.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import same_ptx

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "test" / "Kernels" / "passes.json"
UNCHANGING = {
    "tile-drop-debug": "no kernel that ships prints or asserts",
    "tile-check-divisors": "it refuses, and changes nothing",
    "hop-check-pipes": "it proves, and changes nothing",
}
# As they are registered with tessera-opt, in their order; the last of "hop" is the one behind "ordered".
STAGES = ("tile", "chosen", "scheduled", "roles", "staged", "ordered", "hop", "barriers", "llvm")
FILE = re.compile(r"\d+-([\w-]+)\..+\.mlir")


def list_stages(tessera):
    """The passes of each stage of the pipeline, without clean-ups of MLIR."""
    stages, known = {}, set()
    for stage in STAGES:
        pipeline = f"builtin.module(tessera-{stage})"
        command = [pathlib.Path(tessera).with_name("tessera-opt"), "--pass-pipeline=" + pipeline, "--dump-pass-pipeline"]
        printed = subprocess.run(command, input="module {}", capture_output=True, text=True, check=True).stderr
        stages[stage] = [name for name in dict.fromkeys(re.findall(r"\b(?:tile|hop)-[\w-]+", printed)) if name not in known]
        known.update(stages[stage])
    return stages


def find_changing(tessera, kernels, source, arguments):
    """The passes that change a kernel of the configuration: those of which there is a file."""
    with tempfile.TemporaryDirectory() as directory:
        words = ["--emit", "barriers", "--dump-dir", directory]
        same_ptx.run_tessera(tessera, kernels, source, [*arguments, *words])
        return {found[1] for path in pathlib.Path(directory).iterdir() if (found := FILE.match(path.name))}


def list_passes(tessera):
    return [name for stage, passes in list_stages(tessera).items() if stage != "llvm" for name in passes]


def find_configurations(kernels):
    return {name: rest for name, *rest in same_ptx.configurations(kernels) if "bundle" not in rest[1]}


def check(tessera, kernels):
    known, problems, passes, changing_some = find_configurations(kernels), [], list_passes(tessera), set()
    for name, expected in json.loads(TABLE.read_text()).items():
        if name not in known:
            problems.append(f"same_ptx.py has no configuration {name} any more")
            continue
        changing = find_changing(tessera, kernels, *known[name])
        problems += [f"{stage} does not change {name}" for stage in expected if stage not in changing]
        changing_some |= changing
    problems += [f"no configuration of the table is changed by {stage}" for stage in passes if stage not in changing_some | set(UNCHANGING)]
    problems += [f"{stage} is no pass of the pipeline" for stage in UNCHANGING if stage not in passes]
    again = changing_some & set(UNCHANGING)
    problems += [f"{stage} changes configurations now: UNCHANGING in pass_coverage.py says not" for stage in again]
    return problems


def find_samples(kernels):
    """Configurations that the table has; of each source the last and the first of those that name the same parameters; and entries of
    the database."""
    of_grid, known = {}, json.loads(TABLE.read_text()) if TABLE.exists() else {}
    for name, (source, arguments) in find_configurations(kernels).items():
        if name not in known and ("exact" in name.rpartition("_") or "model" in name.rpartition("_")):
            continue
        grid = name if name in known or name.startswith("entry-") else (source, *(word.split("=")[0] for word in arguments))
        of_grid.setdefault(grid, []).append((name, source, arguments))
    samples = [configuration for found in of_grid.values() for configuration in {found[-1][0]: found[-1], found[0][0]: found[0]}.values()]
    return sorted(samples, key=lambda configuration: (configuration[0] not in known, configuration[0].startswith("entry-")))


def refresh(tessera, kernels):
    table, missing = {}, dict.fromkeys(name for name in list_passes(tessera) if name not in UNCHANGING)
    for name, source, arguments in find_samples(kernels):
        changing = find_changing(tessera, kernels, source, arguments)
        found = [stage for stage in missing if stage in changing]
        if found:
            table[name] = found
            for stage in found:
                del missing[stage]
        print(f"{name}: {', '.join(found)}", flush=True)
        if not missing:
            break
    rows = (f" {json.dumps(name)}: {json.dumps(passes)}" for name, passes in table.items())
    TABLE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    return [f"nothing is changed by {stage}" for stage in missing]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["check", "refresh"])
    parser.add_argument("--tessera", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    options = parser.parse_args()
    problems = {"check": check, "refresh": refresh}[options.action](options.tessera, ROOT / "kernels")
    print("\n".join(problems) or "each pass changes some configuration")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
