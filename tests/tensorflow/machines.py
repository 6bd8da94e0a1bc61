# SPDX-License-Identifier: Apache-2.0
"""Machines with names: network namespaces on one switch, which know each other from /etc/hosts, as a cluster's machines do from a
name service, each with a disk of its own. For a process in a namespace of its own: peer.enter_namespace (machines.NEED)."""
import os
import shlex
import subprocess

import peer

NEED = "ip link add name switch type bridge && unshare -nm mount --bind /etc/hosts /etc/hosts"
HERE = "10.9.0.254"  # this machine


def ip(*words, before=()):
    subprocess.run([*before, "ip", *words], check=True)


class Machine:
    def __init__(self, number, hosts, disk):
        self.address = "10.9.0.%d" % number
        script = "mount --bind %s /etc/hosts && mount -t tmpfs disk %s && echo up; exec sleep infinity" % (shlex.quote(hosts), shlex.quote(disk))
        self.process = subprocess.Popen(["unshare", "-nm", "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        preexec_fn=peer.die_with_parent)
        peer.first_line(self.process, "machine %d" % number)
        # The words before a command that runs there.
        self.enter = ["nsenter", "-t", str(self.process.pid), "-n", "-m"]
        self.port = "to%d" % number
        ip("link", "add", "name", self.port, "type", "veth", "peer", "name", "eth0", "netns", str(self.process.pid))
        ip("link", "set", self.port, "master", "switch", "up")
        ip("link", "set", "lo", "up", before=self.enter)
        ip("address", "add", self.address + "/24", "dev", "eth0", before=self.enter)
        ip("link", "set", "eth0", "up", before=self.enter)


class Network:
    """Ends its machines with the test."""

    def __init__(self, case):
        self.case, self.machines = case, []
        self.hosts = os.path.join(case.folder(), "hosts")
        self.disk = case.folder()  # the path of each machine's own
        self.names = {}
        self.write()
        ip("link", "add", "name", "switch", "type", "bridge")
        case.addCleanup(ip, "link", "delete", "switch")
        ip("address", "add", HERE + "/24", "dev", "switch")
        ip("link", "set", "switch", "up")

    def write(self):
        """In place: it is mounted."""
        with open(self.hosts, "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n" + "".join("%s %s\n" % (address, name) for name, address in self.names.items()))

    def machine(self, *names):
        """Another one; whoever had these names has lost them."""
        machine = Machine(len(self.machines) + 1, self.hosts, self.disk)
        self.machines.append(machine)
        self.case.addCleanup(self.end, machine)
        self.names.update((name, machine.address) for name in names)
        self.write()
        return machine

    def end(self, machine):
        """What is on its disk goes with its last process."""
        if machine.process.poll() is not None:
            return
        ip("link", "delete", machine.port)  # the namespace goes later
        machine.process.kill()
        machine.process.wait(10)
        machine.process.stdout.close()
