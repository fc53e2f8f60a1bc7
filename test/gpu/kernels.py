"""Where the kernels under test come from: a directory of bundles, or the compiler."""

import json
import os
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "python"))

import tessera  # noqa: E402


class Missing(Exception):
    """The source has no such kernel; the text says why."""


class Refused(Exception):
    """The compiler refused the configuration; the text is its reason."""


class BundleDirectory:
    """Bundles made by build_bundles.py."""

    def __init__(self, directory):
        self.directory = directory
        path = os.path.join(directory, "index.json")
        try:
            with open(path) as file:
                entries = json.load(file)["bundles"]
        except FileNotFoundError:
            raise SystemExit(f"{path} is missing; make it with test/gpu/build_bundles.py --out {directory}")
        self.entries = {self._key(entry): entry for entry in entries}

    @staticmethod
    def _key(entry):
        parameters = tuple(sorted((name, str(value)) for name, value in entry["parameters"].items()))
        wanted = entry.get("shape_class", ""), entry.get("alternatives", False), entry.get("entry", "")
        return entry["kernel"], parameters, entry["schedule"], tuple(sorted(entry["shape"].items())), *wanted

    def load(self, configuration):
        entry = self.entries.get(self._key(configuration))
        if entry is None:
            raise Missing(f"not in {self.directory}/index.json")
        if entry.get("error"):
            raise Refused(entry["error"])
        bundle, name = tessera.Bundle(self.path(configuration)), configuration["kernel"]
        # A source that imports its kernel, or has a sequence, names it otherwise.
        return bundle.kernel(configuration["entry"] or (name if name in bundle.kernels else None))

    def path(self, configuration):
        """The file of a bundle that `load` has loaded."""
        return os.path.join(self.directory, self.entries[self._key(configuration)]["bundle"])

    def loops(self, configuration):
        """The instructions of its main loops, counted by build_bundles.py --inspect; None when they were not."""
        return self.entries[self._key(configuration)].get("loops")


class Compiler:
    """libtessera, in process."""

    def __init__(self, directory=os.path.join(ROOT, "kernels")):
        self.directory = directory

    def load(self, configuration):
        path = os.path.join(self.directory, configuration["kernel"] + ".tile")
        try:
            return tessera.compile(
                path,
                kernel=configuration["entry"] or None,
                schedule=configuration["schedule"] or None,
                shape=configuration["shape"],
                shape_class=configuration["shape_class"] or None,
                alternatives=configuration["alternatives"],
                **configuration["parameters"],
            )
        except tessera.CompileError as error:
            raise Refused(str(error))

    def loops(self, configuration):
        """As of a BundleDirectory: nothing was counted."""
        return None


def open_source(bundles):
    """A BundleDirectory for a path, the Compiler for None."""
    return BundleDirectory(bundles) if bundles else Compiler()
