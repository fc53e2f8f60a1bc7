"""What the benchmarks share: timing, the state of the GPU, results."""

import argparse
import concurrent.futures
import contextlib
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import threading

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "test", "gpu"))

import cases  # noqa: E402
import kernels  # noqa: E402
import plot  # noqa: E402

# A kernel whose result is further from the peers', relative to the norm, is wrong and not worth timing.
MAX_ERROR = 1e-2


def argument_parser(description, gpu=True, schedules=True):
    """The options that every benchmark has: on the GPU if `gpu`, and with schedules of choice if `schedules`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(ROOT, "bench", "results"), metavar="DIR", help="for results")
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="for the names of the results")
    parser.add_argument("--commit", default=git_commit(), help="what is measured, for the names of the results")
    if gpu:
        parser.add_argument(
            "--bundles", metavar="DIR", help="of test/gpu/build_bundles.py; otherwise libtessera compiles"
        )
        if schedules:
            group = parser.add_mutually_exclusive_group()
            group.add_argument("--schedule", default="", help="instead of the compiler's choice")
            group.add_argument(
                "--schedules", metavar="A;B;...", help="several, timed in turns; 'default' is the compiler's choice"
            )
        timed = "of timed work for each contestant, and as much before it that is not timed"
        parser.add_argument("--milliseconds", type=float, default=400, help=timed)
        parser.add_argument("--rounds", type=int, default=10,
                            help="in which the contestants take turns; best a multiple of twice their number")  # fmt: skip
        parser.add_argument("--no-peers", action="store_true", help="time our kernels only")
    return parser


def numbers(text):
    """The numbers of an option, separated by commas."""
    return tuple(map(int, text.split(",")))


def sizes(text):
    """The extents of an option: MxNxK,..."""
    return tuple(numbers(size.replace("x", ",")) for size in text.split(","))


def add_list_option(parser):
    """--list, after which a benchmark calls `write_list` and ends."""
    parser.add_argument("--list", metavar="FILE", help="write the kernels of all this for build_bundles.py, and end")


def write_list(options, configurations):
    replace_file(options.list, json.dumps(list(configurations), indent=1) + "\n")


def git_commit():
    try:
        command = ["git", "-C", ROOT, "rev-parse", "--short=10", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


class Monitor:
    """Samples the SM clock (MHz) and the power (W) of the GPU while contestants run; None without pynvml."""

    def __init__(self):
        try:
            import pynvml

            pynvml.nvmlInit()
            self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception:  # The module raises its own error without a library or a device; both are optional.
            self.nvml = None

    @contextlib.contextmanager
    def sampling(self, samples):
        """Appends (clock, power) to `samples` until the end of the block."""
        if not self.nvml:
            yield
            return
        stop = threading.Event()
        thread = threading.Thread(target=self._sample, args=(stop, samples), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _sample(self, stop, samples):
        while not stop.wait(0.01):
            clock = self.nvml.nvmlDeviceGetClockInfo(self.handle, self.nvml.NVML_CLOCK_SM)
            samples.append((clock, self.nvml.nvmlDeviceGetPowerUsage(self.handle) / 1000))


def balanced_orders(count):
    """Orders of range(count), of which all together let each number follow each other one equally often.

    E. J. Williams, "Experimental designs balanced for the estimation of residual effects of treatments", 1949: `count`
    orders, or twice as many for an odd one.
    """
    zigzag = [(step + 1) // 2 if step % 2 else -step // 2 for step in range(count)]
    orders = [[(first + start) % count for first in zigzag] for start in range(count)]
    return orders + [order[::-1] for order in orders] if count % 2 else orders


class Stopwatch:
    """Times functions that queue work on the current stream, with the L2 flushed before each call."""

    def __init__(self, milliseconds, rounds):
        import torch

        self.torch, self.milliseconds, self.rounds = torch, milliseconds, rounds
        self.flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
        self.monitor = Monitor()

    def _time(self, function, count):
        """Milliseconds of `count` calls."""
        pairs = []
        for _ in range(count):
            self.flush.zero_()
            pair = [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]
            pair[0].record()
            function()
            pair[1].record()
            pairs.append(pair)
        self.torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    def compare(self, contestants):
        """Times the functions of a dict in turns. At its power limit a card takes a while to the clock that a kernel's
        own power leaves: the first half of each turn is not timed, and the orders of the turns are balanced. Returns for
        each name {"ms": median, "ms_min", "ms_max", "spread": what lies between the quartiles over the median, "mhz",
        "watts"}; the last two are None without pynvml."""
        counts, times, samples = {}, {}, {}
        for name, function in contestants.items():
            self._time(function, 2)
            estimate = statistics.median(self._time(function, 3))
            counts[name] = max(3, min(200, int(self.milliseconds / self.rounds / estimate)))
            times[name], samples[name] = [], []
        names, orders = list(contestants), balanced_orders(len(contestants))
        for turn in range(self.rounds):
            for name in (names[number] for number in orders[turn % len(orders)]):
                function = contestants[name]
                self._time(function, counts[name])
                with self.monitor.sampling(samples[name]):
                    times[name] += self._time(function, counts[name])
        return {name: self._summary(times[name], samples[name]) for name in contestants}

    @staticmethod
    def _summary(times, samples):
        clocks, powers = zip(*samples) if samples else ([], [])
        lower, median, upper = statistics.quantiles(times, n=4)
        return {
            "ms": median,
            "ms_min": min(times),
            "ms_max": max(times),
            "spread": (upper - lower) / median,
            "mhz": statistics.median(clocks) if clocks else None,
            "watts": max(powers) if powers else None,
        }


def call_ahead(calls):
    """Calls functions side by side, so that what they compile has all cores. What fails does so again where it is measured."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for future in [pool.submit(call) for call in calls]:
            with contextlib.suppress(Exception):
                future.result()


def capture(calls):
    """A CUDA graph of calls, so that the host takes no part; what they read in turn should be more than the L2 has."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        calls[0]()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def time_replay(graph):
    """Microseconds of a replay."""
    import torch

    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    events[0].record()
    graph.replay()
    events[1].record()
    events[1].synchronize()
    return 1000 * events[0].elapsed_time(events[1])


def time_graph(calls, rounds):
    """Microseconds of a call, of a CUDA graph of them."""
    graph = capture(calls)
    return statistics.median([time_replay(graph) for _ in range(rounds + 1)][1:]) / len(calls)


def find_error(results, expected):
    """The largest error of tensors relative to the norm of what is expected."""
    if not isinstance(results, (tuple, list)):
        results, expected = [results], [expected]
    errors = [((x.float() - y.float()).norm() / (y.float().norm() + 1e-30)).item() for x, y in zip(results, expected)]
    return max(errors)


def settle(call):
    """The results of a call when nothing that it takes is compiled beside the program any more: until then calls of Tessera go on
    with kernels for other shapes."""
    from tessera._attention import _variants  # that of the installed package, or of this checkout

    results = call()
    while _variants.finish_aside():
        results = call()
    return results


def wanted_schedules(options):
    """The schedules to time, in order; an empty one is the compiler's choice."""
    if options.schedules is None:
        return [options.schedule]
    wanted = [schedule.strip() for schedule in options.schedules.split(";")]
    return list(dict.fromkeys("" if schedule == "default" else schedule for schedule in wanted))


def load_kernel(source, configuration):
    """The kernel, or None after a line that says why there is none."""
    try:
        return source.load(configuration)
    except (kernels.Missing, kernels.Refused) as error:
        print(f"{configuration['name']}: {error}", flush=True)
        return None


def load_kernels(source, configurations):
    """{what to call it: kernel} of configurations of one kernel that differ in their schedules, less those that there
    are not, of which a line says why."""
    loaded = {c.get("variant") or c["schedule"] or "default": load_kernel(source, c) for c in configurations}
    return {name: kernel for name, kernel in loaded.items() if kernel}


def measure_kernels(point, flops, kernels, prepare, find_peers, stopwatch):
    """Records of one point, a dict, one for each of the kernels of `load_kernels`.

    `prepare` makes of a kernel a function without arguments that launches it, and one that gives the error of its
    result. All kernels that are right are timed in turns with the functions that `find_peers` returns by name.
    """
    records, contestants = [], {}
    for name, kernel in kernels.items():
        run, find_error = prepare(kernel)
        run()
        record = {**point, "variant": name, "schedule": kernel.schedule, "error": find_error()}
        records.append(record)
        if record["error"] < MAX_ERROR:
            contestants["tessera", name] = run
        else:
            record["wrong"] = True
    if not contestants:
        return records
    rivals = find_peers()
    timings = stopwatch.compare({**contestants, **rivals})
    for timing in timings.values():
        timing["tflops"] = flops / timing["ms"] / 1e9
    for record in records:
        if not record.get("wrong"):
            own = timings["tessera", record["variant"]]
            record["timings"] = {"tessera": own, **{name: timings[name] for name in rivals}}
    return records


def make_rotation(d):
    """Random signs of rows times Sylvester's matrix, [d, d] of +1 and -1."""
    import torch

    matrix = torch.ones(1, 1)
    while len(matrix) < d:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return ((torch.randint(0, 2, (d, 1)) * 2 - 1) * matrix).cuda()


def to_row(record, columns, peers):
    """The row of a table for a record: `columns` of the point, the schedule that was asked for, TFLOP/s of ours and
    of the peers, our share of the best peer's, the spread of our times, and the state of the GPU while ours ran."""
    timings = record.get("timings", {})
    row = {**{column: record[column] for column in columns}, "schedule": record["variant"]}
    for name in ("tessera", *peers):
        row[name] = timings.get(name, {}).get("tflops")
    if record.get("wrong"):
        row["tessera"] = f"wrong ({record['error']:.2g})"
    rivals = [row[name] for name in peers if row[name]]
    row["to best"] = f"{row['tessera'] / max(rivals):.2f}" if timings and rivals else None
    spread = timings.get("tessera", {}).get("spread")
    row["spread"] = None if spread is None else f"{spread:.1%}"
    row["MHz"] = timings.get("tessera", {}).get("mhz")
    row["W"] = timings.get("tessera", {}).get("watts")
    return row


def print_row(row, *hidden):
    """A line of what a row has, but for the columns `hidden`."""
    shown = {key: value for key, value in row.items() if value is not None and key not in hidden}
    print(", ".join(f"{key} {format_cell(value)}" for key, value in shown.items()), flush=True)


def describe_gpu():
    import torch

    properties = torch.cuda.get_device_properties(0)
    return {
        "gpu": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


def find_number(name, card):
    """A number of kernels/cards.json: of the card of this name, or of the default one."""
    with open(os.path.join(ROOT, "kernels", "cards.json")) as file:
        numbers = [number for number in json.load(file)["numbers"] if number["name"] == name]
    return next((x["value"] for x in numbers if x.get("card") == card), next(x["value"] for x in numbers if "card" not in x))


def describe_cpu():
    model = platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        match = re.search(r"model name\s*: (.*)", file.read())
        model = match.group(1) if match else model
    return {"cpu": model, "cores": os.cpu_count()}


def markdown_table(rows):
    """A table of dicts with the same keys."""
    if not rows:
        return "(nothing was measured)\n"
    columns = list(rows[0])
    cells = [[format_cell(row.get(column)) for column in columns] for row in rows]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in cells]) + "\n"


def format_cell(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    return str(value)


class Results:
    """<out>/<date>-<machine>-<commit>-<name>.json and .md, and with matplotlib .svg.

    `machine` is a dict of facts with "gpu" or "cpu", `method` a sentence. Both files are written anew, and replaced at
    once, with everything so far whenever `write` is called: what is interrupted leaves what it has measured.
    """

    def __init__(self, options, name, machine, method):
        self.header = {"benchmark": name, "date": options.date, "commit": options.commit, **machine}
        facts = ", ".join(f"{key} {value}" for key, value in machine.items())
        self.heading = f"# {name}, {options.date}, commit {options.commit}\n\n{facts}\n\n{method}\n"
        slug = re.sub(r"[^a-z0-9]+", "-", (machine.get("gpu") or machine["cpu"]).lower()).strip("-")
        os.makedirs(options.out, exist_ok=True)
        self.path = os.path.join(options.out, f"{options.date}-{slug}-{options.commit}-{name}")
        self.records, self.written = [], False

    def add(self, measured, to_row, *hidden):
        """Prints the rows that `to_row` makes of what was measured, less the columns `hidden`, and writes all so far."""
        for record in measured:
            print_row(to_row(record), *hidden)
        self.records += measured
        self.write([to_row(record) for record in self.records], self.records)

    def write(self, rows, records, *tables):
        """`rows` make the table and `tables` those after it, `records` hold all."""
        replace_file(self.path + ".json", json.dumps({**self.header, "results": records}, indent=1) + "\n")
        parts = [self.heading, *(markdown_table(table) for table in (rows, *tables))]
        replace_file(self.path + ".md", "\n".join(parts))
        self.written = True

    def finish(self):
        """Says where the results are, and draws them where that can be done."""
        if not self.written:
            print("nothing was measured, so nothing is written")
            return
        print(f"wrote {self.path}.json and .md")
        print(plot.draw(self.path + ".json"))


def replace_file(path, text):
    """Writes a file that is seen with its old or its new text, never with a part of it."""
    with open(path + ".part", "w") as file:
        file.write(text)
    os.replace(path + ".part", path)
