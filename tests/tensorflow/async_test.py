# SPDX-License-Identifier: Apache-2.0
"""Runs async_served_test on TensorFlow's own server."""
import os
import subprocess
import sys

import peer

with peer.tensorflow_server() as target:
    code = subprocess.run(["tests/saver/async_served_test"], env={**os.environ, "MUSTER_TEST_TARGET": target},
                          check=False, timeout=peer.WATCHDOG_SECONDS).returncode
sys.exit(code)
