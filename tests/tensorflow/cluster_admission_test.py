# SPDX-License-Identifier: Apache-2.0
"""Whom a parameter server of `muster serve --task` lets in: machines of its cluster, and on its own machine its own user."""
import subprocess
import sys

import machines
import peer

peer.enter_namespace(machines.NEED)

import cluster_peer

CLIENT = """
import socket, sys
s = socket.create_connection((sys.argv[1], 2222), 20)
s.settimeout(20)
try:
    s.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes(3) + b"\\4" + bytes(5))
    print(len(s.recv(9)))
except ConnectionError:
    print(0)
"""

# What comes of a connection to each of these ports that says nothing: "refused", "closed", or "open" after so many seconds.
SCAN = """
import socket, sys
for port in map(int, sys.argv[3:]):
    with socket.socket() as s:
        if s.connect_ex((sys.argv[1], port)) != 0:
            print(port, "refused")
            continue
        s.settimeout(float(sys.argv[2]))
        try:
            print(port, "closed" if s.recv(1) == b"" else "open")
        except ConnectionError:
            print(port, "closed")
        except TimeoutError:
            print(port, "open")
"""

# Reads a variable of the parameter server by TensorFlow's client, from nothing but an address.
ATTACK = """
import sys
import tensorflow as tf
v1 = tf.compat.v1
v1.disable_v2_behavior()
with v1.device("/job:ps/task:0"):
    secret = v1.get_variable("secret", initializer=42., use_resource=False)
config = v1.ConfigProto(device_filters=["/job:ps"], operation_timeout_in_ms=10000)
try:
    with v1.Session("grpc://%s:2222" % sys.argv[1], config=config) as session:
        if sys.argv[2] == "make":
            session.run(secret.initializer)
        print("read", session.run(secret))
except tf.errors.OpError as error:
    print("refused", type(error).__name__)
"""


def listening():
    """All ports of this machine at which somebody listens."""
    ports = set()
    for table in "/proc/net/tcp", "/proc/net/tcp6":
        with open(table, encoding="utf-8") as file:
            rows = [line.split() for line in file][1:]
        ports.update(str(int(row[1].rpartition(":")[2], 16)) for row in rows if row[3] == "0A")
    return sorted(ports)


@peer.needs_namespace
class Admission(peer.TestCase):
    """A parameter server on this machine, a machine that is in the cluster, one for workers outside it, and one of others."""

    def setUp(self):
        network = machines.Network(self)
        self.inside, self.outside, self.admitted = (network.machine(name) for name in ("worker0", "other", "admitted"))
        cluster = cluster_peer.Served(workers=1, chiefs=0)
        self.addCleanup(cluster.end)
        cluster.jobs = {"ps": [machines.HERE + ":2222"], "worker": [self.inside.address + ":2222"]}
        cluster.more["admit"] = [self.admitted.address]
        cluster.start("ps:0")
        peer.await_true(lambda: self.hears(self.inside.enter) == 9, "a machine of the cluster is heard")

    def program(self, before, text, *words):
        """What a program in Python prints that is started like that."""
        done = subprocess.run([*before, sys.executable, "-c", text, machines.HERE, *words], stdout=subprocess.PIPE, check=True, text=True,
                              timeout=peer.WATCHDOG_SECONDS)
        return done.stdout.strip()

    def hears(self, before):
        """How many bytes of its settings the server sends to a client that is started like that."""
        return int(self.program(before, CLIENT))

    def test_others_hear_nothing(self):
        self.assertEqual(self.hears(self.outside.enter), 0)
        self.assertEqual(self.hears([]), 9)  # this user's, on this machine
        peer.await_true(lambda: self.hears(self.admitted.enter) == 9, "a machine of workers outside the cluster is heard")
        other = ["setpriv", "--reuid=65534", "--clear-groups"]
        if subprocess.run([*other, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            self.assertEqual(self.hears(other), 0)

    def test_others_find_every_open_port_closed(self):
        """The gateway's port isn't open to them, nor one that TensorFlow opens for itself."""
        ports = listening()
        self.assertIn("2222", ports)
        closed = ["%s %s" % (port, "closed" if port == "2222" else "refused") for port in ports]
        self.assertEqual(self.program(self.outside.enter, SCAN, "20", *ports).split("\n"), closed)
        self.assertEqual(self.program(self.inside.enter, SCAN, "1", "2222"), "2222 open")

    def test_others_read_no_variable(self):
        self.assertEqual(self.program(self.inside.enter, ATTACK, "make"), "read 42.0")
        self.assertRegex(self.program(self.outside.enter, ATTACK, "read"), "refused (Unavailable|DeadlineExceeded)Error")


if __name__ == "__main__":
    peer.main()
