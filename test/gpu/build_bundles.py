#!/usr/bin/env python3
"""Compiles every kernel that test/gpu/run.py needs, on a machine without a GPU.

    python3 test/gpu/build_bundles.py --tessera build/bin/tessera --out DIR [--jobs 2]

DIR then holds a bundle for each configuration and index.json; carry it to the GPU and run
`python3 test/gpu/run.py --bundles DIR` there. Exits with 1 when a default schedule does not compile.

--extra FILE adds what FILE lists, a JSON array of {"kernel", "parameters", "schedule", "shape", "shape_class",
"alternatives", "entry"}, of which all but the first two may be absent, for the benchmarks: bench/ablation.json, or what
`./dev bench attention --list FILE`, `variants` and `choice` write. "for", a list of shapes, is kept in index.json.
With --groups= nothing else is compiled. --inspect counts the instructions of the main loops, which bench/variants.py
compares.
"""

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

import cases

# The lines of tessera inspect that begin a loop: all instructions, and those of each class.
LOOP = re.compile(r"^loop at .*: (\d+) instructions.*\n((?:  \S+ \d+)+)$", re.MULTILINE)
CLASS = re.compile(r"(\S+) (\d+)")
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", default=os.path.join(ROOT, "build", "bin", "tessera"), help="the compiler")
    parser.add_argument("--out", required=True, metavar="DIR", help="where the bundles go")
    parser.add_argument("--jobs", type=int, default=2, help="compilations at a time")
    parser.add_argument("--only", default="", metavar="TEXT", help="only configurations whose name has TEXT")
    parser.add_argument("--groups", default=",".join(cases.GROUPS), help="comma-separated, of the default")
    parser.add_argument(
        "--extra",
        metavar="FILE",
        action="append",
        default=[],
        help="JSON with more configurations, see above; repeatable",
    )
    parser.add_argument("--inspect", action="store_true", help="run tessera inspect on each bundle, see above")
    parser.add_argument("--nvdisasm", help="passed on to tessera inspect")
    parser.add_argument("--ptxas", help="passed on to the compiler")
    parser.add_argument("--timeout", type=float, default=180, help="seconds for one compilation")
    return parser.parse_args()


def compile_bundle(options, configuration):
    """The entry of index.json for a configuration."""
    bundle = configuration["name"] + ".bundle"
    command = [options.tessera, "compile", os.path.join(ROOT, "kernels", configuration["kernel"] + ".tile")]
    for name, value in configuration["parameters"].items():
        command += ["-D", f"{name}={value}"]
    if configuration["schedule"]:
        command += ["--schedule", configuration["schedule"]]
    if configuration["shape"]:
        command += ["--shape", ",".join(f"{name}={extent}" for name, extent in configuration["shape"].items())]
    if configuration["shape_class"]:
        command += ["--shape-class", configuration["shape_class"]]
    if configuration["alternatives"]:
        command.append("--alternatives")
    if configuration["entry"]:
        command += ["--kernel", configuration["entry"]]
    if options.ptxas:
        command += ["--ptxas", options.ptxas]
    command += ["--emit", "bundle", "-o", os.path.join(options.out, bundle)]
    start = time.monotonic()
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
        failed, error, status = process.returncode != 0, process.stderr.strip(), process.returncode
    except subprocess.TimeoutExpired:
        failed, error, status = True, f"no result after {options.timeout} s", None
    entry = dict(configuration, seconds=round(time.monotonic() - start, 3), command=command[1:])
    if failed:
        entry["error"] = error or f"exit status {status} without a message"
        # Negative: ended by a signal. A refusal has a message and one of the compiler's exit statuses.
        entry["crashed"] = status is None or status < 0 or not error
    else:
        entry["bundle"] = bundle
        if options.inspect:
            entry["loops"] = inspect_bundle(options, bundle)
    return entry


def inspect_bundle(options, bundle):
    """[{"instructions": all of a loop, "HGMMA": those of this class, ...}] of the main loops of a bundle."""
    command = [options.tessera, "inspect", os.path.join(options.out, bundle)]
    if options.nvdisasm:
        command += ["--nvdisasm", options.nvdisasm]
    process = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} exits with {process.returncode}:\n{process.stderr}")
    return read_loops(process.stdout)


def read_loops(text):
    """The counts of a report of tessera inspect."""
    return [
        {"instructions": int(total), **{name: int(count) for name, count in CLASS.findall(classes)}}
        for total, classes in LOOP.findall(text)
    ]


def read_extra(path):
    """The configurations of a file as --extra takes it."""
    try:
        with open(path) as file:
            entries = json.load(file)
    except (OSError, ValueError) as error:
        raise SystemExit(f"--extra {path}: {error}")
    if not isinstance(entries, list):
        raise SystemExit(f"--extra {path}: expected an array of objects")
    for number, entry in enumerate(entries):
        fits = isinstance(entry, dict) and isinstance(entry.get("kernel"), str)
        fits = fits and isinstance(entry.get("parameters"), dict) and isinstance(entry.get("schedule", ""), str)
        fits = fits and isinstance(entry.get("shape", {}), dict) and isinstance(entry.get("shape_class", ""), str)
        fits = fits and isinstance(entry.get("alternatives", False), bool) and isinstance(entry.get("for", []), list)
        fits = fits and isinstance(entry.get("entry", ""), str)
        if not fits:
            raise SystemExit(
                f'--extra {path}: entry {number} is no {{"kernel": NAME, "parameters": OBJECT, "schedule": TEXT, "shape": OBJECT}}'
            )
        if not os.path.exists(os.path.join(ROOT, "kernels", entry["kernel"] + ".tile")):
            raise SystemExit(f"--extra {path}: entry {number}: there is no kernels/{entry['kernel']}.tile")
        fields = (entry["kernel"], entry["parameters"], entry.get("schedule", ""), entry.get("shape"),
                  entry.get("shape_class", ""), entry.get("alternatives", False), entry.get("entry", ""))  # fmt: skip
        kept = {"for": entry["for"]} if "for" in entry else {}
        yield dict(cases.configuration(*fields), group="extra", **kept)


def wanted_configurations(options):
    """What to compile; a configuration that several ask for once."""
    groups = [group for group in options.groups.split(",") if group]
    found = [*cases.configurations(groups), *(entry for path in options.extra for entry in read_extra(path))]
    unique = {}
    for configuration in found:
        unique.setdefault(configuration["name"], configuration)
    return [configuration for name, configuration in unique.items() if options.only in name]


def report(entry):
    """Prints a line; returns whether the entry is as it should be."""
    if "bundle" in entry:
        print(f"ok       {entry['seconds']:6.2f} s  {entry['name']}", flush=True)
        return True
    allowed = entry["may_be_refused"] and not entry["crashed"]
    print(f"{'refused' if allowed else 'FAILED '}  {entry['seconds']:6.2f} s  {entry['name']}")
    shown = entry["error"].splitlines()
    for line in shown[:1] if allowed else shown[:12]:
        print(f"             {line}", flush=True)
    return allowed


def write_index(directory, entries):
    """Writes index.json; configurations that were not compiled this time keep their entries."""
    path = os.path.join(directory, "index.json")
    new = {entry["name"]: entry for entry in entries}
    if os.path.exists(path):
        with open(path) as file:
            new = {**{entry["name"]: entry for entry in json.load(file)["bundles"]}, **new}
    with open(path, "w") as file:
        json.dump({"bundles": list(new.values())}, file, indent=1)


def main():
    options = parse_arguments()
    if not os.access(options.tessera, os.X_OK):
        raise SystemExit(f"{options.tessera} is no program; build it (./dev build) or use --tessera")
    os.makedirs(options.out, exist_ok=True)
    wanted = wanted_configurations(options)
    entries, fine = [], True
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for entry in pool.map(lambda configuration: compile_bundle(options, configuration), wanted):
            entries.append(entry)
            fine &= report(entry)
    write_index(options.out, entries)
    built = sum("bundle" in entry for entry in entries)
    print(f"{built} bundles of {len(entries)} configurations in {options.out}")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
