"""Damages waits, arrivals and copies of pipes where they are operations of the hop dialect: the simulator must name each damage
and what it is of, and nothing in the kernel as it is.

    barriers.py KERNEL.tile CASE WORKDIR
"""

import json
import os
import re
import subprocess
import sys

from damages import replaced
from launches import simulate

TYPES = {"i32": "s32", "i64": "s64", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
SWIZZLES = {"none": 0, "32B": 32, "64B": 64, "128B": 128}


def run(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def translate(barriers):
    llvm = run(["tessera-opt", "--mlir-print-debuginfo", "--pass-pipeline=builtin.module(tessera-llvm)"], barriers)
    return run(["tessera-translate", "--mlir-to-ptx"], llvm)


class Launch:
    """A launch of the only kernel of a bundle, whose views are dense."""

    def __init__(self, bundle, extents, blocks, scalars, fills):
        self.kernel, self.extents, self.blocks = bundle["kernels"][0], extents, blocks
        self.scalars, self.fills = scalars, fills
        self.views = {argument["name"]: argument for argument in self.kernel["arguments"] if argument["kind"] == "view"}

    def extent(self, dim):
        return self.extents.get(dim, dim)

    def strides(self, view):
        """In elements, the slowest first."""
        strides = [1]
        for dim in reversed(self.views[view]["dims"][1:]):
            strides.append(strides[-1] * self.extent(dim))
        return strides[::-1]

    def buffer(self, view, seed):
        kind = self.views[view]["element"]
        fill = {"fill": "nan"} if self.views[view]["access"] == "write" else {"fill": "random", "seed": seed}
        if view in self.fills:
            fill = {"fill": self.fills[view]}
        return {"type": TYPES.get(kind, kind), "shape": [self.extent(dim) for dim in self.views[view]["dims"]], **fill}

    def parameter(self, of):
        if of["kind"] == "pointer":
            return {"buffer": of["argument"]}
        if of["kind"] == "workspace":
            return {"buffer": "workspace"}
        if of["kind"] == "scalar":
            return {"value": self.scalars[of["argument"]], "type": TYPES.get(of["type"], of["type"])}
        if of["kind"] == "dim":
            return {"value": self.extent(of["dim"])}
        if of["kind"] == "stride":
            return {"value": self.strides(of["argument"])[of["dim"]]}
        bytes_of = int(re.sub(r"^[a-z]*(\d+).*", r"\1", of["element"])) // 8
        strides = self.strides(of["argument"])

        def stride(dim):
            return dim["stride_bytes"] if "stride_bytes" in dim else bytes_of * strides[dim["stride_of_dim"]]

        view = {
            "buffer": of["argument"],
            "dims": [self.extent(dim["extent"]) for dim in of["dims"]],
            "strides": [stride(dim) for dim in of["dims"][1:]],
            "box": of["box"],
            "swizzle": SWIZZLES[of["swizzle"]],
        }
        return {"tensor_map": view}

    def name(self, of):
        slots = of.get("slots", 1)
        return {**of, "stride": of["bytes"] // slots, "count": slots}

    def write(self, directory):
        kernel = self.kernel
        places = [*kernel["shared_map"], *kernel["barriers"]]
        buffers = {view: self.buffer(view, seed) for seed, view in enumerate(self.views, 1)}
        for of in kernel["launch_parameters"]:
            if of["kind"] == "workspace":
                buffers["workspace"] = {"type": "u32", "shape": [of["bytes"] // 4], "resets": True}
        launch = {
            "grid": self.blocks,
            "cluster": kernel["cluster"][0],
            "shared": kernel["shared_memory"],
            "buffers": buffers,
            "params": [self.parameter(of) for of in kernel["launch_parameters"]],
            "shared_names": [self.name(of) for of in places],
            "roles": [{"name": of["name"], "first_warp": of["first_warp"]} for of in kernel["roles"]],
        }
        with open(os.path.join(directory, "launch.json"), "w") as f:
            json.dump(launch, f, indent=1)


class Program:
    """The lines of a kernel, which damages change. In their patterns {label} stands for the buffer or barriers with this label."""

    def __init__(self, text):
        self.lines = text.split("\n")

    def name(self, label):
        return next(line.split("=")[0].strip() for line in self.lines if re.search(rf'hop\.(buffer|barriers) "{label}"', line))

    def spell(self, text):
        return re.sub(r"\{([\w.]+)\}", lambda label: self.name(label[1]), text)

    def find(self, role, what, number=0):
        """The place of the operation of this number in the role that matches."""
        pattern = self.spell(re.sub(r"(\{[\w.]+\})", r"\1\\b", what))
        start = next(i for i, line in enumerate(self.lines) if f"hop.role @{role} " in line)
        return [i for i, line in enumerate(self.lines) if i > start and re.search(pattern, line)][number]


def dropped(role, what, number=0):
    def damage(program):
        del program.lines[program.find(role, what, number)]

    return damage


def changed(role, what, old, new, number=0):
    def damage(program):
        place = program.find(role, what, number)
        line = re.sub(program.spell(old), program.spell(new), program.lines[place], count=1)
        assert line != program.lines[place], (old, line)
        program.lines[place] = line

    return damage


def moved(role, what, before, number=0, to_number=0):
    """One operation stands before another one of the same block."""

    def damage(program):
        place, to = program.find(role, what, number), program.find(role, before, to_number)
        line = program.lines.pop(place)
        program.lines.insert(to - (place < to), line)

    return damage


def repeated(role, what, old, new, behind, number=0):
    """One operation is there once more, changed, behind another one, whose result {next} stands for."""

    def damage(program):
        line = program.lines[program.find(role, what, number)]
        to = program.find(role, behind, number)
        result = program.lines[to].split("=")[0].strip()
        program.lines.insert(to + 1, re.sub(old, new.replace("{next}", result), line, count=1))

    return damage


def past(role, what, slots, number=0):
    """The slot behind the last one."""

    def damage(program):
        changed(role, what, r"\[%\w+\]", "[%past]", number)(program)
        program.lines.insert(program.find(role, what, number), f"%past = arith.constant {slots} : i32")

    return damage


def in_assembly(old, new):
    """What an operation has become in PTX is changed."""
    return lambda program: replaced(old, new)


# The index of the next one of two slots.
NEXT = r"arith\.xori %\w+, %c1_i32"
OVERWRITTEN = {"slot-overwritten", "race"}
TAKEN = OVERWRITTEN | {"over-arrival", "parity-aliasing", "transaction-underflow"}
UNFILLED = {"stale-data", "race", "uninitialised-shared"}
# 128 rows against 320 in steps of 64.
SUMS = {"defines": ["-DFORM=1", "-DD=64"], "extents": {"ONE": 1, "M": 128, "N": 320}, "blocks": 1}
# Six tiles of four steps.
PRODUCT = {"defines": ["-DBM=128", "-DBN=64", "-DBK=64"], "extents": {"M": 256, "N": 192, "K": 256}, "blocks": 1}
# Each damage, the kinds of which at least one must be reported, and the buffer or barriers that the report is of; no kinds where it does
# no harm.
CASES = {
    # Rows of values that go with the tile beside them.
    "joined": {
        **SUMS,
        "schedule": "placement=apart,persistent=none,consumers=2,stages=2,overlap=1",
        "damages": {
            "bytes of the tile alone": (changed("producer", "expect {b.full}", "bytes 8448", "bytes 8192"), {"transaction-underflow"}, "b.full"),
            "bytes of two rows": (changed("producer", "expect {b.full}", "bytes 8448", "bytes 8704"), {"deadlock"}, "b.full"),
            "told to another barrier": (
                changed("producer", r"bulk_load %arg2\[", r"{b.full}\[%\w+\](.*)barriers<2>", r"{a.full}[%c0_i32]\1barriers<1>"),
                {"transaction-underflow", "deadlock"}, "b.full",
            ),
            "not waited for": (dropped("consumer", "wait {b.full}"), UNFILLED, "r"),
            "loaded before the slot is free": (dropped("producer", "wait {b.empty}"), OVERWRITTEN, "r"),
            "loaded into the first slot": (changed("producer", r"= hop\.slot {r}", r"\[%\w+\]", "[%c0_i32]"), OVERWRITTEN, "r"),
            "read from the first slot": (changed("consumer", r"= hop\.slot {r}", r"\[%\w+\]", "[%c0_i32]"), OVERWRITTEN | UNFILLED, "r"),
            "given back before it is read": (moved("consumer", "arrive {b.empty}", r"= hop\.fetch"), OVERWRITTEN, "r"),
            # It can wait for ever where the consumers are ahead.
            "the other slot waited for too": (
                repeated("producer", "wait {b.empty}", r"\[%\w+\]", "[{next}]", rf"= {NEXT}"), {"parity-aliasing"}, "b.empty",
            ),
            "the other slot waited for too by who reads": (
                repeated("consumer", "wait {b.full}", r"\[%\w+\]", "[{next}]", rf"= {NEXT}"), {"deadlock"}, "b.full",
            ),
            "given back once more at the end": (
                repeated("consumer", "arrive {b.empty}", r"\[%\w+\]", "[%c0_i32]", "wait {a.full}"), {"over-arrival", "parity-aliasing"}, "b.empty",
            ),
            "loaded past the last slot": (past("producer", r"= hop\.slot {b}", 2), {"out-of-bounds"}, "b"),
            "read past the last slot": (past("consumer", r"= hop\.slot {b}", 2), {"out-of-bounds"}, "b"),
            "written past the last slot": (past("consumer", r"= hop\.slot {columns.operand}", 2), {"out-of-bounds"}, "columns.operand"),
        },
    },
    # The next slot, which a product reads beside those of this one. The wait that takes it then finds it filled.
    "ahead": {
        **SUMS,
        "schedule": "placement=apart,persistent=none,consumers=2,stages=3,overlap=lead",
        "damages": {
            "the first one not waited for": (dropped("consumer", "wait {b.full}", 0), UNFILLED, "b"),
            "not waited for": (dropped("consumer", "wait {b.full}", 2), UNFILLED, "b"),
            "waited for with the parity of this one": (
                changed("consumer", "wait {b.full}", r"\], %\w+ :", "], %arg11 :", 2), {"deadlock"}, "b.full",
            ),
            "given back in place of this one": (changed("consumer", "arrive {b.empty}", r"\[%arg12\]", "[%33]"), {"deadlock"}, "b.empty"),
            "read after it was given back": (changed("consumer", r"= hop\.slot {b}", r"\[%\w+\]", "[%c0_i32]", 2), OVERWRITTEN, "b"),
            "given back before its product is done": (moved("consumer", "arrive {b.empty}", r"hop\.mma_wait", 0, 1), OVERWRITTEN, "b"),
            "not waited for again": (dropped("consumer", "wait {b.full}", 1), set(), ""),
        },
    },
    # Numbers of tiles that a counter gives out.
    "numbers": {
        **PRODUCT,
        "schedule": "persistent=dynamic,consumers=2,stages=2,store=direct",
        "damages": {
            "not waited for": (dropped("consumer", "wait {tiles.full}"), UNFILLED, "tiles"),
            "written before the slot is free": (dropped("producer", "wait {tiles.empty}"), {"race"}, "tiles"),
            "told of before it is written": (moved("producer", "arrive {tiles.full}", r"hop\.slot_store"), {"race"}, "tiles"),
            "given back before it is read": (moved("consumer", "arrive {tiles.empty}", r"hop\.slot_load"), {"race"}, "tiles"),
            "given back by a thread of each warpgroup": (changed("consumer", "arrive {tiles.empty}", " all ", " "), {"deadlock"}, "tiles.empty"),
        },
    },
    # The same for both blocks of a cluster, by the first one.
    "numbers-of-clusters": {
        **PRODUCT,
        "schedule": "cluster=2,persistent=dynamic,consumers=2,stages=2,store=direct",
        "blocks": 2,
        "damages": {
            "not waited for": (dropped("consumer", "wait {tiles.full}"), UNFILLED, "tiles"),
            "written before the slot is free": (dropped("producer", "wait {tiles.empty}"), TAKEN, "tiles"),
            "not expected": (dropped("producer", "expect {tiles.full}"), {"deadlock", "transaction-underflow"}, "tiles.full"),
            "not given back": (dropped("consumer", "arrive {tiles.empty}"), {"deadlock"}, "tiles.empty"),
            "given back before it is read": (moved("consumer", "arrive {tiles.empty}", r"hop\.slot_load"), TAKEN, "tiles"),
        },
    },
    # The bounds of four tiles, two for each, which one warp finds and all other roles take.
    "bounds": {
        "defines": ["-DD=64", "-DBM=128", "-DBN=64"],
        "extents": {"B": 1, "H": 2, "HK": 1, "SQ": 256, "SK": 256},
        "blocks": 1,
        "scalars": {"scale": 0.125},
        "fills": {"starts": "zero"},
        "schedule": "persistent=static,consumers=2,stages=2,overlap=1,speculate=false,store=direct,pingpong=false",
        "damages": {
            "not waited for": (dropped("consumer", "wait {bounds.full}"), UNFILLED, "bounds"),
            "not waited for by who loads": (dropped("producer", "wait {bounds.full}"), UNFILLED, "bounds"),
            "written before the slot is free": (dropped("finder", "wait {bounds.empty}"), {"race"}, "bounds"),
            "told of before it is written": (moved("finder", "arrive {bounds.full}", r"hop\.slot_store"), {"race"}, "bounds"),
            "given back before it is read": (moved("consumer", "arrive {bounds.empty}", r"hop\.slot_load"), {"race"}, "bounds"),
            "given back before who loads has read it": (
                moved("producer", "arrive {bounds.empty}", r"hop\.slot_load"), {"race"}, "bounds",
            ),
            "the second one read from the slot of the first": (
                changed("consumer", r"= hop\.slot_load {bounds}", r"\[%\w+\]", "[%arg13]", 1), {"race"}, "bounds",
            ),
            "not given back by who loads": (dropped("producer", "arrive {bounds.empty}"), {"deadlock"}, "bounds.empty"),
            "given back by a thread of each warpgroup": (
                changed("consumer", "arrive {bounds.empty}", " all ", " "), {"deadlock"}, "bounds.empty",
            ),
        },
    },
    # Consumers of which one thread loads ahead.
    "prefetched": {
        **PRODUCT,
        "schedule": "producer=none,persistent=none,consumers=2,stages=2,store=direct",
        "blocks": 6,
        "damages": {
            "not waited for": (dropped("consumer", "wait {a.full}"), UNFILLED, "a"),
            "loaded before the slot is free": (dropped("consumer", "wait {a.empty}", 1), OVERWRITTEN, "a"),
            "not expected": (dropped("consumer", r"barrier\.expect {b.full}"), {"deadlock", "transaction-underflow"}, "b.full"),
            "given back before its product is done": (moved("consumer", "arrive {a.empty}", r"= hop\.mma_wait"), OVERWRITTEN, "a"),
            "not given back": (dropped("consumer", "arrive {a.empty}"), {"deadlock"}, "a.empty"),
        },
    },
    # A state that two consumers write together and multiply, in each of four steps.
    "second": {
        "defines": ["-DFORM=carried"],
        "extents": {"M": 128, "N": 256},
        "blocks": 1,
        "schedule": "persistent=none,consumers=2,stages=2,store=direct",
        "damages": {
            "read before all have written": (dropped("consumer", r"hop\.role_sync", 1), {"race"}, "operand"),
            "written before all have read": (dropped("consumer", r"hop\.role_sync", 0), OVERWRITTEN, "operand"),
            "read without a fence": (dropped("consumer", r"hop\.proxy_fence"), {"missing-proxy-fence"}, "operand"),
            "read by the own warpgroup alone": (
                changed("consumer", r"hop\.role_sync", "role_sync", "warpgroup_sync", 1), {"race"}, "operand",
            ),
        },
    },
    # The same of one consumer, whose rows one warp writes and all read.
    "second-alone": {
        "defines": ["-DFORM=carried", "-DBM=64", "-DK=64"],
        "extents": {"M": 64, "N": 256},
        "blocks": 1,
        "schedule": "persistent=none,consumers=1,stages=2,store=direct",
        "damages": {
            "read before all have written": (dropped("consumer", r"hop\.warpgroup_sync"), {"race"}, "operand"),
            "read without a fence": (dropped("consumer", r"hop\.proxy_fence"), {"missing-proxy-fence"}, "operand"),
        },
    },
    # Three tiles whose speculation fails, which the block runs again when it has run all.
    "retried": {
        "defines": ["-DD=64", "-DBM=128", "-DBN=64"],
        "extents": {"B": 1, "H": 1, "HK": 1, "SQ": 384, "SK": 128},
        "blocks": 1,
        "scalars": {"scale": 100},
        "schedule": "persistent=static,consumers=2,stages=2,overlap=1,speculate=true,store=direct,pingpong=false",
        "damages": {
            "read before all have met": (dropped("consumer", "wait {retry.meet}"), {"race"}, "retry.doubted"),
            "list read before all have met": (dropped("producer", "wait {retry.meet}"), {"race"}, "retry.list"),
            "cleared before all have read": (dropped("consumer", "wait {retry.meet}", 1), {"race"}, "retry.list"),
            "a thread does not come": (dropped("producer", "arrive {retry.meet}"), {"deadlock"}, "retry.meet"),
        },
    },
    # Eight tiles whose speculation fails, in two blocks: the first two are probes, and the others run exactly at once.
    "probed": {
        "defines": ["-DD=64", "-DBM=128", "-DBN=64"],
        "extents": {"B": 1, "H": 1, "HK": 1, "SQ": 1024, "SK": 128},
        "blocks": 2,
        "scalars": {"scale": 100},
        "schedule": "persistent=dynamic,consumers=2,stages=2,overlap=1,speculate=true,store=direct,pingpong=false",
        # So short a launch has no probes otherwise.
        "shorter": (r"constant 400 : index", "constant 8 : index"),
        "damages": {
            # Blocks give up after some time otherwise, and results are right.
            "not reported": (
                in_assembly(r"@is_probe red((?:.|\n)*?waits, polls), \d+;", r"@!is_probe red\1, -1;"), {"livelock", "deadlock"}, ""),
            "not reported in time": (in_assembly(r"@is_probe red", "@!is_probe red"), set(), ""),
            "not waited for": (dropped("consumer", "wait {retry.judged}"), {"race"}, "retry.doubted"),
            "a thread does not come": (dropped("consumer", "arrive {retry.judged}"), {"deadlock"}, "retry.judged"),
            "not set back": (in_assembly(r"@last st\.global\.u32 \[%rd\d+\+8\], zero;", ""), {"not-reset"}, ""),
        },
    },
}  # fmt: skip


def main(source, name, directory):
    case = CASES[name]
    os.makedirs(directory, exist_ok=True)
    bundle = os.path.join(directory, "kernel.bundle")
    command = ["tessera", "compile", source, *case["defines"], "--schedule", case["schedule"], "--no-database"]
    run([*command, "--ptx", "-o", bundle])
    with open(bundle) as f:
        Launch(json.load(f), case["extents"], case["blocks"], case.get("scalars", {}), case.get("fills", {})).write(directory)
    # With places in the source, which instructions keep: arrays are known by them.
    text = run([*command, "--emit", "barriers", "--mllvm=--mlir-print-debuginfo", "-o", "-"])
    if "shorter" in case:
        text = replaced(*case["shorter"])(text)
    failures = 0
    for damage, (change, kinds, label) in {"undamaged": (lambda program: None, set(), ""), **case["damages"]}.items():
        program = Program(text)
        change_assembly = change(program) or (lambda text: text)
        ptx = os.path.join(directory, damage.replace(" ", "-") + ".ptx")
        with open(ptx, "w") as f:
            f.write(change_assembly(translate("\n".join(program.lines))))
        code, found, output = simulate(ptx, directory, [])
        report = rf"error: \[({'|'.join(kinds)})\](?:(?!error:).)*\b{re.escape(label)}(\[|\+|:|, which this| and | after )"
        ok = code == 1 and re.search(report, output, re.S) if kinds else code == 0
        failures += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {damage}: {', '.join(sorted(found)) or 'nothing'}")
        if not ok:
            print(output)
    return failures


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
