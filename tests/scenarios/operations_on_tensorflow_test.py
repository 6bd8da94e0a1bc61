# SPDX-License-Identifier: Apache-2.0
"""Runs operations_test on TensorFlow's own server."""
import os
import subprocess
import sys

sys.path.insert(0, "tests/tensorflow")
import peer

with peer.tensorflow_server() as target:
    code = subprocess.run(["tests/scenarios/operations_test"], env={**os.environ, "MUSTER_TEST_TARGET": target},
                          check=False, timeout=peer.WATCHDOG_SECONDS).returncode
sys.exit(code)
