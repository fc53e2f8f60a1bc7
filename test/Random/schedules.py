"""Draws schedules from the domains that the tool itself names."""

import json
import random
import subprocess


def read_domains(tessera):
    """The values of each field of a schedule, as text."""
    return json.loads(subprocess.run([tessera, "params", "--schedule-fields", "--json"], check=True,
                                     capture_output=True, text=True, timeout=60).stdout)


# What a field needs in a kernel to have a value that is not refused; without it, it is drawn rarely.
NEEDS = {"polynomial_exp": "math.exp", "speculate": "speculate", "stages": "for", "overlap": "for"}


def draw_schedule(seed, domains, kernel):
    """Values of no more than six fields; often none, which is the compiler's choice. `kernel` is the
    text of the source."""
    rng = random.Random(f"schedule {seed}")
    fields = [field for field in sorted(domains) if NEEDS.get(field, "") in kernel or rng.random() < 0.2]
    count = rng.choices(range(7), (35, 20, 18, 12, 7, 5, 3))[0]
    drawn = {}
    for field in rng.sample(fields, min(count, len(fields))):
        drawn[field] = rng.choice(domains[field])
    for field in ("stages", "consumer_registers"):
        if field in drawn and rng.random() < 0.15:
            drawn[field] = f"[{drawn[field]}, {rng.choice(domains[field])}]"
    # Most tiles have the rows of one or two warpgroups.
    if "consumers" in drawn and rng.random() < 0.7:
        drawn["consumers"] = rng.choice(("1", "1", "2"))
    return drawn
