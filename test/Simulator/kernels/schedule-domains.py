# RUN: %python %s %source
"""Every documented value of every schedule field, and pairs of those that divide registers and slots: a kernel with it
is refused with numbers or with what would work, or runs and computes what the interpreter does. Of each field some value runs."""

import concurrent.futures
import itertools
import json
import os
import re
import subprocess
import sys

REFUSED = 3  # the exit code of tessera when a source, with its schedule, does not compile


def documented():
    """The values of each field, as the tool names them; the table of docs/generated/tile.md is made of the same records."""
    command = ["tessera", "params", "--schedule-fields", "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def configurations(fields):
    """Yields schedules with the number of consumers, by which the rows of the tile are divided."""
    for field, values in fields.items():
        for value in values:
            yield int(value) if field == "consumers" else 2, f"{field}={value}"
    # What a launch gives a block depends on its warpgroups, and what a ring holds on the shape of the loop.
    for consumers, registers in itertools.product((1, 3, 4), ("24", "32", "64", "96", "120", "200", "256")):
        yield consumers, f"producer_registers={registers}"
    for consumers, registers in itertools.product((1, 3, 4), ("88", "104", "112", "120", "160", "168", "248", "256")):
        yield consumers, f"consumer_registers={registers}"
    for consumers, registers in itertools.product((1, 2, 3, 4), ("112", "128", "168", "248", "256")):
        yield consumers, f"producer=none,consumer_registers={registers}"
    for producer, consumer in (("40", "232"), ("40", "240"), ("168", "168"), ("168", "176"), ("176", "160")):
        yield 2, f"producer_registers={producer},consumer_registers={consumer}"
    for overlap, stages in itertools.product(fields["overlap"], ("1", "2")):
        yield 2, f"overlap={overlap},stages={stages},pingpong=true"


def run(kernel, consumers, schedule):
    """The outcome of one configuration: "runs", "refused", or what is wrong."""
    command = ["tessera", "run", kernel, "-DD=64", f"-DBM={64 * consumers}", "-DBN=32", "--no-database"]
    command += ["--shape", "B=1,H=2,HK=1,SQ=67,SK=131", "--set", "scale=0.125", "--device", "sim", "--sim-blocks", "2"]
    command += ["--threads", "1", "--check", "--schedule", schedule]
    if "consumers" not in schedule:
        command[-1] += f",consumers={consumers}"
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return "runs"
    explains = re.search(r"error: .*(\d|\w = \w)", done.stderr, re.DOTALL)
    if done.returncode == REFUSED and explains:
        return "refused"
    return f"{' '.join(command)}\n{done.stdout}{done.stderr}"


def main(source):
    fields = documented()
    kernel = os.path.join(source, "kernels/attention_fwd.tile")
    jobs, idle, failed = list(configurations(fields)), set(fields), False
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for (consumers, schedule), outcome in zip(jobs, pool.map(lambda job: run(kernel, *job), jobs)):
            if outcome == "runs":
                idle -= set(re.findall(r"(\w+)=", schedule))
            elif outcome != "refused":
                print(f"FAIL {schedule} with {consumers} consumers: {outcome}")
                failed = True
            if "-v" in sys.argv:
                print(consumers, schedule, outcome)
    if idle:
        print("no value runs of", *sorted(idle))
    sys.exit(1 if failed or idle else 0)


main(sys.argv[1])
