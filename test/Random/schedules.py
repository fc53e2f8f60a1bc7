"""Draws schedules from the domains that the tool itself names."""

import json
import random
import re
import subprocess


def read_domains(tessera):
    """The values of each field of a schedule, as text."""
    return json.loads(subprocess.run([tessera, "params", "--schedule-fields", "--json"], check=True,
                                     capture_output=True, text=True, timeout=60).stdout)


# What a field needs in a kernel to have a value that is not refused; without it, it is drawn rarely.
NEEDS = {"polynomial_exp": "math.exp", "speculate": "speculate", "stages": "for", "overlap": "for", "placement": "%sum",
         "transpose": "T : type = f8"}

# Fields that give work to helpers, and what shows in a kernel that there is such work.
HELPERS = {"placement": r"%sum\d", "transpose": r"T : type = f8", "store": r"tile\.store",
           "cluster": r"grid", "persistent": r"grid"}


def draw_fixed_sums(seed, kernel):
    """Whether a kernel that adds to memory does so in a fixed order."""
    return bool(re.search(r"\badd\b", kernel)) and random.Random(f"sums {seed}").random() < 0.2


def draw_helpers(seed, domains, kernel):
    """Values of the fields of helpers alone, for half of the kernels with work for a reducer, a transposer or a converter."""
    rng = random.Random(f"helpers {seed}")
    if not re.search(r"\badd\b|\bf8E4M3FN\b", kernel) or rng.random() < 0.5:
        return None
    fields = [field for field, work in sorted(HELPERS.items()) if field in domains and re.search(work, kernel)]
    return {field: rng.choice(domains[field]) for field in fields if rng.random() < 0.4}


def draw_schedule(seed, domains, kernel):
    """Values of no more than six fields; often none, which is the compiler's choice. `kernel` is the
    text of the source."""
    helpers = draw_helpers(seed, domains, kernel)
    if helpers is not None:
        return helpers
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
