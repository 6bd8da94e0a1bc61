#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Four clients whose small graphs ask for far more memory than there is, and a fifth that trains. The server's control
group is small: without its own limit the kernel would end it. Whole (MUSTER_LONG=1) for a minute; a machine that gives
us no control group bounds the address space in its place."""
import itertools
import os
import sys
import time

sys.path.insert(0, "tests/scenarios")
sys.path.insert(0, "tests/tensorflow")
import peer
import processes

LONG = "MUSTER_LONG" in os.environ
SECONDS = 60 if LONG else 8
MEGABYTES = 1024
V1, V2 = "/sys/fs/cgroup/memory", "/sys/fs/cgroup"


def own_group(version):
    """The folder of this process's own control group, which the machine may not show."""
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if version == 1 and "memory" in controllers.split(","):
                return V1 + path
            if version == 2 and not controllers:
                return V2 + path
    return None


def make_group():
    """A control group below our own: (folder, version), or None where we may not make one."""
    for version, limit in (1, "memory.limit_in_bytes"), (2, "memory.max"):
        parent = own_group(version)
        if parent is None or not os.path.isdir(parent):
            continue
        folder = os.path.join(parent, "muster-test-%d" % os.getpid())
        try:
            os.mkdir(folder)
            with open(os.path.join(folder, limit), "w") as file:
                file.write(str(MEGABYTES << 20))
            return folder, version
        except OSError:
            if os.path.isdir(folder):
                os.rmdir(folder)
    return None


class HostileClientsTest(processes.TestCase):
    def setUp(self):
        self.group = make_group()
        if self.group:
            self.addCleanup(self.remove_group)

    def remove_group(self):
        """It is empty as soon as its process is gone."""
        peer.await_true(lambda: not open(os.path.join(self.group[0], "cgroup.procs")).read(), "the group is empty")
        os.rmdir(self.group[0])

    def bounded(self, command):
        """The command, in the group or in as large an address space."""
        if not self.group:
            print("no control group can be made here: the address space is bounded", file=sys.stderr)
            shell = "ulimit -v %d && exec \"$@\"" % (4 * MEGABYTES << 10)
        else:
            shell = "echo $$ > %s/cgroup.procs && exec \"$@\"" % self.group[0]
        return ["sh", "-c", shell, "sh"] + command

    def peak(self):
        name = "memory.max_usage_in_bytes" if self.group[1] == 1 else "memory.peak"
        try:
            with open(os.path.join(self.group[0], name)) as file:
                return int(file.read())
        except OSError:  # an older kernel
            return 0

    def test_the_server_and_the_job_of_a_fifth_live(self):
        arguments = [] if self.group else ["--max-memory=%dMiB" % (MEGABYTES * 8 // 10)]
        server = self.start(*self.bounded([peer.MUSTER, "serve", "--listen=127.0.0.1:0"] + arguments))
        server.expect("serving grpc://")
        target = "grpc://" + server.text().split("serving grpc://")[1].split()[0]
        hostile = [self.start("tests/scenarios/hostile_client", target, str(i)) for i in range(4)]
        for client in hostile:
            client.expect("refused", 60)
        until = time.monotonic() + SECONDS
        for job in itertools.count():
            train = self.start(peer.MUSTER, "train", "--meta-graph=" + processes.DIGITS, "--master=" + target,
                               "--model=job-%d" % job, "--steps=300", "--feed=x:0=@" + peer.fixture("digits_x.npy"),
                               "--feed=y:0=@" + peer.fixture("digits_y.npy"))
            self.assertEqual(train.wait(120), 0, train.text())
            if time.monotonic() > until:
                break
        for client in hostile:
            self.assertIsNone(client.process.poll(), client.text())
        self.assertIsNone(server.process.poll(), server.text())
        if self.group:
            print("the group's peak: %d MiB" % (self.peak() >> 20), file=sys.stderr)


if __name__ == "__main__":
    peer.main()
