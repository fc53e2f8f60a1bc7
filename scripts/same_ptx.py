#!/usr/bin/env python3
"""Says whether a change keeps the PTX of the shipped kernels.

  same_ptx.py write DIR --tessera PATH    compiles every configuration into DIR
  same_ptx.py check DIR --tessera PATH    compiles them again and lists those that differ from DIR; exit 1 if any does

The configurations are the entries of schedules.json in the folder of --kernels, each with its parameters and its
schedule, and the sources with the schedules that a compilation chooses: measured ones, and those of the model alone.
GRID has the parameters of a source; others are compiled as they are. --only TEXT takes the configurations whose names
begin so. A configuration that does not compile counts with its first error. Positions in the source do not count.
`./dev same-ptx REV` compares the working tree with a commit.
"""

import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import subprocess
import sys


# Parameters of each source, and their values; all combinations are compiled.
GRID = {
    "attention_fwd": [
        {"T": ["bf16", "f16"], "D": ["64", "96", "128", "192", "256"], "CAUSAL": ["false", "true"]},
        {"D": ["192"], "DV": ["128"], "CAUSAL": ["false", "true"]},
    ],
    "attention_variants": [
        {
            "D": ["64", "128", "256"],
            "MASK": ["none", "causal", "window"],
            "SOFTCAP": ["none", "exact", "approx"],
            "ALIBI": ["false", "true"],
        }
    ],
    "gemm": [
        {
            "T": ["bf16", "f16"],
            "B_TRANSPOSED": ["true", "false"],
            "BIAS": ["false", "true"],
            "ACTIVATION": ["none", "relu", "gelu"],
        }
    ],
    "variants/causal": [{"D": ["64", "128", "256"]}],
    "variants/window": [{"D": ["64", "128", "256"]}],
    "variants/softcap": [{"D": ["64", "128", "256"]}],
    "variants/alibi": [{"D": ["64", "128", "256"]}],
    "variants/documents": [{"D": ["64", "128", "256"]}],
    "variants/packed": [{"D": ["64", "128", "256"]}],
    "attention_bwd": [{"D": ["64", "128"], "CAUSAL": ["false", "true"]}, {"D": ["64", "128"], "SPREAD": ["true"]}],
    "attention_bwd_deterministic": [{"D": ["64", "128", "192", "256"]}],
    "attention_bwd_statistics": [{}, {"SUMS": ["true"]}],
    "attention_fp8": [
        {
            "D": ["64", "128", "256"],
            "CAUSAL": ["false", "true"],
            "SCALES": ["tensor", "blocks"],
            "V_TRANSPOSED": ["true", "false"],
        }
    ],
    "attention_gradients": [{"D": ["64", "128", "256"]}],
    "attention_variants_bwd": [{"D": ["64", "128", "256"], "SOFTCAP": ["none", "exact"]}],
    "softmax": [{"T": ["bf16", "f32"], "D": ["1000", "4096", "65536"]}],
    "layer_norm": [{"T": ["bf16", "f32"], "D": ["1000", "4096", "65536"], "RMS": ["false", "true"]}],
    "embedding": [{"I": ["i32", "i64"], "D": ["256", "1000"]}],
    "quantize": [{"D": ["128", "4096"]}, {"BLOCKS": ["true"]}, {"ROTATE": ["true"]}],
    "gemm_split": [{"B_TRANSPOSED": ["true", "false"]}],
    "gemm_split_k": [{"SPLITS": ["2", "8"], "B_TRANSPOSED": ["true", "false"]}],
}
# What a configuration is that one of the compilers does not have.
MISSING = "exit unknown: not there\n"
CHOICES = {"measured": [], "model": ["--no-database"], "exact": ["--no-database", "--schedule", "speculate=false"]}


def defines(parameters):
    return [word for name, value in parameters.items() for word in ("-D", f"{name}={value}")]


def spell(parameters):
    return "_".join(f"{name}-{value}" for name, value in parameters.items())


def grids_of(kernels):
    """Yields (source, grids): those of GRID, and every other source that has a kernel, as it is."""
    yield from GRID.items()
    for path in sorted(kernels.rglob("*.tile")):
        source = path.relative_to(kernels).with_suffix("").as_posix()
        if source not in GRID and "tile.kernel @" in path.read_text():
            yield source, [{}]


def configurations(kernels):
    """Yields (file name, source, arguments of tessera compile)."""
    entries = json.loads((kernels / "schedules.json").read_text())["entries"]
    for number, entry in enumerate(entries):
        arguments = [*defines(entry["parameters"]), "--no-database", "--schedule", entry["schedule"].replace(" ", "")]
        yield f"entry-{number:03}_{entry['kernel']}_{entry['class']}", entry["kernel"], arguments
    for source, grids in grids_of(kernels):
        for grid in grids:
            for values in itertools.product(*grid.values()):
                parameters = dict(zip(grid, values))
                for choice, arguments in CHOICES.items():
                    yield f"{source.replace('/', '.')}_{spell(parameters)}_{choice}", source, [*defines(parameters), *arguments]


def compile_ptx(tessera, kernels, source, arguments):
    """The PTX, or the first error."""
    command = [tessera, "compile", f"{source}.tile", *arguments, "--emit", "ptx", "-o", "-"]
    run = subprocess.run(command, cwd=kernels, capture_output=True, text=True)
    if run.returncode == 0:
        return run.stdout
    errors = [line for line in run.stderr.splitlines() if "error" in line]
    return f"exit {run.returncode}: {errors[0] if errors else run.stderr.strip()}\n"


def compile_all(tessera, kernels, only):
    chosen = [configuration for configuration in configurations(kernels) if configuration[0].startswith(only)]
    names, sources, arguments = zip(*chosen)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(lambda s, a: compile_ptx(tessera, kernels, s, a), sources, arguments)))


def write(tessera, kernels, only, directory):
    directory.mkdir(parents=True, exist_ok=True)
    texts = compile_all(tessera, kernels, only)
    for name, text in texts.items():
        (directory / f"{name}.ptx").write_text(text)
    refused = sum(text.startswith("exit ") for text in texts.values())
    print(f"{len(texts)} configurations in {directory}, {refused} of them refused")
    return 0


def drop_positions(text):
    """Without the lines and columns of the source, which change nothing that runs."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("\t.loc\t"))


def check(tessera, kernels, only, directory):
    before = {path.stem: path.read_text() for path in directory.glob(f"{only}*.ptx")}
    after = compile_all(tessera, kernels, only)
    names = sorted(before | after)
    different = [name for name in names if drop_positions(before.get(name, "")) != drop_positions(after.get(name, ""))]
    for name in different:
        old, new = before.get(name, MISSING), after.get(name, MISSING)
        if old.startswith("exit ") or new.startswith("exit "):
            what = " -> ".join(text.strip() if text.startswith("exit ") else "compiles" for text in (old, new))
        else:
            what = f"{old.count(chr(10))} -> {new.count(chr(10))} lines"
        print(f"differs: {name}: {what}")
    print(f"{len(after) - len(different)} of {len(after)} configurations have the same PTX")
    return 1 if different or not after else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--tessera", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--kernels", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "kernels")
    parser.add_argument("--only", default="", help="the configurations whose names begin with this")
    options = parser.parse_args()
    act = {"write": write, "check": check}[options.action]
    return act(options.tessera, options.kernels, options.only, options.directory)


if __name__ == "__main__":
    sys.exit(main())
