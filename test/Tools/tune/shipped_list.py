# RUN: %python %s %source/kernels
"""Looks whether parameters that kernels/tuning.json names, and their values, are those of the sources."""

import json
import pathlib
import re
import subprocess
import sys


def is_allowed(value, allowed):
    """Whether a value is one of "128", "64..256" or "64..256 step 64"."""
    numbers = re.fullmatch(r"(\d+)\.\.(\d+)(?: step (\d+))?", allowed)
    return value == allowed or bool(numbers) and int(value) in range(int(numbers[1]), int(numbers[2]) + 1, int(numbers[3] or 1))


def check(folder, target):
    words = ["tessera", "params", str(folder / target["file"]), "--json", *(f"-D{n}={v}" for n, v in target.get("define", {}).items())]
    parameters = {parameter["name"]: parameter for parameter in json.loads(subprocess.check_output(words))["parameters"]}
    for name, values in target.get("vary", {}).items():
        assert name in parameters, f"{target['file']} {target.get('define')}: there is no parameter {name}"
        allowed = parameters[name]["allowed"]
        known = all(any(is_allowed(value, each) for each in allowed) for value in values)
        assert known or not allowed, f"{target['file']} {target.get('define')}: {name} is one of {allowed}, and not of {values}"


def main(folder):
    folder, known = pathlib.Path(folder), set()
    for target in json.loads((folder / "tuning.json").read_text())["targets"]:
        key = json.dumps([target.get(name) for name in ("file", "define", "vary")])
        if key not in known:
            known.add(key)
            check(folder, target)


main(*sys.argv[1:])
