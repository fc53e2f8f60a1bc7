#!/usr/bin/env python3
"""Says whether a change keeps the PTX of the shipped kernels.

  same_ptx.py write DIR --tessera PATH    compiles every configuration into DIR
  same_ptx.py check DIR --tessera PATH    compiles them again and lists those that differ from DIR; exit 1 if any does

The configurations are the entries of schedules.json in the folder of --kernels, each with its parameters and its
schedule, and the sources with the schedules that a compilation chooses: measured ones, and those of the model alone.
GRID has the parameters of a source; others are compiled as they are, as the examples beside the folder are. TEXTS has sources
that are no files, and ALTERNATIVES those whose bundles launches choose from. --only TEXT takes the configurations whose names
begin so. A configuration that does not compile counts with its first error. Positions in the source do not count.
`./dev same-ptx REV` compares the working tree with a commit.
"""

import argparse
import base64
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys


WIDTHS = ["64", "96", "128", "192", "256"]
EITHER = ["false", "true"]
GROUPS = ["2", "8"]
# Of a recurrence, before the first token and behind the last.
STATES = {"INITIAL": ["true"], "FINAL": ["true"]}
# Of a cache: a query for each sequence, in parts of the keys, and pages whose rows come one by one or in runs.
DECODED = {"GROUPED": ["true"], "HEADS": ["8"], "PARTS": ["true"]}
# Of a cache of 8 bits, the rows of a tile as columns of products.
FEW = {"CACHED": ["f8E4M3FN"], "BM": ["16"], "BN": ["64"], "BLOCKS": ["2"], "SCALED": ["true"], "HALF_V": ["true"]}
PAGES = {"PAGED": ["true"], "GATHERED": ["true"], "RUN": ["1", "16"]}
WIDE_VALUES = [("64", "128"), ("96", "128"), ("128", "64"), ("128", "256"), ("192", "128")]


def of_widths(**parameters):
    """A grid for each of some pairs of widths of Q and of V."""
    return [{"D": [d], "DV": [dv], **parameters} for d, dv in WIDE_VALUES]


# Parameters of each source, and their values; all combinations are compiled.
GRID = {
    "attention_fwd": [
        {"T": ["bf16", "f16"], "D": WIDTHS, "CAUSAL": EITHER},
        {"D": ["192"], "DV": ["128"], "CAUSAL": EITHER},
        {"D": ["160", "512"], "CAUSAL": EITHER},
        {"D": ["64", "128"], "HEADS": ["2", "8"]},
        {"D": ["64", "128", "256"], "SHARED": ["true"]},
        {"D": ["96", "128"], "PADDED": ["true"], "CAUSAL": EITHER},
    ],
    "attention_variants": [
        {
            "D": ["64", "128", "256"],
            "MASK": ["none", "causal", "window"],
            "SOFTCAP": ["none", "exact", "approx"],
            "ALIBI": EITHER,
        }
    ],
    "gemm": [
        {
            "T": ["bf16", "f16"],
            "B_TRANSPOSED": ["true", "false"],
            "BIAS": EITHER,
            "ACTIVATION": ["none", "relu", "gelu"],
        },
        {"T": ["f8E4M3FN"], "SCALES": ["none", "rows", "blocks"]},
        {"T": ["bf16"], "TB": ["f8E4M3FN"]},
        {"SPLITS": ["2", "8"], "B_TRANSPOSED": EITHER},
        {"PART": ["32"], "BIAS": EITHER},
    ],
    "variants/bias": [{"D": ["64", "128", "256"], "BIAS": ["f32", "bf16"]}],
    "variants/causal": [{"D": ["64", "128", "256"]}, {"PART": ["8"]}, {"D": ["96", "192"]}, {"D": ["64", "128"], "T": ["f8E4M3FN"]}],
    "variants/window": [{"D": ["64", "128", "256"]}],
    "variants/softcap": [{"D": ["64", "128", "256"]}],
    "variants/alibi": [{"D": ["64", "128", "256"]}],
    "variants/documents": [{"D": ["64", "128", "256"]}, {"CAUSAL": ["false"]}],
    "variants/packed": [{"D": ["64", "128", "256"]}],
    "variants/packed_full": [{}],
    "attention_bwd": [
        {"D": WIDTHS, "CAUSAL": EITHER, "FIXED": EITHER},
        {"D": WIDTHS, "CAUSAL": ["true"], "FIXED": EITHER, "GROUP": GROUPS},
        *of_widths(CAUSAL=["true"], FIXED=EITHER, GROUP=["1", "2"]),
        {"D": ["64", "128"], "CAUSAL": EITHER, "FIXED": EITHER, "PARTS": ["2"]},
        {"D": ["128", "192"], "PADDED": ["true"]},
    ],
    "attention_bwd_deterministic": [{"D": WIDTHS, "CAUSAL": EITHER}, *of_widths(), {"D": ["128"], "PADDED": ["true"]}],
    "attention_bwd_statistics": [{}, {"SUMS": ["true"]}],
    "attention_fp8": [
        {
            "D": ["64", "128", "256"],
            "CAUSAL": EITHER,
            "SCALES": ["tensor", "blocks"],
            "V_TRANSPOSED": ["true", "false"],
        }
    ],
    "attention_gradients": [
        {"D": WIDTHS},
        {"D": WIDTHS, "VISITS": ["list"]},
        *of_widths(),
        {"D": ["64", "128"], "WAITS": ["derivatives", "weights", "products"]},
    ],
    "attention_gradients_fixed": [{"D": WIDTHS}, *of_widths()],
    "attention_cache": [
        {"D": ["64", "128"], "TOKENS": ["true"], "PAGED": EITHER, "UNEVEN": EITHER},
        {"D": ["64", "128"], **DECODED, "PAGED": EITHER, "CACHED": ["bf16", "f8E4M3FN"]},
        {"D": ["64", "128"], **DECODED, **FEW, "PAGED": EITHER},
        {"D": ["64", "128"], "GROUPED": ["true"], "CLUSTER": ["2", "4"], "BM": ["16"], "BN": ["64"]},
        {"D": ["64", "128"], "ALL_HEADS": ["true"], "HEADS": ["8"], "TOKENS": EITHER},
        {"D": ["64", "128"], **DECODED, **PAGES},
        {"D": ["64", "128"], "TOKENS": ["true"], **PAGES},
    ],
    "attention_variants_bwd": [
        {"D": WIDTHS, "SOFTCAP": ["none", "exact"], "MASK": ["none", "causal"]},
        {"D": WIDTHS, "SOFTCAP": ["none", "exact"], "MASK": ["causal"], "GROUP": GROUPS},
        *of_widths(MASK=["causal"], GROUP=["1", "2"]),
        {"D": ["128"], "ALIBI": ["true"], "PADDED": ["true"]},
    ],
    "attention_variants_bwd_fixed": [{"D": WIDTHS, "SOFTCAP": ["none", "exact"]}],
    "softmax": [{"T": ["bf16", "f32"], "D": ["1000", "4096", "65536"]}, {"D": ["65536"], "PART": ["2"]}],
    "layer_norm": [
        {"T": ["bf16", "f32"], "D": ["1000", "4096", "65536"], "RMS": EITHER},
        {"D": ["65536"], "RMS": EITHER, "PART": ["2"]},
    ],
    "embedding": [{"I": ["i32", "i64"], "D": ["256", "1000"]}],
    "quantize": [{"D": ["128", "4096"]}, {"BLOCKS": ["true"]}, {"ROTATE": ["true"]}],
    "mla_decode": [{}, {"BALANCED": ["true"]}, {"PAGE": ["16"]}],
    "mla_few_heads": [{}, {"KEY": ["512"]}],
    "merge_shares": [{"ROWS": ["2"], "D": ["512"], "BP": ["4", "8", "16"], "EXACT": ["true"]}],
    "mla_sparse": [{}, {"CACHED": ["f8E4M3FN"]}, {"KEY": ["512"]}],
    "gemm_pair": [{}, {"BM": ["64"], "BN": ["256"]}],
    "linear/delta_rule": [{}, {"DK": ["64"], **STATES}, {"NEWS": ["true"]}],
    "linear/delta_rule_states": [{}, {"NEWS": ["true"], **STATES}],
    "linear/gla": [{}, STATES, {"REVERSE": ["true"]}, {"DK": ["64", "192", "256"]}],
    "linear/gla_bwd": [{}, STATES, {"DK": ["64", "192", "256"]}],
    "linear/gla_gradients": [{"DW": ["64", "128", "256"], "OWN": EITHER}],
    "linear/kda": [{}, {"OWN": ["true"]}, {"NEWS": ["true"], **STATES}, {"DK": ["192", "256"], "NEWS": EITHER}],
    "linear/retention": [{}, {"DK": ["64"], **STATES}, {"REVERSE": ["true"]}, {"C": ["128"]}],
    "linear/ssd": [
        {},
        {"SKIP": ["true"], **STATES},
        {"SUMS": ["true"], "KEEP": ["true"], "SAME": EITHER},
        {"REVERSE": ["true"], "STEPS": ["own"], "SUMS": ["true"], "MEET": ["true"]},
        {"GATED": ["true"], "UNGATED": EITHER, "SKIP": ["true"], "ELEMENTS": EITHER},
        {"RESETS": ["true"], "REVERSE": EITHER},
    ],
    "linear/step": [
        {"DELTA": EITHER, "SKIP": EITHER},
        {"DELTA": ["true"], "NORM": ["true"]},
        {"GATED": ["true"], "SKIP": ["true"], "ELEMENTS": EITHER},
        {"STEPS": ["true"], "MADE": ["softplus"], "BIASED": ["true"]},
    ],
    "linear/unit_rows": [{"BACK": EITHER}],
    "linear/tables": [{"BEGIN": ["i32", "i64"]}],
    "linear/part_sums": [{}, {"FROM": ["bf16"], "T": ["bf16"]}, {"T": ["bf16"]}],
    "linear/head_sums": [{"MORE": EITHER}],
    "linear/outside": [{"T": ["bf16", "f32"], "MORE": EITHER}],
    "linear/output_gradients": [{"GATED": ["true"], "ELEMENTS": EITHER, "PACKED": EITHER}, {}],
    "linear/ssd_changes": [{"RESETS": EITHER}, {"C": ["128", "256"]}, {"RESETS": EITHER, "SLOPES": ["true"], "BIASED": EITHER}],
    "linear/ssd_factors": [{"EVERY": ["2", "4"]}],
    "linear/ssd_gradients": [{"EVERY": ["2", "4"], "MEET": ["true"], "SAME": EITHER}, {"EVERY": ["2", "4"], "REVERSE": ["true"]}],
    "linear/segment_sums": [{"OF": ["powers", "steps", "channels"]}, {"RESETS": ["true"]}],
    "linear/join_segments": [{"CHANNELS": EITHER, "INITIAL": EITHER, "REVERSE": EITHER}],
    "linear/gates": [{"GATE": ["f32", "bf16"], "MORE": EITHER, "PACKED": EITHER}, {"PACKED": ["true"], "BACK": ["true"]},
                     {"MADE": ["limited", "softplus"], "SLOPES": EITHER, "BIASED": EITHER, "PACKED": EITHER}, {"RESETS": ["true"]}],
}


def importing(*names):
    return "".join(f'$import "{name}.tile"\n' for name in names)


LEARNED = """func.func private @argument_gradients(f32, i32, i32, i32, i32, f32)
    attributes {tile.gradient_of = @score, tile.with_respect_to = ["slopes"]}
"""
# Sources that are no files. They too are compiled at each of `OF_TEXTS`.
TEXTS = {
    "causal softcap": importing("variants/softcap", "variants/causal"),
    "causal gradients": importing("attention_gradients", "variants/causal"),
    "window gradients": importing("attention_gradients", "variants/window"),
    "softcap gradients": importing("attention_gradients", "variants/softcap"),
    "bias gradients": importing("attention_gradients", "variants/bias"),
    "documents gradients": importing("attention_gradients", "variants/documents"),
    "sink gradients": importing("attention_gradients", "variants/sink"),
    "learned slopes gradients": importing("attention_gradients", "variants/alibi") + LEARNED,
    "causal fixed gradients": importing("attention_gradients_fixed", "variants/causal"),
    "documents fixed gradients": importing("attention_gradients_fixed", "variants/documents"),
}
OF_TEXTS = [{"D": ["64", "128", "192"]}]
# Sources with alternatives, of which a bundle has all.
ALTERNATIVES = {"attention_fwd": [{"D": ["64", "96", "128"]}]}
# Schedules that no compilation chooses, and that a user may ask for.
SCHEDULES = {"attention_fwd": [{"D": ["64"], "CAUSAL": ["true"]}]}
ASKED = ("overlap=3", "producer=none")
# What a configuration is that one of the compilers does not have.
MISSING = "exit unknown: not there\n"
MEASURED = {"measured": []}
CHOICES = {**MEASURED, "model": ["--no-database"], "exact": ["--no-database", "--schedule", "speculate=false"]}
BUNDLE = ["--alternatives", "--emit", "bundle", "--ptx"]


def defines(parameters):
    return [word for name, value in parameters.items() for word in ("-D", f"{name}={value}")]


def spell(parameters):
    return "_".join(f"{name}-{value}" for name, value in parameters.items())


def is_measured(source):
    """Whether schedules of a source may come from the database, and products of it may speculate: not those of gradients."""
    return not any(word in source for word in ("bwd", "gradients"))


def grids_of(kernels):
    """Yields (source, grids, choices): those of GRID, and every other source that has a kernel, as it is, and every example."""
    for source, grids in GRID.items():
        yield source, grids, CHOICES if is_measured(source) else MEASURED
    for path in sorted(kernels.rglob("*.tile")):
        source = path.relative_to(kernels).with_suffix("").as_posix()
        if source not in GRID and "tile.kernel @" in path.read_text():
            yield source, [{}], CHOICES
    for path in sorted((kernels.parent / "examples").glob("*.tile")):
        yield f"../examples/{path.stem}", [{}], MEASURED
    for source in TEXTS:
        yield source, OF_TEXTS, MEASURED
    for source, grids in SCHEDULES.items():
        yield source, grids, {fields.replace("=", "-"): ["--no-database", "--schedule", fields] for fields in ASKED}
    for source, grids in ALTERNATIVES.items():
        yield source, grids, {"alternatives": BUNDLE}


def declared(path):
    """The parameters of a source and of what it imports."""
    text = path.read_text()
    names = set(re.findall(r"^param (\w+)", text, re.M))
    return names.union(*(declared(path.parent / name) for name in re.findall(r'^\$import "([^"]+)"', text, re.M)))


def find_source(kernels, entry):
    """The source of an entry: that of the kernel's name, or another one that imports it and has all parameters."""
    first = kernels / f"{entry['kernel']}.tile"
    for path in [first, *sorted(kernels.glob(f"{entry['kernel']}_*.tile"))]:
        if declared(path) >= entry["parameters"].keys():
            return path.stem
    raise SystemExit(f"same_ptx: no source of {entry['kernel']} has {', '.join(entry['parameters'])}")


def configurations(kernels):
    """Yields (file name, source, arguments of tessera compile)."""
    entries = json.loads((kernels / "schedules.json").read_text())["entries"]
    for number, entry in enumerate(entries):
        arguments = [*defines(entry["parameters"]), "--no-database", "--schedule", entry["schedule"].replace(" ", "")]
        yield f"entry-{number:03}_{entry['kernel']}_{entry['class']}", find_source(kernels, entry), arguments
    for source, grids, choices in grids_of(kernels):
        for grid in grids:
            for values in itertools.product(*grid.values()):
                parameters = dict(zip(grid, values))
                for choice, arguments in choices.items():
                    name = f"{source.removeprefix('../').replace('/', '.').replace(' ', '-')}_{spell(parameters)}_{choice}"
                    yield name, source, [*defines(parameters), *arguments]


def read_bundle(text):
    """The PTX of a bundle, and of its choice the terms of the time, which say which alternatives there are."""
    bundle = json.loads(text)
    return base64.b64decode(bundle["image"]["base64"]).decode() + json.dumps(bundle.get("choices"), indent=1)


def run_tessera(tessera, kernels, source, arguments):
    """The finished `tessera compile` of a configuration, whose output is text."""
    text = TEXTS.get(source)
    file = ["/dev/stdin", "-I", "."] if text else [f"{source}.tile"]
    command = [tessera, "compile", *file, *arguments, "-o", "-"]
    return subprocess.run(command, cwd=kernels, capture_output=True, text=True, input=text)


def compile_ptx(tessera, kernels, source, arguments):
    """The PTX, or the first error."""
    run = run_tessera(tessera, kernels, source, arguments if "--emit" in arguments else [*arguments, "--emit", "ptx"])
    if run.returncode == 0:
        return read_bundle(run.stdout) if "bundle" in arguments else run.stdout
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
    """Without the files, lines and columns of the source, which change nothing that runs."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("\t.loc\t", "\t.file\t")))


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
