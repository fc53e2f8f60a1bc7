# REQUIRES: ptxas
# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib %python %s %ptxas
"""What the package knows of the ptxas that the compiler will run, for the keys of its cache."""

import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from tessera._compiler import _compile

PTXAS = sys.argv.pop()


class Ptxas(unittest.TestCase):
    def test_found(self):
        path, version, size, _ = _compile._find_ptxas(PTXAS)
        self.assertTrue(os.path.samefile(path, PTXAS))
        printed = subprocess.run([PTXAS, "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(f"release {version},", printed)
        self.assertEqual(size, os.stat(PTXAS).st_size)
        self.assertIs(_compile._find_ptxas(PTXAS), _compile._find_ptxas(PTXAS))

    def test_upgrade_in_place(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "ptxas")
            for release in ("12.4", "12.10"):
                with open(path, "w") as file:
                    file.write(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.1'\n")
                os.chmod(path, 0o755)
                self.assertEqual(_compile._find_ptxas(path)[:2], [path, release])

    def test_kept(self):
        """A process takes the version that another one asked for, until the file is another."""
        with tempfile.TemporaryDirectory() as directory:
            path, started = os.path.join(directory, "ptxas"), os.path.join(directory, "started")
            environment = {"TESSERA_CACHE_DIR": os.path.join(directory, "cache"), "PATH": directory + ":/bin:/usr/bin"}
            with unittest.mock.patch.dict(os.environ, environment), \
                    unittest.mock.patch.object(_compile, "find_own_ptxas", return_value=None):  # fmt: skip
                for release, starts in (("12.4", 1), ("12.4", 0), ("12.10", 1), ("12.10", 0)):
                    script = f"#!/bin/sh\ntouch {started}\necho 'Cuda compilation tools, release {release}, V{release}.1'\n"
                    if starts:
                        with open(path, "w") as file:
                            file.write(script)
                        os.chmod(path, 0o755)
                    for requested in (path, None):
                        _compile._ptxas_found.clear()
                        self.assertEqual(_compile._find_ptxas(requested)[:2], [path, release])
                        self.assertEqual(os.path.exists(started), bool(starts))
                        starts = 0
                        if os.path.exists(started):
                            os.remove(started)

    def test_not_found(self):
        self.assertIsNone(_compile._find_ptxas("/dev/null"))


if __name__ == "__main__":
    unittest.main()
