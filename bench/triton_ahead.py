"""Peers in Triton tune themselves for minutes: each kernel tries dozens of configurations, which one process compiles in turn.

Here processes side by side compile them first (`compile_share`), each its share, and launch nothing. Then the tuner of the
process that measures (`tune`) finds them in Triton's cache and only times them.
"""

import contextlib
import functools
import os
import unittest.mock
import zlib

# Milliseconds of the tuner for a configuration, before its timing and for it; Triton's own are 25 and 100.
WARMUP, TIMED = 8, 30


def name_configuration(tuner, configuration):
    return f"{tuner.base_fn.__name__} {configuration}"


def read_names(path):
    """The lines of a file, of none where there is none."""
    if not path or not os.path.exists(path):
        return set()
    with open(path) as lines:
        return {line.rstrip("\n") for line in lines}


def keep_named(tuner, configurations, names):
    """Those of a tuner's configurations that are named, or all where none is."""
    return [x for x in configurations if name_configuration(tuner, x) in names] or configurations


@contextlib.contextmanager
def compile_share(rank, count, done, chosen=()):
    """In it Triton's functions launch nothing. Of the configurations that they would try those of this process, the rank-th of `count`,
    are compiled, and a line of the file `done` names each. Tuners that have a name among the chosen try those alone."""
    from triton.runtime import autotuner, jit

    seen, run_function = set(), jit.JITFunction.run

    def mine(name):
        return zlib.crc32(name.encode()) % count == rank

    def compile_function(function, *arguments, grid=None, warmup=None, **named):
        return run_function(function, *arguments, grid=grid, warmup=True, **named)

    def tune_function(tuner, *arguments, **named):
        tuner.nargs = dict(zip(tuner.arg_names, arguments))
        pruned = keep_named(tuner, tuner.prune_configs(named), chosen)
        tuner.best_config = pruned[0]  # Callers read it.
        for configuration in pruned:
            name = name_configuration(tuner, configuration)
            if not mine(name):
                continue
            # What does not compile the tuner leaves out too.
            with contextlib.suppress(Exception):
                tuner.fn.run(*arguments, **named, **configuration.all_kwargs())
            if name not in seen:
                seen.add(name)
                print(name, file=file, flush=True)

    with (
        open(done, "w") as file,
        unittest.mock.patch.object(jit.JITFunction, "run", compile_function),
        unittest.mock.patch.object(autotuner.Autotuner, "run", tune_function),
    ):
        yield


class Tuned:
    """What tuners left out, by name, and what they chose."""

    def __init__(self):
        self.left_out, self.tuners = set(), set()

    def find_chosen(self):
        return {name_configuration(tuner, configuration) for tuner in self.tuners for configuration in tuner.cache.values()}


def tune(folder):
    """From now on tuners try what the files of a folder name, where these name one of theirs, and time each briefly. Returns what they
    leave out and choose."""
    import triton
    from triton.runtime import autotuner

    compiled, tuned = set(), Tuned()
    for file in os.listdir(folder):
        compiled |= read_names(os.path.join(folder, file))
    prune, bench = autotuner.Autotuner.prune_configs, functools.partial(triton.testing.do_bench, warmup=WARMUP, rep=TIMED)

    def prune_further(tuner, named):
        pruned = prune(tuner, named)
        kept = keep_named(tuner, pruned, compiled)
        tuned.left_out.update(name_configuration(tuner, x) for x in pruned if x not in kept)
        tuned.tuners.add(tuner)
        return kept

    autotuner.Autotuner.prune_configs = prune_further
    autotuner.Autotuner.do_bench = property(lambda tuner: bench)
    return tuned
