# REQUIRES: ptxas
# RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda TESSERA_LIBRARY=%build/lib %python %s %ptxas
"""What the package knows of the ptxas that the compiler will run, for the keys of its cache."""

import os
import subprocess
import sys
import tempfile
import unittest

from tessera import _compile

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

    def test_not_found(self):
        self.assertIsNone(_compile._find_ptxas("/dev/null"))


if __name__ == "__main__":
    unittest.main()
