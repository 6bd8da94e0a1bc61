#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the scenarios on real processes share: a process whose output is read as it comes, and the
commands of a chief, a worker and a server."""
import os
import re
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, "tests/tensorflow")
import peer

DIGITS = peer.fixture("digits.meta")
# How long a command may go on after its own deadline before it counts as hanging: it starts and ends in this time, too.
GRACE_SECONDS = 60
# How long the output of an ended process may take to be read, unless another process has the pipe, too.
READ_SECONDS = 10


class Process:
    """A process of the test's, its output read line by line."""

    def __init__(self, *argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, preexec_fn=peer.die_with_parent)
        self.lines = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()

    def text(self):
        with self.changed:
            return "\n".join(self.lines)

    def expect(self, words, seconds=30):
        """Waits until some line holds these words."""
        with self.changed:
            found = self.changed.wait_for(lambda: any(words in line for line in self.lines), seconds)
        if not found:
            raise AssertionError("'%s' never came in:\n%s" % (words, self.text()))

    def expect_later(self, condition, seconds=30):
        """Waits until the condition holds, which may change with each line."""
        with self.changed:
            if not self.changed.wait_for(condition, seconds):
                raise AssertionError("it never came to that in:\n" + self.text())

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """Returns when the process has stopped: until then its threads may go on."""
        peer.stop(self.process.pid)

    def wait(self, seconds):
        """The exit code, once everything that the process said has been read; one that goes on for longer hangs."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("still there after %s s:\n%s" % (seconds, self.text()))
        self.reader.join(READ_SECONDS)
        return code

    def end(self):
        self.process.kill()
        self.wait(10)


class TestCase(peer.TestCase):
    def start(self, *argv):
        process = Process(*argv)
        self.addCleanup(self._end, process)
        return process

    def _end(self, process):
        """Also where a process is started again whatever it died of, what a sanitizer found counts."""
        process.end()
        if re.search(r"Sanitizer: |: runtime error: ", process.text()):
            self.fail(process.text())

    def serve(self, port=0, *arguments):
        process = self.start(peer.MUSTER, "serve", "--listen=127.0.0.1:%d" % port, *arguments)
        process.expect("serving grpc://")
        return process, re.search(r"serving (grpc://\S+)", process.text()).group(1)

    def serve_lastingly(self, *arguments):
        """A server at whose port another may serve after it: nobody else is given that in between."""
        held = peer.hold_port()
        self.addCleanup(held.close)
        return self.serve(peer.port_of(held), *arguments)

    def wait_command(self, target, timeout, *arguments):
        return self.start(peer.MUSTER, "wait", "--meta-graph=" + DIGITS, "--master=" + target,
                          "--timeout=%s" % timeout, *arguments)

    def prepare(self, target, *arguments, code=0):
        return peer.muster("prepare", "--meta-graph=" + DIGITS, "--master=" + target, "--timeout=30",
                           *arguments, code=code)

    def expect_end(self, process, code, *words, timeout=0):
        self.assertEqual(process.wait(timeout + GRACE_SECONDS), code, process.text())
        for some in words:
            self.assertIn(some, process.text())
        self.assertFalse([line for line in process.lines if line.startswith("ready")], process.text())
