#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An operator's day, with what is installed: a server is configured, secured, started and probed while a job trains on it;
its certificates and tokens are replaced without a failed step; its limits are hit; a chief is killed; the server drains for
an upgrade, and the job goes on with the next one to its end. All of it is in the log."""
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, "tests/scenarios")
import processes
from processes import DIGITS, peer

PATIENCE = 120
EPOCHS, BATCHES = 600, 1797 // 32
X, Y = peer.fixture("digits_x.npy"), peer.fixture("digits_y.npy")
LINREG = peer.fixture("linreg.meta")  # nobody prepares it
# The whole of the images is a larger request, and a padded graph a larger graph; the job's are smaller.
MAX_REQUEST, MAX_GRAPH = 440000, 200000
PADDING = 150000
# Sessions of the two tasks, of two waiting clients and of two that run steps.
MAX_WATCHERS, MAX_SESSIONS = 2, 6


def padded(meta_graph, n_bytes):
    """The same model with more nodes, as a second graph_def, which protobuf merges with the first."""
    nodes = bytearray()
    while len(nodes) < n_bytes:
        name = b"padding/%d" % len(nodes)
        node = b"\x0a" + bytes([len(name)]) + name + b"\x12\x04NoOp"
        nodes += b"\x0a" + bytes([len(node)]) + node
    size, varint = len(nodes), bytearray()
    while size >= 0x80:
        varint.append(size & 0x7F | 0x80)
        size >>= 7
    return meta_graph + b"\x12" + bytes(varint) + bytes([size]) + bytes(nodes)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_secret(path, text):
    """As an operator does: only the owner reads it, and a server that reads it meanwhile gets the old or the new one."""
    with open(path + ".new", "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(text)
    os.rename(path + ".new", path)


def events_of(process, name=None):
    """What a process has said in JSON, in order."""
    said = [json.loads(line) for line in process.text().splitlines() if line.startswith("{")]
    return [event for event in said if name in (None, event["event"])]


class OperatorDayTest(processes.TestCase):
    def setUp(self):
        self.at = self.folder()
        held = peer.hold_port()
        self.addCleanup(held.close)
        self.target = "grpcs://localhost:%d" % peer.port_of(held)
        self.pki = self.path("pki")

    def path(self, *names):
        return os.path.join(self.at, *names)

    # --- what the operator does ---

    def install(self):
        subprocess.run(["./install", "--prefix=" + self.path("usr")], check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
        peer.MUSTER = self.path("usr", "bin", "muster")

    def configure(self):
        peer.muster("certs", self.pki)
        os.mkdir(self.path("runs"))
        options = {"listen": self.target.split("//")[1], "http": "localhost:0", "data-dir": self.path("runs"),
                   "tls-cert": self.pki + "/server.pem", "tls-key": self.pki + "/server.key",
                   "token-file": self.pki + "/tokens", "expect": "digits", "log-format": "json", "max-sessions": MAX_SESSIONS,
                   "max-watchers": MAX_WATCHERS, "max-graph-bytes": MAX_GRAPH, "max-request-bytes": MAX_REQUEST, "grace": "60s"}
        with open(self.path("muster.conf"), "w", encoding="utf-8") as file:
            file.write("[serve]\n" + "".join("%s=%s\n" % option for option in options.items()))

    def start_server(self):
        server = self.start(peer.MUSTER, "serve", "--config=" + self.path("muster.conf"))
        server.expect("http https://")
        self.page = re.search(r"http (https://\S+)", server.text()).group(1)
        return server

    def as_role(self, role):
        return ["--tls-ca=" + self.pki + "/ca.pem", "--token-file=%s/%s.token" % (self.pki, role)]

    def task(self, name):
        chief = ["--checkpoint-dir=" + self.path("runs", "digits"), "--save-secs=0.5"] if name == "chief:0" else []
        return self.start(peer.MUSTER, "train", "--meta-graph=" + DIGITS, "--master=" + self.target, "--feed=x:0=@" + X,
                          "--feed=y:0=@" + Y, "--epochs=%d" % EPOCHS, "--tasks=2", "--task=" + name, "--json", *chief,
                          *self.as_role("run"))

    def get(self, path, role=None):
        """The status and text of a page."""
        request = urllib.request.Request(self.page + path)
        if role is not None:
            request.add_header("Authorization", "Bearer " + self.token(role))
        trusted = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=self.pki + "/ca.pem"))
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({}), trusted).open(request, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def token(self, role):
        return read("%s/%s.token" % (self.pki, role)).split()[-1]

    def status(self, *flags, role="read", code=0):
        return peer.muster("status", self.target, *flags, *self.as_role(role), code=code)

    def step(self):
        return json.loads(self.status("--json"))["models"][0]["step"] or 0

    def await_steps(self, n):
        reached = self.step() + n
        peer.await_true(lambda: self.step() >= reached, "%d more steps are made" % n)

    # --- the day ---

    def probe_before(self):
        self.assertEqual(self.get("/healthz")[0], 200)
        status, text = self.get("/readyz")
        self.assertEqual(status, 503)
        self.assertIn("digits", text)
        self.assertEqual(self.get("/metrics")[0], 401)
        self.status("--ready=digits", code=1)

    def probe_after(self):
        peer.muster("wait", "--model=digits", "--master=" + self.target, "--timeout=%d" % PATIENCE, *self.as_role("run"))
        self.status("--ready=digits")
        self.assertEqual(self.get("/readyz")[0], 200)
        self.assertIn("muster_model_step", self.get("/metrics", "read")[1])
        self.assertIn("digits", self.get("/", "read")[1])

    def rotate(self, server):
        """Both at once: new ones, and then the old tokens don't count any more."""
        old, known = self.token("run"), read(self.pki + "/tokens").splitlines()
        peer.muster("certs", "--renew", "--renew-tokens", self.pki)
        self.status()
        peer.await_true(lambda: len(events_of(server, "reload")) >= 2, "the server has read both")
        kept = [line for line in read(self.pki + "/tokens").splitlines() if line not in known]
        write_secret(self.pki + "/tokens", "\n".join(kept) + "\n")
        self.await_steps(200)
        write_secret(self.path("old.token"), old)
        refused = ["status", self.target, "--tls-ca=" + self.pki + "/ca.pem", "--token-file=" + self.path("old.token")]
        peer.await_true(lambda: subprocess.run([peer.MUSTER, *refused], capture_output=True, timeout=PATIENCE).returncode == 3,
                        "the old token is refused")

    def hit_limits(self):
        run = ["run", "--master=" + self.target, "--feed=y:0=@" + Y, "--fetch=accuracy:0", *self.as_role("run")]
        self.assertIn("--max-request-bytes", peer.muster(*run, "--meta-graph=" + DIGITS, "--feed=x:0=@" + X, code=4))
        with open(DIGITS, "rb") as file, open(self.path("padded.meta"), "wb") as larger:
            larger.write(padded(file.read(), PADDING))
        self.assertIn("--max-graph-bytes", peer.muster(*run, "--meta-graph=" + self.path("padded.meta"), "--rows=0:9",
                                                       "--feed=x:0=@" + X, code=4))
        waiting = [self.wait_for(LINREG) for _ in range(MAX_WATCHERS)]
        self.await_used("watchers", MAX_WATCHERS)
        refused = self.wait_for(LINREG)
        self.assertEqual(refused.wait(PATIENCE), 4, refused.text())
        self.assertIn("--max-watchers", refused.text())
        self.await_used("sessions", MAX_SESSIONS - 2)
        running = [self.start(peer.MUSTER, *run, "--meta-graph=" + DIGITS, "--rows=0:9", "--feed=x:0=@" + X,
                              "--steps=1000000000") for _ in range(2)]
        self.await_used("sessions", MAX_SESSIONS)
        refused = self.wait_for(LINREG)
        self.assertEqual(refused.wait(PATIENCE), 4, refused.text())
        self.assertIn("--max-sessions", refused.text())
        for client in waiting + running:
            client.signal(signal.SIGTERM)
            client.wait(PATIENCE)

    def wait_for(self, model):
        return self.start(peer.MUSTER, "wait", "--meta-graph=" + model, "--master=" + self.target,
                          "--timeout=%d" % PATIENCE, *self.as_role("run"))

    def await_used(self, name, n):
        def used():
            return [limit["used"] for limit in json.loads(self.status("--json"))["limits"] if limit["name"] == name][0]
        peer.await_true(lambda: used() == n, "%d %s are in use" % (n, name))

    def test_a_day(self):
        self.processes = []
        try:
            self.spend_a_day()
        except AssertionError as error:
            raise AssertionError("\n".join([str(error)] + [self.last_words(process) for process in self.processes]))

    def start(self, *argv):
        process = super().start(*argv)
        self.processes.append(process)
        return process

    def last_words(self, process):
        words = [line for line in process.text().splitlines() if '"event":"step"' not in line]
        return "%s: %s\n%s" % (" ".join(process.process.args[1:3]), process.process.poll(), "\n".join(words[-8:]))

    def spend_a_day(self):
        self.install()
        self.configure()
        peer.muster("serve", "--check-config", "--config=" + self.path("muster.conf"))
        server = self.start_server()
        self.probe_before()
        chief, worker = self.task("chief:0"), self.task("worker:0")
        self.probe_after()

        self.await_steps(100)
        self.rotate(server)
        self.hit_limits()
        self.await_steps(100)
        for task in chief, worker: # one session each, and no step failed
            self.assertEqual(len(events_of(task, "ready")), 1, task.text())
            self.assertEqual(events_of(task, "lost"), [], task.text())

        chief.end()
        chief = self.task("chief:0")
        chief.expect('"event":"ready"', PATIENCE)
        self.await_steps(100)
        self.assertIn("admin", self.finish_as("run", code=3))

        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0, server.text())
        self.install()
        upgraded = self.start_server()
        for task in worker, chief:
            self.assertEqual(task.wait(PATIENCE), 0, self.last_words(task))
        trained = events_of(chief, "trained")[-1]
        self.assertEqual(trained["step"], EPOCHS * BATCHES)
        self.assertEqual(trained["goodput"]["steps_again"], 0)
        upgraded.signal(signal.SIGTERM)
        self.assertEqual(upgraded.wait(PATIENCE), 0, upgraded.text())
        self.check_log(server, upgraded)

    def finish_as(self, role, code):
        """Ends the job for all, which takes an administrator."""
        return peer.muster("finish", "--model=digits", "--master=" + self.target, *self.as_role(role), code=code)

    def check_log(self, server, upgraded):
        for process in server, upgraded: # nothing but JSON, and no secret
            for line in process.lines:
                if not re.match(r"(serving|http) ", line):
                    self.assertEqual(list(json.loads(line))[:4], ["time", "level", "event", "message"])
            for role in "admin", "run", "read":
                self.assertNotIn(self.token(role), process.text())
        first = {event["event"] for event in events_of(server)}
        self.assertLessEqual({"start", "claim", "prepared", "training", "ready", "checkpoint", "reload", "refused", "limit",
                              "chief-left", "audit", "drain", "stop", "stopped"}, first)
        self.assertLessEqual({"sessions", "watchers"}, {event["limit"] for event in events_of(server, "limit")})
        self.assertLessEqual({"start", "claim", "job-over", "stopped"}, {event["event"] for event in events_of(upgraded)})


if __name__ == "__main__":
    peer.main()
