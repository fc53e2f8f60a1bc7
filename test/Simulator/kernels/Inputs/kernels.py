"""Runs `tessera check` on the kernels of kernels/ over parameters, schedules and shapes.

    kernels.py GROUP DIRECTORY [SHARD SHARDS]

GROUP is a function of one of the modules of groups, with dashes in its name; DIRECTORY holds the .tile sources. With
SHARD of SHARDS only each SHARDS-th configuration runs, and without TESSERA_THOROUGH=1 about two of five of these, spread over all
parameters. What fails is printed with the command that shows it again. It is an error that none runs.
"""

import os
import shlex
import subprocess
import sys
import zlib

import attention_groups
import kernel_groups
import schedule_groups

# Seeds of events of each configuration; the next configuration takes the next ones.
SEEDS = 6
REFUSED = 3  # the exit code of tessera when a source, with its schedule, does not compile
# What a refusal names: the limit that the schedule breaks.
REASONS = (
    "bytes of shared memory", "a consumer thread needs", "warpgroups take", "slots that have room", "a thread needs",
    "neighbours each cannot share",
)  # fmt: skip
GROUPS = {
    group.__name__.replace("_", "-"): group
    for module in (attention_groups, kernel_groups, schedule_groups)
    for group in module.GROUPS
}


def check(arguments, refused, directory, index):
    """Whether one configuration ran, and what is wrong with it, if anything."""
    command = ["tessera", "check", os.path.join(directory, arguments[0]), *arguments[1:]]
    if "--seeds" not in arguments:
        command += ["--seeds", str(SEEDS)]
    command += ["--threads", "1", "--sim-seed", str(SEEDS * index)]
    process = subprocess.run(command, capture_output=True, text=True)
    explained = any(reason in process.stderr for reason in REASONS)
    if process.returncode == REFUSED and (refused or (refused is None and explained)):
        return False, None
    if process.returncode == 0 and not refused:
        return True, None
    expected = "success, or a refusal in numbers" if refused is None else "a refusal" if refused else "success"
    return False, f"{shlex.join(command)}\nexits with {process.returncode}, expected {expected}\n{process.stdout}{process.stderr}"


def is_chosen(index):
    """By a checksum, so that no parameter decides: neighbours differ in one."""
    return os.environ.get("TESSERA_THOROUGH") == "1" or zlib.crc32(b"%d" % index) % 10 in (2, 4, 6, 8)


def main(group, directory, shard="0", shards="1"):
    own = list(enumerate(GROUPS[group]()))[int(shard) :: int(shards)]
    checked = [check(*entry, directory, index) for index, entry in own if is_chosen(index)]
    failures = [text for _, text in checked if text]
    ran = sum(done for done, _ in checked)
    print(*failures, f"{ran} of {len(checked)} configurations ran, {len(failures)} failed", sep="\n")
    sys.exit(1 if failures or not ran else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
