# tile-overlap, tile-split-loops and tile-even-loops do not change what a kernel computes: the interpreter gives the same bytes before
# and after, whatever the number of iterations (none, one, two, three and more) and wherever masks begin and end.
#
# RUN: %python %s %S/Inputs %t

import itertools
import pathlib
import subprocess
import sys

INPUTS, WORK = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
OVERRIDE, CHOOSE = "--tile-override-schedule=schedule=", "--tile-choose-schedule"
SIMPLIFY = ["--canonicalize", "--cse"]
PIPELINES = [
    [CHOOSE, "--tile-overlap"],
    [OVERRIDE + "overlap=1", CHOOSE, "--tile-split-loops"],
    [CHOOSE, "--tile-overlap", "--tile-split-loops"],
    SIMPLIFY + [CHOOSE, "--tile-overlap"] + SIMPLIFY + ["--tile-split-loops"] + SIMPLIFY,
]
# For kernels whose tiles the blocks of a cluster can load together.
CLUSTERED = SIMPLIFY + [OVERRIDE + "cluster=2", CHOOSE, "--tile-even-loops", "--tile-overlap", "--tile-split-loops"] + SIMPLIFY


def shapes(**extents):
    """Every combination of the extents given for each dimension."""
    return [",".join(f"{name}={extent}" for name, extent in zip(extents, values))
            for values in itertools.product(*extents.values())]


# File, the number of the output argument, shapes and options of `tessera run`.
KERNELS = [
    ("attention.mlir", 3, shapes(B=[1], H=[2], HK=[1], SQ=[5], SK=[1, 128, 129, 300, 512]), ["--set", "{5}=0.1"]),
    ("causal.mlir", 3, shapes(H=[1], SQ=[1, 65, 200], SK=[1, 32, 33, 95, 200]), []),
    ("window.mlir", 3, shapes(S=[1, 32, 33, 65, 100, 163, 200, 333]), []),
    ("stages.mlir", 2, shapes(N=[1, 16, 17, 33, 48, 100], M=[70]), ["--kernel", "carried"]),
    ("stages.mlir", 2, shapes(N=[1, 16, 17, 33, 48, 100], M=[70]), ["--kernel", "shifted"]),
    ("stages.mlir", 2, shapes(N=[1, 16, 17, 33, 48, 100], M=[70]), ["--kernel", "chain"]),
    ("masks.mlir", 1, shapes(S=[1, 7, 40, 70, 128]), ["--kernel", "steps"]),
    ("masks.mlir", 1, shapes(S=[1, 4, 7, 16, 40]), ["--kernel", "outside"]),
]


def transform(source, passes, target):
    """Writes `source` after `passes`; the names of the arguments are the printer's."""
    subprocess.run(["tessera-opt", str(source), *passes, "-o", str(target)], check=True, stderr=subprocess.DEVNULL)


def argument_names(path, kernel):
    """The names of the arguments of a kernel as the file prints them."""
    line = next(line for line in path.read_text().split("\n") if "tile.kernel" in line and (not kernel or f"@{kernel}(" in line))
    return [part.split(":")[0].strip() for part in line.split("(%", 1)[1].split(") grid", 1)[0].split("%")]


def result(path, output, shape, options):
    """The bytes of the output, and the names of arguments put into the options."""
    kernel = options[options.index("--kernel") + 1] if "--kernel" in options else None
    names = argument_names(path, kernel)
    options = [option.format(*names) for option in options]
    saved = WORK / "out.npy"
    command = ["tessera", "run", str(path), "--shape", shape, "--seed", "7", "--output", f"{names[output]}={saved}"]
    subprocess.run(command + options, check=True, stdout=subprocess.DEVNULL)
    return saved.read_bytes()


WORK.mkdir(parents=True, exist_ok=True)
compared, changed = 0, set()
for name, output, extents, options in KERNELS:
    before = WORK / "before.mlir"
    transform(INPUTS / name, [], before)
    expected = {shape: result(before, output, shape, options) for shape in extents}
    assert len(set(expected.values())) > 1, f"{name}: every shape gives the same result"
    for number, passes in enumerate(PIPELINES + [CLUSTERED] * (name in ("attention.mlir", "causal.mlir"))):
        after = WORK / f"after{number}.mlir"
        transform(INPUTS / name, passes, after)
        if after.read_text().count("scf.for") > before.read_text().count("scf.for"):
            changed.add((name, number))
        for shape in extents:
            got = result(after, output, shape, options)
            assert got == expected[shape], f"{name}, {shape}, {' '.join(passes)}: the results differ"
            compared += 1
print(compared, "results equal")
text = (WORK / f"after{len(PIPELINES)}.mlir").read_text()
assert "tile.common_bound" in text and "tile.skip_loads" in text, "tile-even-loops did nothing to causal.mlir"
for name in ("attention.mlir", "causal.mlir", "window.mlir", "masks.mlir"):
    assert (name, 1) in changed, f"{name}: tile-split-loops did nothing"
