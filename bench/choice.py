"""Which of its alternatives attention forward takes, over shapes drawn at random: is it the fastest, and how does it
compare with the peers?

bf16, BSHD storage, as many queries as keys. d is 64, 128 or 256, the mask full or causal, the batch 1 to 64, heads 4 to
64 in groups of 1 to 16, lengths 64 to 32k, few of them powers of two. What would take more than --gigabytes of memory or
--teraflop of arithmetic is drawn again. Each shape has the kernel of its class of shapes (docs/tuning.md) with all of its
alternatives, which are timed in turns with the peers of bench/attention.py. The time of the choice is that of the
alternative that `kernel.choice` names.

Bundles: --list FILE with the options of the run, where the compiler is, then test/gpu/build_bundles.py --groups= --extra
FILE. Results are written after each shape. --former RECORD goes on with a run that was ended before its last shape, of the
same commit and options on such a GPU: one record is of both.
"""

import dataclasses
import json
import math
import random
import statistics

import attention
import common
import peers
from common import cases

WIDTHS = (64, 128, 256)
GROUPS = (1, 2, 4, 8, 16)
#: How near to the fastest alternative the choice has to be.
NEAR = 1.03


@dataclasses.dataclass(frozen=True)
class Point:
    """A problem. The order of the fields is that of the columns of the table."""

    d: int
    mask: str
    batch: int
    heads: int
    kv_heads: int
    seqlen: int

    def shape(self):
        return {"B": self.batch, "H": self.heads, "HK": self.kv_heads, "SQ": self.seqlen, "SK": self.seqlen}

    def bytes(self):
        """Of Q, K, V and O."""
        return 2 * self.batch * self.seqlen * self.d * 2 * (self.heads + self.kv_heads)

    def flops(self):
        pairs = self.seqlen**2 / (2 if self.mask == "causal" else 1)
        return 4 * pairs * self.d * self.heads * self.batch


def draw_between(rng, low, high):
    """A number whose logarithm is as likely anywhere."""
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def draw_points(options):
    """Shapes that differ, of a seed."""
    rng, found = random.Random(options.seed), {}
    while len(found) < options.shapes:
        group = rng.choice(GROUPS)
        kv_heads = rng.randint(-(-4 // group), 64 // group)
        batch, seqlen = draw_between(rng, 1, 64), draw_between(rng, 64, 32768)
        point = Point(rng.choice(options.widths), rng.choice(attention.MASKS), batch, kv_heads * group, kv_heads, seqlen)
        if point.bytes() <= options.gigabytes * 1e9 and point.flops() <= options.teraflop * 1e12:
            found[point] = None
    return list(found)


def configuration(d, mask, shape_class):
    parameters = {"T": "bf16", "D": d, "CAUSAL": mask == "causal"}
    return cases.configuration(cases.ATTENTION, parameters, shape_class=shape_class, alternatives=True)


class Classes:
    """The classes of shapes, by the compiler."""

    def __init__(self):
        self.programs = {}

    def find(self, point):
        key = point.d, point.mask
        if key not in self.programs:
            path = f"{common.ROOT}/kernels/{cases.ATTENTION}.tile"
            self.programs[key] = common.kernels.tessera.Program(path, T="bf16", D=point.d, CAUSAL=point.mask == "causal")
        return self.programs[key].shape_class(**point.shape())


class ListedClasses:
    """The classes of shapes, as --list wrote them."""

    def __init__(self, source):
        self.entries = [entry for entry in source.entries.values() if entry.get("alternatives") and "for" in entry]

    def find(self, point):
        parameters = configuration(point.d, point.mask, "")["parameters"]
        for entry in self.entries:
            if entry["parameters"] == parameters and point.shape() in entry["for"]:
                return entry["shape_class"]
        raise SystemExit(f"no bundle of {cases.ATTENTION} is for {point}; give the options that --list had")


def parse_arguments(arguments=None):
    parser = peers.add_options(common.argument_parser(__doc__, schedules=False))
    parser.add_argument("--shapes", type=int, default=200, help="how many (default: %(default)s)")
    parser.add_argument("--widths", type=common.numbers, default=WIDTHS, help="head dimensions (default: 64,128,256)")
    parser.add_argument("--seed", type=int, default=13, help="other shapes (default: %(default)s)")
    parser.add_argument("--gigabytes", type=float, default=4, help="the most memory of tensors (default: %(default)s)")
    parser.add_argument("--teraflop", type=float, default=10, help="the most arithmetic (default: %(default)s)")
    parser.add_argument("--former", metavar="RECORD", help="the .json of a run whose shapes are not measured again")
    common.add_list_option(parser)
    parser.set_defaults(milliseconds=60, rounds=6)
    return parser.parse_args(arguments)


def write_list(options):
    classes, wanted = Classes(), {}
    for point in draw_points(options):
        found = configuration(point.d, point.mask, classes.find(point))
        wanted.setdefault(found["name"], {**found, "for": []})["for"].append(point.shape())
    common.write_list(options, wanted.values())


def summarize(point, choice, records):
    """The row and the record of a shape, of the records of its alternatives; None where none of them was timed."""
    timed = {record["variant"]: record["timings"] for record in records if "timings" in record}
    wrong = [record["variant"] for record in records if record.get("wrong")]
    if choice.name not in timed:
        return None
    own = {name: timings["tessera"]["ms"] for name, timings in timed.items()}
    rivals = {name: timing["ms"] for name, timing in timed[choice.name].items() if name != "tessera"}
    judges = [rivals[name] for name in attention.JUDGES if name in rivals]
    chosen, fastest = own[choice.name], min(own, key=own.get)
    return {
        **dataclasses.asdict(point),
        "chosen": choice.name,
        "fastest": fastest,
        "wrong": wrong,
        "ms": chosen,
        "to fastest": chosen / own[fastest],
        "to expected": chosen / (choice.microseconds[choice.name] / 1000),
        "tflops": point.flops() / chosen / 1e9,
        "to judges": min(judges) / chosen if judges else None,
        "expected": {name: choice.microseconds[name] for name in own},
        "alternatives": own,
        "peers": rivals,
    }


def to_row(record):
    """What a table has of a record."""
    brief = {**record, "chosen": record["chosen"].removeprefix(cases.ATTENTION + "_"),
             "fastest": record["fastest"].removeprefix(cases.ATTENTION + "_")}  # fmt: skip
    for name in ("to fastest", "to expected", "to judges"):
        brief[name] = None if brief[name] is None else f"{brief[name]:.3f}"
    brief["wrong"] = ", ".join(record["wrong"]) or None
    return {key: value for key, value in brief.items() if key not in ("expected", "alternatives", "peers", "ms")}


def summary_rows(records):
    """By head dimension and mask, and of all: how often the choice is near the fastest, and the rate over that of the
    faster of the judges."""
    keys = sorted({(record["d"], record["mask"]) for record in records})
    for key in (*keys, None):
        found = [record for record in records if key in (None, (record["d"], record["mask"]))]
        judged = [record["to judges"] for record in found if record["to judges"]]
        yield {
            "d": key[0] if key else "all", "mask": key[1] if key else "all", "shapes": len(found),
            "within 3%": f"{sum(record['to fastest'] <= NEAR for record in found) / len(found):.1%}",
            "worst to fastest": f"{max(record['to fastest'] for record in found):.3f}",
            "mean to fa3, cudnn": f"{statistics.geometric_mean(judged):.3f}" if judged else None,
            "worst": f"{min(judged):.2f}" if judged else None,
        }  # fmt: skip


def read_former(path, header, points):
    """{point: record} of a former run; SystemExit where it is of something else than this one."""
    with open(path) as file:
        former = json.load(file)
    for name, value in header.items():
        if name != "date" and former.get(name) != value:
            raise SystemExit(f"{path} has {name} {former.get(name)}, and this run {value}")
    fields = [field.name for field in dataclasses.fields(Point)]
    found = {Point(*(record[name] for name in fields)): record for record in former["results"]}
    strange = [point for point in found if point not in points]
    if strange:
        raise SystemExit(f"{path} has {strange[0]}, which is no shape of this run; give the options that it had")
    return found


def measure(kernel, point, options, stopwatch):
    """The record of a shape."""
    problem = attention.Problem(point.d, point.seqlen, point.mask == "causal", "bf16", point.batch, point.heads,
                                kv_heads=point.kv_heads)  # fmt: skip
    if kernel.alternatives:
        choice = kernel.choice(**point.shape())
        # Not each takes the heads of each shape.
        alternatives = {name: kernel.alternative(name) for name, time in choice.microseconds.items() if math.isfinite(time)}
    else:
        choice = common.kernels.tessera.Choice(kernel.name, 0, {kernel.name: math.nan})
        alternatives = {kernel.name: kernel}
    records = attention.measure(alternatives, problem, dataclasses.asdict(point), options, stopwatch)
    return summarize(point, choice, records)


def main():
    options = parse_arguments()
    if options.list:
        return write_list(options)
    import torch

    source = common.kernels.open_source(options.bundles)
    classes = ListedClasses(source) if options.bundles else Classes()
    stopwatch = common.Stopwatch(options.milliseconds, options.rounds)
    method = (
        f"Attention forward, bf16, {options.shapes} shapes of seed {options.seed}: the alternative that a launch takes "
        "against the fastest (medians of CUDA-event times, L2 flushed, contestants in turns) and against the peers."
    )
    results, kernels = common.Results(options, "choice", common.describe_gpu(), method), {}
    points = draw_points(options)
    former = read_former(options.former, results.header, points) if options.former else {}
    records = list(former.values())
    for point in points:
        if point in former:
            continue
        wanted = configuration(point.d, point.mask, classes.find(point))
        if wanted["name"] not in kernels:
            kernels[wanted["name"]] = common.load_kernel(source, wanted)
        if not kernels[wanted["name"]]:
            continue
        torch.manual_seed(0)
        record = measure(kernels[wanted["name"]], point, options, stopwatch)
        if record is None:
            print(f"{point}: the alternative that a launch takes is wrong", flush=True)
            continue
        records.append(record)
        common.print_row(to_row(record))
        results.write(list(summary_rows(records)), records, [to_row(record) for record in records])
        torch.cuda.empty_cache()
    for row in summary_rows(records) if records else ():
        common.print_row(row)
    results.finish()


if __name__ == "__main__":
    main()
