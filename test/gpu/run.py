#!/usr/bin/env python3
"""Runs the kernels on the GPU and checks them against float64.

    python3 test/gpu/run.py                    everything, compiled in process by libtessera
    python3 test/gpu/run.py --bundles DIR      from bundles that build_bundles.py made elsewhere
    python3 test/gpu/run.py --quick            a few shapes, fewer repetitions
    python3 test/gpu/run.py --memcheck         a few shapes under compute-sanitizer

Kernels run in a process of their own. One that hangs or breaks the CUDA context is reported, its process
ended, and the rest goes on in a new one. Exits with 1 when anything failed. The last line reads
"N passed, N failed, N skipped".
"""

import argparse
import collections
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
# Importing PyTorch and making a context may take that long.
START_SECONDS = 180
# Exit status that makes compute-sanitizer's findings distinguishable.
SANITIZER_STATUS = 86


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundles", metavar="DIR", help="directory with index.json, of build_bundles.py")
    parser.add_argument("--quick", action="store_true", help="a few shapes")
    parser.add_argument("--memcheck", action="store_true", help="under compute-sanitizer memcheck")
    parser.add_argument("--sanitizer", default="compute-sanitizer", metavar="PATH", help="its program")
    parser.add_argument("--groups", default=",".join(cases.GROUPS), help="comma-separated, of the default")
    parser.add_argument("--only", default="", metavar="TEXT", help="only configurations whose name has TEXT")
    parser.add_argument("--repetitions", type=int, help="launches that must be bit-identical (1000; quick: 50)")
    parser.add_argument("--hang", type=float, default=20, metavar="SECONDS", help="without progress is a hang")
    parser.add_argument("--max-restarts", type=int, default=8, metavar="N", help="hangs and crashes before giving up")
    parser.add_argument("--max-failures", type=int, default=3, metavar="N", help="shown of a configuration")
    parser.add_argument("--json", metavar="FILE", help="write every result there")
    return parser.parse_args()


class Tally:
    """What happened so far, printed configuration by configuration."""

    def __init__(self, configurations, max_failures):
        self.configurations, self.max_failures = configurations, max_failures
        self.counts = collections.Counter()
        self.shares = collections.defaultdict(list)
        self.failures = collections.Counter()
        self.records = []
        self.finished = set()

    def fail(self, number, case, problems):
        self.counts["failed"] += 1
        self.failures[number] += 1
        self.records.append({"name": self._name(number), "case": case, "problems": problems})
        if self.failures[number] <= self.max_failures:
            print(f"FAILED   {self._name(number)}  {format_case(case)}")
            for problem in problems:
                for line in problem.splitlines():
                    print(f"             {line}", flush=True)

    def take(self, message):
        """Counts a message of the worker."""
        if "passed" in message:
            self.counts["passed"] += 1
            self.shares[message["passed"]].append((message["share"], message["case"]))
            self.records.append(
                {"name": self._name(message["passed"]), "case": message["case"], "share": message["share"]}
            )
        elif "failed" in message:
            self.fail(message["failed"], message["case"], message["problems"])
        elif "skipped" in message:
            self._set_aside(message["skipped"], "skipped", message["reason"])
        elif "refused" in message:
            number = message["refused"]
            if self.configurations[number]["may_be_refused"]:
                self._set_aside(number, "refused", message["reason"])
            else:
                self.fail(number, "compiling", [message["reason"]])
                self.finished.add(number)
        elif "done" in message:
            self.finish(message["done"])
        elif "device" in message:
            print(f"{message['device']}, PyTorch {message['torch']}", flush=True)

    def _set_aside(self, number, what, reason):
        self.counts["skipped"] += 1
        self.finished.add(number)
        self.records.append({"name": self._name(number), what: reason})
        print(f"{what:8} {self._name(number)}: {reason.splitlines()[0]}", flush=True)

    def finish(self, number):
        self.finished.add(number)
        shares, failed = self.shares[number], self.failures[number]
        worst = max(shares, key=lambda entry: entry[0], default=None)
        text = f"; at most {worst[0]:.2f} of the limit, {format_case(worst[1])}" if worst else ""
        print(
            f"{'FAILED' if failed else 'ok':8} {self._name(number)}  {len(shares)} passed, {failed} failed{text}",
            flush=True,
        )

    def _name(self, number):
        return self.configurations[number]["name"] if number is not None else "(start)"


def format_case(case):
    if isinstance(case, str):
        return case
    return " ".join(f"{key}={value}" for key, value in case.items())


class Worker:
    """A process that runs configurations, and the thread that reads what it prints."""

    def __init__(self, command, environment, request):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment, cwd=HERE,
        )  # fmt: skip
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.process.stdin.write(json.dumps(request))
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # It ended at once; what it printed says why.

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def next_line(self, seconds):
        """A line, None at the end of the output; queue.Empty when there is none in time."""
        return self.lines.get(timeout=seconds)


def run_worker(options, tally, todo):
    """Runs the configurations `todo` until all are done or the process ends. Returns False when it never got
    to a configuration."""
    request = {
        "bundles": os.path.abspath(options.bundles) if options.bundles else None,
        "mode": "memcheck" if options.memcheck else "quick" if options.quick else "full",
        "repetitions": options.repetitions,
        "configurations": [(number, tally.configurations[number]) for number in todo],
    }
    worker = Worker(options.command, options.environment, request)
    current, case, noise, hung = None, "starting", collections.deque(maxlen=60), False
    while True:
        try:
            line = worker.next_line(START_SECONDS if current is None else options.hang)
        except queue.Empty:
            hung = True
            worker.process.kill()
            break
        if line is None:
            break
        if not line.startswith("@"):
            noise.append(line.rstrip())
            continue
        message = json.loads(line[1:])
        if "begin" in message:
            current, case = message["begin"], message["case"]
        tally.take(message)
    status = worker.process.wait()
    if hung:
        reason = "no progress for {:.0f} s: ".format(START_SECONDS if current is None else options.hang)
        reason += "PyTorch does not start" if current is None else "the kernel hangs"
        tally.fail(current, case, [reason] + list(noise)[-5:])
    elif status == SANITIZER_STATUS:
        tally.fail(current, case, ["compute-sanitizer found errors:"] + list(noise))
    elif status == 3:
        pass  # The worker has reported the kernel that broke its context.
    elif status:
        tally.fail(current, case, [f"the process ended with status {status}"] + list(noise)[-15:])
    if (hung or status) and current is not None and current not in tally.finished:
        tally.finish(current)
    return current is not None


def prepare(options):
    """Fills in what depends on the machine."""
    options.environment = dict(os.environ, PYTHONUNBUFFERED="1")
    options.command = [sys.executable, os.path.join(HERE, "worker.py")]
    if options.repetitions is None:
        options.repetitions = 0 if options.memcheck else 50 if options.quick else 1000
    if not options.memcheck:
        return
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    program = shutil.which(options.sanitizer) or shutil.which(os.path.join(home, "bin", "compute-sanitizer"))
    if not program:
        raise SystemExit(
            f"{options.sanitizer} is neither on PATH nor in {home}/bin; it comes with the CUDA toolkit (and the "
            "wheel nvidia-cuda-sanitizer-api): name it with --sanitizer"
        )
    options.command = [program, "--tool", "memcheck", "--error-exitcode", str(SANITIZER_STATUS)] + options.command
    # Every tensor is an allocation of its own, so that memcheck sees where it ends.
    options.environment["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    options.hang = max(options.hang, 300)


def main():
    options = parse_arguments()
    prepare(options)
    configurations = [c for c in cases.configurations(options.groups.split(",")) if options.only in c["name"]]
    if not configurations:
        raise SystemExit(f"no configuration has '{options.only}' in its name")
    tally = Tally(configurations, options.max_failures)
    start, workers = time.monotonic(), 0
    while True:
        todo = [number for number in range(len(configurations)) if number not in tally.finished]
        if options.memcheck:
            todo = todo[:1]  # The sanitizer reports at exit: one process for each kernel.
        if todo and workers > options.max_restarts and not options.memcheck:
            tally.fail(
                None, "giving up", [f"{len(todo)} configurations were not run, after {workers} hangs and crashes"]
            )
            break
        workers += 1
        before = len(tally.finished)
        if not todo or not run_worker(options, tally, todo):
            break
        if options.memcheck:
            tally.finished.update(todo)
        if len(tally.finished) == before:
            raise SystemExit("the worker ended without an error and without a result")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(tally.records, file, indent=1)
    print(f"{time.monotonic() - start:.0f} s")
    counts = tally.counts
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    sys.exit(1 if counts["failed"] or not counts["passed"] else 0)


if __name__ == "__main__":
    main()
