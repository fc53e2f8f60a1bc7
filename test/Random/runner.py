"""Runs a program through tessera and says how that ended."""

import dataclasses
import os
import re
import subprocess
import time

from program import data_options, print_source, schedule_text

# Ends of a run that are as they should be; every other one is a failure.
RAN, REFUSED = "ran", "refused"

# What the compiler may refuse whatever the schedule: the program asks for more than the machine has,
# or for what docs/generated/tile.md says no kernel may do. Any other refusal of the compiler's own
# choice is a failure of its search.
LIMITS = (
    r"smaller tiles are needed",
    r"runs grid points again that a producer loads again, and a kernel without a tile\.dot has none",
    r"neighbours each cannot share \S+ tiles; \S+ would work",
    r"is also an operand of a dot, and so lies in shared memory",
    r"both along rows and along columns",
    r"strides must be multiples of",
    r"that this grid point stores before",
    r"threads that (gather \d+ bytes each|take tiles from shared memory) cannot share",
    r"computes operand b in registers, which hold multiples of",
    r"grid names the dimension",
    r"a bulk copy starts at a multiple of|no bulk store can start|rows at once, a bulk tensor copy moves",
    r"and makes no parts of it; write the dots with accumulators of up to|that other dots need in \d+ parts",
    r"a dot of two loaded tiles of 8-bit elements reads both along",
    r"parts of a range, and no dot is left",
    r"a dot with precision tf32 reads loaded tiles along the contracted",
)

# What a launch refuses, by the strides of the arrays that were drawn.
LAUNCH = r"strides must be multiples of|it stores nothing"

# What only a pass can have done wrong, whatever schedule was asked for: a program on hop that its
# verifiers or a later pass refuse.
INVALID = r"error: ('hop\.\w+' op |mixes layouts|.*; run hop-)"

EXIT_FAILED, EXIT_USAGE, EXIT_SOURCE, EXIT_TOOLCHAIN = 1, 2, 3, 4


@dataclasses.dataclass
class Outcome:
    kind: str  # RAN, REFUSED or the class of a failure
    text: str = ""  # what was printed
    seconds: float = 0
    command: str = ""
    schedule: dict = dataclasses.field(default_factory=dict)  # the fields that were asked for

    @property
    def is_of_compiler(self):
        """Whether the compiler refuses it, not the launch."""
        return not re.search(LAUNCH, self.text)

    @property
    def failed(self):
        return self.kind not in (RAN, REFUSED)

    @property
    def signature(self):
        """What a smaller program must have in common: for an error message, the message."""
        return self.kind, self.reason if self.kind in ("refused-default", "invalid", "unlocated", "usage", "toolchain") else ""

    @property
    def reason(self):
        """The first error, or of a search the last, without names and numbers: what is counted."""
        error = re.search(r"error: (.*)", self.text)
        text = error.group(1) if error else (self.text.strip() or self.kind).split("\n")[-1]
        if text.startswith("no schedule of this kernel fits"):
            notes = re.findall(r"note: (?:[a-z_]+ = (?:\w+|\[[^]]*\]),? ?)+: (.*)", self.text)
            text = "no schedule fits: " + (notes[-1] if notes else "?")
        text = re.sub(r"'[^']*'|tensor<[^>]*>|!tile\.view<[^>]*>|#tile\.schedule<[^>]*>?", "_", text)
        return re.sub(r"\d+", "N", text)[:110]


@dataclasses.dataclass
class Runner:
    tessera: str
    folder: str  # where sources are written
    device: str = "sim"
    timeout: float = 60
    event_seeds: int = 1

    def command(self, program, path):
        options = data_options(program)
        schedule = schedule_text(program)
        if self.device == "cuda":
            command = [self.tessera, "run", path, "--device", "cuda", "--check"] + options
        else:
            # One process reads the source, interprets it before and after scheduling, and simulates it.
            command = [self.tessera, "check", path, "--scheduled", "--threads", "1"] + options
            command += ["--seeds", str(self.event_seeds), "--sim-seed", str(program.seed)]
        return command + (["--schedule", schedule] if schedule else [])

    def run(self, program, name):
        """Writes the program's source to `name` in the folder and runs it."""
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(print_source(program))
        command = self.command(program, path)
        start = time.monotonic()
        try:
            process = subprocess.run(command, capture_output=True, text=True, errors="replace",
                                     timeout=self.timeout, stdin=subprocess.DEVNULL)
            kind, text = classify(process.returncode, process.stdout, process.stderr, bool(program.schedule) or program.fixed_sums)
        except subprocess.TimeoutExpired as expired:
            kind, text = "hang", (expired.stderr or b"").decode(errors="replace")
        return Outcome(kind, text, time.monotonic() - start, " ".join(command), dict(program.schedule))


def classify(code, stdout, stderr, has_schedule):
    """The kind of an outcome, and the text that explains it."""
    text = stderr + stdout
    if code < 0 or code >= 128:
        return "signal", text
    if "AddressSanitizer" in text or "runtime error:" in text:
        return "sanitizer", text
    if code == 0:
        return RAN, text
    if code in (EXIT_FAILED, EXIT_USAGE) and "strides must be multiples of" in text:
        return REFUSED, text
    if code == EXIT_FAILED:
        hazard = re.search(r"error: \[([a-z-]+)\]", text)
        if hazard:
            return hazard.group(1), text
        if "of the interpreter on the scheduled form" in stdout:
            return "difference-scheduled", text
        if "FAILED" in text:
            return "difference", text
        return "run-error", text
    if "it stores nothing, so that there is nothing to check" in text:
        return REFUSED, text
    if code == EXIT_SOURCE and re.search(INVALID, stderr):
        return "invalid", text
    located = re.search(r"^\S+:\d+:\d+: error: ", stderr, re.MULTILINE)
    if code == EXIT_SOURCE and located:
        return (REFUSED if has_schedule or re.search("|".join(LIMITS), text) else "refused-default"), text
    return {EXIT_USAGE: "usage", EXIT_SOURCE: "unlocated", EXIT_TOOLCHAIN: "toolchain"}.get(code, "exit"), text
