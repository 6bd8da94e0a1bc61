# SPDX-License-Identifier: Apache-2.0
"""Runs operations_test on the chief of a cluster of TensorFlow's: a parameter server, a chief and two workers."""
import os
import subprocess
import sys

sys.path.insert(0, "tests/tensorflow")
import cluster_peer
import peer

cluster = cluster_peer.Cluster()
try:
    cluster.start(*cluster.names())
    code = subprocess.run(["tests/scenarios/operations_test"], check=False, timeout=peer.WATCHDOG_SECONDS,
                          env={**os.environ, "MUSTER_TEST_TARGET": cluster.target("chief:0")}).returncode
finally:
    cluster.end()
sys.exit(code)
