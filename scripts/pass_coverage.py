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
    "tile-check-divisors": "it refuses, and changes nothing",
    "hop-check-pipes": "it proves, and changes nothing",
    "tile-carry-sums": "no loop of a kernel that ships adds to one place in memory",
    "hop-order-memory": "no kernel that ships loads what other threads of its block stored",
}
# Clean-ups of MLIR stand in many places of the pipeline.
CLEAN_UPS = {"canonicalize", "cse"}
STAGE = re.compile(r"(\d+)-([\w-]+)\.(.+)\.mlir")


def find_stages(tessera, kernels, source, arguments):
    """(the passes of the pipeline, those that change a kernel of the configuration)."""
    with tempfile.TemporaryDirectory() as directory:
        words = ["--emit", "barriers", "--dump-dir", directory]
        same_ptx.run_tessera(tessera, kernels, source, [*arguments, *words])
        stages = sorted((int(m[1]), m[2], m[3], path) for path in pathlib.Path(directory).iterdir() if (m := STAGE.match(path.name)))
        before, passes, changing = {}, {}, set()
        for _, name, kernel, path in stages:
            text = path.read_text()
            if name != "source":
                passes[name] = None
                if text != before.get(kernel, text):
                    changing.add(name)
            before[kernel] = text
    return [name for name in passes if name not in CLEAN_UPS], changing


def find_configurations(kernels):
    return {name: rest for name, *rest in same_ptx.configurations(kernels) if "bundle" not in rest[1]}


def check(tessera, kernels):
    known, problems, passes, changing_some = find_configurations(kernels), [], {}, set()
    for name, expected in json.loads(TABLE.read_text()).items():
        if name not in known:
            problems.append(f"same_ptx.py has no configuration {name} any more")
            continue
        found, changing = find_stages(tessera, kernels, *known[name])
        passes |= dict.fromkeys(found)
        problems += [f"{stage} does not change {name}" for stage in expected if stage not in changing]
        changing_some |= changing
    problems += [f"no configuration of the table is changed by {stage}" for stage in passes if stage not in changing_some | set(UNCHANGING)]
    problems += [f"{stage} is no pass of the pipeline" for stage in UNCHANGING if stage not in passes]
    problems += [f"{stage} changes configurations now: UNCHANGING in pass_coverage.py says not" for stage in changing_some & set(UNCHANGING)]
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
    table, missing = {}, None
    for name, source, arguments in find_samples(kernels):
        passes, changing = find_stages(tessera, kernels, source, arguments)
        if missing is None:
            missing = dict.fromkeys(stage for stage in passes if stage not in UNCHANGING)
        found = [stage for stage in missing if stage in changing]
        if found:
            table[name] = found
            for stage in found:
                del missing[stage]
        print(f"{name}: {', '.join(found)}", flush=True)
        if not missing:
            break
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
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
