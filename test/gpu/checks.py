"""Runs the checks of a program."""

import argparse
import sys
import traceback


def call_again(call, count):
    """What `count` calls give, which has the same bits each time."""
    first = call()
    for _ in range(count):
        for one, other in zip(first, call()):
            assert one.equal(other), "calls have other bits"
    return [result.cpu() for result in first]


def read_options(description):
    """(names of checks, the device) of a program that takes them."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("checks", nargs="*", help="their names; all of them where none is given")
    options = parser.parse_args()
    return options.checks, options.device


def run(checks, *arguments, names=()):
    """Calls those of `names` (where none is given, all) with `arguments`, says how it went, and exits. The last line reads
    "N passed, N failed". Names of no check are refused."""
    unknown = set(names) - {check.__name__ for check in checks}
    if unknown:
        sys.exit(f"no check is named {', '.join(sorted(unknown))}; there are {', '.join(check.__name__ for check in checks)}")
    checks = [check for check in checks if not names or check.__name__ in names]
    failed = 0
    for check in checks:
        try:
            check(*arguments)
            print(f"ok       {check.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED   {check.__name__}\n{traceback.format_exc(limit=-3)}", flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed")
    sys.exit(failed > 0)
