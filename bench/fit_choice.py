"""Fits what tiles take, by which a launch chooses among alternatives, to records of bench/choice.py.

    bench/fit_choice.py RECORD.json...             says how well launches choose for the shapes of each by the compiler's
                                                   database, by a fit to the other records, and by one to all
    bench/fit_choice.py RECORD.json... --write     also writes the last to the database of schedules

An alternative takes the time of an iteration and that of a tile's ends (docs/bundle.md, "A choice"). In a record all
alternatives of a shape took turns, at one clock, so what is fitted is how their times compare in each shape: the squares
of the logarithms of measured over expected times, less their mean over the alternatives of the shape. The means count
little; they set the scale. Then the logarithms of what launches lose by their choices are added to what is minimized: times that
fit nearly as well may choose better. What every launch takes beside its tiles is fitted too and not written, as it is the same for
all. Records have to be of the entries that the database has, which hold for the programs that were measured. Those of an order
of tiles that kernels had before SECTIONS count without a mask only. float16 gets what was measured with bfloat16.

Needs libtessera; no GPU.
"""

import argparse
import copy
import functools
import json
import math
import pathlib
import re
import subprocess

import choice
import common
from common import cases

tessera = common.kernels.tessera
from tessera._compiler import _compile  # noqa: E402  which common puts on the path

ROOT = pathlib.Path(common.ROOT)
SOURCE = f"kernels/{cases.ATTENTION}.tile"
DATABASE = "kernels/schedules.json"
GPU = "NVIDIA H200"
#: The commit since which less than half a section of the grid joins the section before it.
SECTIONS = "245cdb9"
#: Ends of a tile, in iterations.
RATIOS = [index / 8 for index in range(65)]
#: How much the mean over the alternatives of a shape counts.
SCALE_WEIGHT = 0.05
#: How much it counts, once the times are near, what a launch loses by its choice.
CHOICE_WEIGHT = 1


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help=f"to {DATABASE}")
    return parser.parse_args()


def read_record(path):
    """Its shapes with more than one alternative. SystemExit where they may be of other schedules than those of today."""
    record = json.loads(path.read_text())
    shown = subprocess.run(["git", "show", f"{record['commit']}:{DATABASE}"], cwd=ROOT, capture_output=True, text=True)
    texts = shown.stdout or "{}", (ROOT / DATABASE).read_text()
    before, now = (json.loads(text).get("entries") for text in texts)
    if before != now:
        raise SystemExit(f"{path} is of commit {record['commit']}, where {DATABASE} had other entries")
    known = subprocess.run(["git", "merge-base", "--is-ancestor", SECTIONS, record["commit"]], cwd=ROOT).returncode == 0
    wanted = [entry for entry in record["results"] if len(entry["alternatives"]) > 1]
    return [entry for entry in wanted if known or entry["mask"] == "full"]


@functools.lru_cache(maxsize=None)
def compile_alternatives(d, mask, shape_class):
    """The bundle of a class, as JSON."""
    parameters = choice.configuration(d, mask, shape_class)["parameters"]
    request = _compile.make_request(parameters, image="ptx", shape_class=shape_class, alternatives=True)
    source = ROOT / SOURCE
    return json.loads(_compile.compile_bundle(source.read_bytes(), str(source), request, None))


@functools.lru_cache(maxsize=None)
def load_with(d, mask, shape_class, ratio=None):
    """Its kernel, with the times of the database, or whose iterations take a microsecond and ends so many of them."""
    bundle = copy.deepcopy(compile_alternatives(d, mask, shape_class))
    for alternative in bundle["choices"][0]["alternatives"]:
        alternative["model"].update({} if ratio is None else {"iteration_us": 1, "ends_us": ratio})
    return tessera.Bundle(json.dumps(bundle).encode()).kernel(cases.ATTENTION)


def read_name(name):
    """The parameters in the name of an alternative: of attention_fwd_BM128_BN64 {"BM": 128, "BN": 64}."""
    parts = re.findall("_([A-Z]+)([0-9]+)", name.removeprefix(cases.ATTENTION))
    return {key: int(value) for key, value in parts}


class Shape:
    """A shape of a record: the measured microseconds of each alternative, by its parameters as text."""

    def __init__(self, entry, classes):
        self.point = choice.Point(*(entry[name] for name in choice.Point.__dataclass_fields__))
        self.key = self.point.d, self.point.mask
        self.where = *self.key, classes.find(self.point)
        alternatives = compile_alternatives(*self.where)["choices"][0]["alternatives"]
        self.names = {name["kernel"]: json.dumps(name["parameters"], sort_keys=True) for name in alternatives}
        self.measured = {}  # Not each takes the heads of each shape, and records may be of fewer or of others.
        for name, milliseconds in entry["alternatives"].items():
            values = read_name(name).items()
            found = [each for each in alternatives if all(each["parameters"][key] == value for key, value in values)]
            if found:  # A name has the parameters that told alternatives apart then: the first has the defaults of others.
                self.measured[self.names[found[0]["kernel"]]] = milliseconds * 1000

    def ask(self, ratio=None):
        return load_with(*self.where, ratio).choice(**self.point.shape())

    @functools.cached_property
    def units(self):
        """What a launch of each should take for each ratio, where an iteration takes a microsecond."""
        expected = [self.ask(ratio).microseconds for ratio in RATIOS]
        return {text: [times[name] for times in expected] for name, text in self.names.items()}

    def to_fastest(self, fit=None):
        """The time of the alternative that a launch takes, by the database or a fit, over that of the fastest."""
        if fit:
            chosen = min(self.measured, key=lambda text: fit.predict(self, text))
        else:
            times = {self.names[name]: time for name, time in self.ask().microseconds.items()}
            chosen = min(self.measured, key=lambda text: times[text])
        return self.measured[chosen] / min(self.measured.values())


class Fit:
    """Times of the alternatives of a head dimension and mask: {parameters: [iteration, index of the ratio]}."""

    def __init__(self, shapes):
        self.shapes, self.launch = shapes, 5.0
        names = sorted({name for shape in shapes for name in shape.measured})
        self.times = {name: [1.0, RATIOS.index(2)] for name in names}
        self.choice_weight = 0
        self.search()
        self.choice_weight = CHOICE_WEIGHT
        self.search()

    def predict(self, shape, name):
        """Infinite for what was never measured, which a launch takes for slower too."""
        iteration, ratio = self.times.get(name, (math.inf, 0))
        return iteration * shape.units[name][ratio]

    def loss(self):
        total = 0
        for shape in self.shapes:
            errors = [math.log(time / (self.launch + self.predict(shape, name))) for name, time in shape.measured.items()]
            mean = sum(errors) / len(errors)
            total += sum((error - mean) ** 2 for error in errors) + SCALE_WEIGHT * mean**2
            total += self.choice_weight and self.choice_weight * math.log(shape.to_fastest(self))
        return total

    def search(self):
        """Goes along each number, and along both of an alternative, by steps that shrink."""
        step, least = 0.3, self.loss()
        while step > 0.001:
            before = least
            for name, times in self.times.items():
                for factor in (1 + step, 1, 1 / (1 + step)):
                    for move in (-8, -2, -1, 0, 1, 2, 8):
                        index = min(max(times[1] + move, 0), len(RATIOS) - 1)
                        least = self.try_times(name, [times[0] * factor, index], least)
                        times = self.times[name]
            for factor in (1 + step, 1 / (1 + step)):
                kept, self.launch = self.launch, self.launch * factor
                least, self.launch = (loss, self.launch) if (loss := self.loss()) < least else (least, kept)
            if least >= before:
                step /= 2

    def try_times(self, name, times, least):
        kept, self.times[name] = self.times[name], times
        loss = self.loss()
        if loss < least:
            return loss
        self.times[name] = kept
        return least


def report(what, ratios):
    near = sum(ratio <= choice.NEAR for ratio in ratios)
    print(f"{what}: {near} of {len(ratios)} within {choice.NEAR - 1:.0%} of the fastest, at worst {max(ratios):.3f}")


def fit_each(shapes):
    """{(d, mask): Fit}"""
    return {key: Fit([shape for shape in shapes if shape.key == key]) for key in sorted({shape.key for shape in shapes})}


def make_entries(fits, name):
    """What the database has of the fits by `name`: float16 like bfloat16."""
    for fit in fits.values():
        for text, (iteration, ratio) in fit.times.items():
            used = sum(text in shape.measured for shape in fit.shapes)
            for element_type in ("bf16", "f16"):
                parameters = {**json.loads(text), "T": element_type}
                kernel = tessera.compile(str(ROOT / SOURCE), image="ptx", **parameters)
                yield {
                    "program": kernel.description["report"]["tuning"]["program"],
                    "kernel": cases.ATTENTION,
                    "parameters": _compile.to_texts(parameters),
                    "gpu": GPU,
                    "iteration_us": round(iteration, 4),
                    "ends_us": round(iteration * RATIOS[ratio], 4),
                    "shapes": used,
                    "fit": name,
                }  # fmt: skip


def write(fits, paths):
    """Writes times of the fits to the database, by the last of their records."""
    records = sorted(str(path.resolve().relative_to(ROOT)) for path in paths)
    name = pathlib.Path(records[-1]).stem
    entries = list(make_entries(fits, name))
    database = json.loads((ROOT / DATABASE).read_text())
    found = {entry["program"]: entry for entry in (*database.get("times", ()), *entries)}
    key = lambda entry: (entry["kernel"], sorted(entry["parameters"].items()))  # noqa: E731
    database["times"] = sorted(found.values(), key=key)
    known = {**database.get("fits", {}), name: records}
    database["fits"] = {fit: known[fit] for fit in {times["fit"] for times in database["times"]}}
    (ROOT / DATABASE).write_text(json.dumps(database, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    print(f"{DATABASE}: times of {len(found)} programs")


def main():
    options = parse_arguments()
    classes = choice.Classes()
    records = {path: [Shape(entry, classes) for entry in read_record(path)] for path in options.records}
    fits = fit_each([shape for shapes in records.values() for shape in shapes])
    for path, shapes in records.items():
        others = [shape for other in records if other != path for shape in records[other]]
        report(f"{path.stem} by the database", [shape.to_fastest() for shape in shapes])
        if others:
            fitted = fit_each(others)
            known = [shape for shape in shapes if shape.key in fitted]
            report(f"{path.stem} by the others", [shape.to_fastest(fitted[shape.key]) for shape in known])
        report(f"{path.stem} by all", [shape.to_fastest(fits[shape.key]) for shape in shapes])
    for (d, mask), fit in fits.items():
        print(f"d = {d}, {mask}: {fit.launch:.1f} us for a launch")
        for text, (iteration, ratio) in fit.times.items():
            sizes = json.loads(text)
            print(f"  BM = {sizes['BM']}, BN = {sizes['BN']}: {iteration:.3f} us, ends {iteration * RATIOS[ratio]:.3f} us")
    if options.write:
        write(fits, options.records)


if __name__ == "__main__":
    main()
