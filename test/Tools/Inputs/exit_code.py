"""Runs a command and fails unless it exits with the code that the first argument names."""

import subprocess
import sys

expected, command = int(sys.argv[1]), sys.argv[2:]
code = subprocess.run(command).returncode
if code != expected:
    sys.exit(f"{' '.join(command)} exited with {code}, expected {expected}")
