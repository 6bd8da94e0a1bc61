#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`muster doctor` of a directory that the system doesn't answer about."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

MUSTER = "cli/muster"
PATIENCE = 60


class DoctorTest(unittest.TestCase):
    def test_ends_and_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([MUSTER, "doctor", "--json", "--timeout=1", folder], capture_output=True, text=True,
                                  timeout=PATIENCE, env={**os.environ, "LD_PRELOAD": os.path.abspath("tests/cli/libsilent_directory.so")})
        self.assertEqual(done.returncode, 1, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual([(it["severity"], it["check"], it["what"], it["where"]) for it in found["findings"]],
                         [("error", "directory", "the directory doesn't answer in time", folder)])
        self.assertEqual(found["places"], [{"place": folder, "state": "no answer"}])


if __name__ == "__main__":
    sys.exit(unittest.main())
