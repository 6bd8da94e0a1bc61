#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGTERM and SIGINT end every command that waits, also as the first process of a container. train_test.py and serve_test.py have
those that have a grace."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, "tests/tensorflow")
import peer

PATIENCE = 60
META = "--meta-graph=tests/fixtures/digits.meta"
CONTAINER = ["unshare", "--pid", "--fork", "--kill-child"]
GRACEFUL = {"train", "serve"}
LOCAL = {"certs", "inspect"}  # work on local files alone

# Each waits for a server that never answers.
WAITING = {
    "prepare": [META, "--master={grpc}"],
    "wait": [META, "--master={grpc}"],
    "evaluate": [META, "--metric=global_step", "--checkpoint-dir=s3://bucket/run"],
    "status": ["--timeout=1h", "{grpc}"],
    "doctor": ["--timeout=1h", "{grpc}"],
    "doctor of a store": ["--timeout=1h", "s3://bucket/run"],
    "run": [META, "--fetch=loss:0", "--master={grpc}"],
    "save": [META, "--checkpoint-dir={folder}", "--master={grpc}"],
    "drain": ["--timeout=1h", "{grpc}"],
    "finish": [META, "--master={grpc}"],
    "wait --model": ["--model=m", "--master={grpc}"],
    "wait --for": ["--model=m", "--for=step>=5", "--master={grpc}"],
    "status --watch": ["--watch", "--timeout=1h", "{grpc}"],
}
VERBS = {
    "list": ["s3://bucket/run"],
    "show": ["s3://bucket/run/m-1"],
    "latest": ["s3://bucket/run"],
    "verify": ["s3://bucket/run"],
    "diff": ["s3://bucket/run/m-1", "s3://bucket/run/m-2"],
    "prune": ["s3://bucket/run", "--keep=1"],
    "pin": ["s3://bucket/run/m-1"],
    "unpin": ["s3://bucket/run/m-1"],
    "mark": ["s3://bucket/run/m-1", "--metric=a=1"],
    "copy": ["s3://bucket/run", "s3://bucket/other"],
    "merge": ["s3://bucket/out", "s3://bucket/run/m-1"],
    "extract": ["s3://bucket/run/m-1", "--variables=*", "--checkpoint=s3://bucket/out"],
    "rename": ["s3://bucket/run/m-1", "s3://bucket/out", "--map=a=b"],
}


def listed(*words):
    """The names that a help lists."""
    out = subprocess.run([peer.MUSTER, *words, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r"^  ([a-z]+) ", out, re.M))


def can_contain():
    return shutil.which("unshare") and subprocess.run(CONTAINER + ["true"], stderr=subprocess.DEVNULL).returncode == 0


class SignalsTest(unittest.TestCase):
    def setUp(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.listener.settimeout(PATIENCE)
        self.addCleanup(self.listener.close)
        at = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.words = {"grpc": "grpc://" + at, "folder": os.environ["TEST_TMPDIR"]}
        self.env = dict(os.environ, AWS_ENDPOINT_URL="http://" + at, AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="r")

    def check(self, number, words, prefix=()):
        command = subprocess.Popen([*prefix, peer.MUSTER, *words], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        try:
            connection, _ = self.listener.accept()
            with connection:
                pid = command.pid
                if prefix:
                    with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
                        pid = int(children.read())
                os.kill(pid, number)
                err = command.communicate(timeout=PATIENCE)[1]
        finally:
            command.kill()
            command.wait()
        self.assertEqual(command.returncode, 128 + number if prefix else -number, err)
        self.assertRegex(err, r"(?m)^muster %s: ended by %s$" % (words[0], number.name))
        self.listener.setblocking(False)
        try:
            while True:
                self.listener.accept()[0].close()
        except BlockingIOError:
            self.listener.settimeout(PATIENCE)

    def commands(self):
        for name, rest in WAITING.items():
            yield [name.split()[0]] + [word.format(**self.words) for word in rest]
        for verb, rest in VERBS.items():
            yield ["checkpoint", verb, "--timeout=1h", *rest]

    def test_all_commands_are_here(self):
        self.assertEqual(listed() - {"help", "muster"}, {name.split()[0] for name in WAITING} | GRACEFUL | LOCAL | {"checkpoint"})
        self.assertEqual(listed("checkpoint"), set(VERBS))

    def test_signals_end_each_that_waits(self):
        for number in signal.SIGTERM, signal.SIGINT:
            for words in self.commands():
                with self.subTest(number=number.name, words=words):
                    self.check(number, words)

    @unittest.skipUnless(can_contain(), "needs root, for a process namespace")
    def test_signals_end_each_as_the_first_process(self):
        for number in signal.SIGTERM, signal.SIGINT:
            for words in self.commands():
                with self.subTest(number=number.name, words=words):
                    self.check(number, words, CONTAINER)

    def test_what_nohup_ignores_stays_ignored(self):
        command = subprocess.Popen([peer.MUSTER, "status", "--timeout=1h", self.words["grpc"]], stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.listener.accept()[0].close()
        with open("/proc/%d/status" % command.pid) as status:
            ignored = int(re.search(r"^SigIgn:\t(\w+)$", status.read(), re.M).group(1), 16)
        self.assertTrue(ignored & 1 << signal.SIGHUP - 1)
        command.send_signal(signal.SIGHUP)
        command.send_signal(signal.SIGTERM)
        err = command.communicate(timeout=PATIENCE)[1]
        self.assertEqual((command.returncode, err), (-signal.SIGTERM, "muster status: ended by SIGTERM\n"))


if __name__ == "__main__":
    unittest.main()
