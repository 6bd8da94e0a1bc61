#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The log of `muster serve`, `train`, `prepare` and `wait` as an operator reads it: its forms, its levels, its events."""

import concurrent.futures
import datetime
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, "tests/scenarios")
sys.path.insert(0, "tests/tensorflow")
import peer
import processes

DIGITS = peer.fixture("digits.meta")
PATIENCE = 60
TEXT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) (error|warning|notice|info|debug) +([a-z-]+)  (.*)")

JOURNAL = """
import os, socket, subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
os.makedirs("/run/systemd/journal")
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")
journal.settimeout(30)
server = subprocess.Popen([sys.argv[1], "serve", "--listen=localhost:0", "--log-format=journald"], stdout=subprocess.DEVNULL)
try:
    sys.stdout.buffer.write(journal.recv(65536))
finally:
    server.kill()
    server.wait()
"""


def read_json(lines):
    return [json.loads(line) for line in lines if line.startswith("{")]


class LogTest(processes.TestCase):
    """The scenario's processes have stderr and stdout in one stream."""

    def serve_with(self, *flags):
        """A server and its address."""
        return self.serve(0, *flags)

    def stop(self, server):
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0, server.text())

    def events(self, server):
        """The stopped server's, by name."""
        found = {}
        for entry in read_json(server.lines):
            found.setdefault(entry["event"], []).append(entry)
        return found

    def prepare_as(self, target, model, *flags, code=0):
        return self.prepare(target, "--model=" + model, *flags, code=code)


class FormTest(LogTest):
    def test_a_line_of_text_has_time_level_event_message_and_fields(self):
        server, target = self.serve_with()
        self.prepare_as(target, "digits")
        self.stop(server)
        lines = [TEXT.fullmatch(line) for line in server.lines if not line.startswith("serving")]
        self.assertTrue(all(lines), server.text())
        self.assertEqual([line.group(3) for line in lines][0], "start")
        claim = [line for line in lines if line.group(3) == "claim"][0]
        self.assertEqual(claim.group(2), "info")
        self.assertRegex(claim.group(4), r" claimed 'digits'.*  model=digits client=\S+ epoch=1 session=[0-9a-f]{16}$")

    def test_json_is_an_object_a_line_with_typed_values(self):
        server, target = self.serve_with("--log-format=json")
        self.prepare_as(target, "digits", "--task=chief:0")
        self.stop(server)
        for line in server.lines:
            if not line.startswith("serving"):
                entry = json.loads(line)
                self.assertEqual(list(entry)[:4], ["time", "level", "event", "message"])
                datetime.datetime.strptime(entry["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        claim = self.events(server)["claim"][0]
        self.assertEqual((claim["model"], claim["task"], claim["epoch"]), ("digits", "chief:0", 1))

    def test_names_from_the_network_stay_in_their_line_and_field(self):
        hostile = 'x" event="audit\\'
        for form in "text", "json":
            server, target = self.serve_with("--log-format=" + form)
            self.prepare_as(target, hostile)
            self.stop(server)
            if form == "json":
                self.assertEqual(self.events(server)["claim"][0]["model"], hostile)
            else:
                claims = [line for line in server.lines if "  model=" in line and " claim " in line]
                self.assertEqual(len(claims), 1, server.text())
                self.assertIn(r'model="x\" event=\"audit\\"', claims[0])

    def test_the_journal_gets_fields_and_priorities(self):
        """In a mount namespace with a journal of the test's own; GLib names its socket."""
        trial = ["unshare", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /run"]
        if not shutil.which("unshare") or subprocess.run(trial, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("no mount namespaces here")
        done = subprocess.run(["unshare", "--map-root-user", "--mount", sys.executable, "-c", JOURNAL, peer.MUSTER], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        start = done.stdout.split("\n")
        self.assertIn("PRIORITY=6", start)
        self.assertIn("MUSTER_EVENT=start", start)
        self.assertIn("GLIB_DOMAIN=Muster", start)

    def test_journald_falls_back_to_text_where_no_journal_listens(self):
        if os.path.exists("/run/systemd/journal/socket"):
            self.skipTest("a journal listens here")
        server, _ = self.serve_with("--log-format=journald")
        self.stop(server)
        self.assertTrue(any(TEXT.fullmatch(line) for line in server.lines), server.text())


class LevelTest(LogTest):
    def test_a_server_is_silent_above_its_level(self):
        server, target = self.serve_with("--log-level=warning")
        self.prepare_as(target, "digits")
        self.stop(server)
        self.assertEqual(len(server.lines), 1, server.text())

    def test_an_unknown_level_or_format_is_bad_usage(self):
        for flag in "--log-level=loud", "--log-format=xml":
            for command in (["serve"], ["wait", "--meta-graph=" + DIGITS, "--master=grpc://localhost:1"]):
                done = subprocess.run([peer.MUSTER, *command, flag], capture_output=True, text=True, timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("invalid --log-", done.stderr)

    def test_a_command_that_reports_logs_only_when_asked(self):
        with tempfile.TemporaryDirectory() as folder:
            train = [peer.MUSTER, "prepare", "--master=local", "--meta-graph=" + DIGITS, "--checkpoint-dir=" + folder]
            quiet, loud = (subprocess.run(train + more, capture_output=True, text=True, timeout=PATIENCE, check=True)
                           for more in ([], ["--log-level=info", "--log-format=json"]))
        self.assertEqual(quiet.stderr, "")
        self.assertTrue(read_json(loud.stderr.splitlines()), loud.stderr)

    def test_a_server_whose_log_has_no_reader_serves_on(self):
        reading, writing = os.pipe()
        server = subprocess.Popen([peer.MUSTER, "serve", "--listen=localhost:0", "--log-level=debug"], stdout=subprocess.PIPE,
                                  stderr=writing, text=True, preexec_fn=peer.die_with_parent)
        self.addCleanup(server.stdout.close)
        os.close(writing)
        target = server.stdout.readline().split()[1]
        os.close(reading)
        self.prepare_as(target, "digits")
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0)

    def serve_into(self, writing, *flags):
        """A server whose log goes into a pipe, and its address."""
        server = subprocess.Popen([peer.MUSTER, "serve", "--listen=localhost:0", "--log-format=json", *flags], stdout=subprocess.PIPE,
                                  stderr=writing, text=True, preexec_fn=peer.die_with_parent)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.kill)
        os.close(writing)
        return server, server.stdout.readline().split()[1]

    def read_to_end(self, server, target, reading):
        """All entries of a server that is stopped; "last" is prepared while they are read."""
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 1 << 20)  # at its end the server doesn't wait long for a slow reader
        read = []
        thread = threading.Thread(target=lambda: read.extend(open(reading, encoding="utf-8")))
        thread.start()
        self.prepare_as(target, "last")
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0)
        thread.join(PATIENCE)
        return [json.loads(line) for line in read]

    def test_a_server_does_not_wait_for_a_reader_of_its_log(self):
        reading, writing = os.pipe()
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 4096)
        server, target = self.serve_into(writing, "--log-level=debug", *["--data-dir=/tmp"] * 400)
        models = ["m%d" % n for n in range(5)]
        for model in models:
            self.prepare_as(target, model)
        entries = self.read_to_end(server, target, reading)
        self.assertEqual([entry["model"] for entry in entries if entry["event"] == "claim"], models + ["last"])
        self.assertEqual((entries[0]["event"], entries[-1]["event"]), ("start", "stopped"))
        self.assertGreater(len(entries[0]["configuration"]), 4096)  # more than the pipe takes at once

    def test_a_server_drops_what_it_can_not_keep_of_its_log(self):
        reading, writing = os.pipe()
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 4096)
        server, target = self.serve_into(writing, "--log-level=debug")
        with tempfile.TemporaryDirectory() as folder:  # some thousand steps, each with some messages
            subprocess.run([peer.MUSTER, "train", "--master=" + target, "--meta-graph=" + DIGITS, "--checkpoint-dir=" + folder,
                            "--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy"),
                            "--steps=3000"], capture_output=True, timeout=PATIENCE, check=True)
        entries = self.read_to_end(server, target, reading)
        dropped = [n for n, entry in enumerate(entries) if entry["event"] == "dropped"]
        self.assertEqual(len(dropped), 1)
        self.assertGreater(entries[dropped[0]]["count"], 100)
        self.assertLess([entry["event"] for entry in entries].index("claim"), dropped[0])
        self.assertIn("last", [entry.get("model") for entry in entries[dropped[0]:] if entry["event"] == "claim"])

    def test_a_server_ends_although_nobody_reads_its_log(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, 4096)
        server, target = self.serve_into(writing, "--log-level=debug")
        for n in range(3):
            self.prepare_as(target, "m%d" % n)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0)


class EventTest(LogTest):
    def test_start_says_what_is_served_and_stop_what_is_waited_for(self):
        server, target = self.serve_with("--log-format=json")
        self.stop(server)
        events = self.events(server)
        self.assertEqual(events["start"][0]["address"], target)
        self.assertEqual(events["start"][0]["pid"], server.process.pid)
        self.assertRegex(events["start"][0]["version"], r"^\d+\.\d+\.\d+")
        self.assertEqual(events["stop"][0]["sessions"], 0)
        self.assertIn("seconds", events["stopped"][0])

    def test_a_server_that_does_not_start_says_so_in_its_log(self):
        _, target = self.serve_with()
        done = subprocess.run([peer.MUSTER, "serve", "--listen=" + target.split("//")[1], "--log-format=json"], capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 3)
        entry = json.loads(done.stderr)
        self.assertEqual((entry["level"], entry["event"]), ("error", "failed"))
        self.assertIn("address already in use", entry["message"])

    def await_chiefs_gone(self, target):
        """A server hears a moment later that a command has ended."""
        peer.await_true(lambda: not any(model["alive"] for model in peer.muster_json("status", target)["models"]), "the chiefs are gone")

    def test_claims_their_end_and_refused_ones_are_logged(self):
        server, target = self.serve_with("--log-format=json")
        self.prepare_as(target, "digits", "--task=chief:0", "--epoch=7")
        self.prepare_as(target, "digits", "--epoch=3", code=4)
        self.prepare_as(target, "digits", "--overwrite")
        self.await_chiefs_gone(target)
        self.stop(server)
        events = self.events(server)
        self.assertEqual([claim["epoch"] for claim in events["claim"]], [7, 8])
        self.assertIn("chief:0", events["claim"][1]["message"])
        self.assertIn("epoch 3 belongs to a chief that was replaced", events["claim-refused"][0]["message"])
        self.assertEqual([left["epoch"] for left in events["chief-left"]], [7, 8])

    def test_a_training_is_in_the_log_of_its_server(self):
        server, target = self.serve_with("--log-format=json")
        with tempfile.TemporaryDirectory() as folder:
            train = [peer.MUSTER, "train", "--master=" + target, "--meta-graph=" + DIGITS, "--checkpoint-dir=" + folder,
                     "--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy"), "--steps=30"]
            trained = subprocess.run(train + ["--log-level=info", "--log-format=json"], capture_output=True, text=True,
                                     timeout=PATIENCE, check=True)
        self.await_chiefs_gone(target)
        self.stop(server)
        events = self.events(server)
        for event in "claim", "prepared", "ready", "training", "checkpoint", "job-over", "chief-left":
            self.assertIn("digits", [entry["model"] for entry in events[event]], event)
        self.assertEqual(events["checkpoint"][-1]["step"], 30)
        self.assertGreater(events["checkpoint"][-1]["bytes"], 1000)
        saves = [entry for entry in read_json(trained.stderr.splitlines()) if entry["event"] == "save" and entry["step"] == 30]
        self.assertEqual([save["state"] for save in saves], ["requested", "staged", "written", "durable"], trained.stderr)
        self.assertTrue(all(isinstance(save["seconds"], float) for save in saves))

    def test_a_chief_that_is_replaced_is_fenced(self):
        server, target = self.serve_with("--log-format=json")
        with tempfile.TemporaryDirectory() as folder:
            first = self.start(peer.MUSTER, "train", "--master=" + target, "--meta-graph=" + DIGITS, "--checkpoint-dir=" + folder,
                               "--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy"),
                               "--steps=1000000000")
            server.expect('"event":"training"')
            self.prepare_as(target, "digits", "--epoch=9", "--overwrite")
            server.expect('"event":"fenced"')
            first.end()
        self.stop(server)
        events = self.events(server)
        self.assertEqual(events["fenced"][0]["epoch"], 1)

    def test_a_chief_that_is_silent_is_lost(self):
        server, target = self.serve_with("--log-format=json", "--chief-lease=1s")
        chief = self.start(peer.MUSTER, "train", "--master=" + target, "--meta-graph=" + DIGITS,
                           "--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy"),
                           "--steps=1000000000")
        server.expect('"event":"training"')
        chief.stop()
        server.expect('"event":"chief-lost"')
        chief.end()
        self.stop(server)

    def test_a_limit_is_named_and_not_repeated_for_each_client(self):
        server, target = self.serve_with("--log-format=json", "--max-graph-bytes=100")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:  # within a short time
            list(pool.map(lambda _: self.prepare_as(target, "digits", code=4), range(8)))
        self.stop(server)
        limits = self.events(server)["limit"]
        self.assertLessEqual(len(limits), 7)
        self.assertEqual((limits[0]["limit"], limits[0]["max"], limits[0]["level"]), ("graph_bytes", 100, "notice"))

    def test_a_request_is_followed_through_a_gateway(self):
        server, target = self.serve_with("--log-format=json", "--log-level=debug")
        gateway, near = self.serve(0, "--master=" + target, "--log-format=json", "--log-level=debug")
        done = subprocess.run([peer.MUSTER, "prepare", "--meta-graph=" + DIGITS, "--master=" + near, "--log-level=debug", "--log-format=json"],
                              capture_output=True, text=True, timeout=PATIENCE, check=True)
        self.stop(gateway)
        self.stop(server)
        sent = {entry["request"] for entry in read_json(done.stderr.splitlines()) if entry["event"] == "step"}
        self.assertTrue(sent, done.stderr)
        for process in gateway, server:
            for event in "step", "step-done":
                self.assertLessEqual(sent, {entry["request"] for entry in self.events(process)[event] if "request" in entry})


if __name__ == "__main__":
    unittest.main()
