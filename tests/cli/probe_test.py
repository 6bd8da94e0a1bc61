#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts and probes ask a server, without a meta graph: `status --ready`, `wait --model`, /readyz; and `status
--watch`."""

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, "tests/scenarios")
import processes
from processes import DIGITS, peer

NOBODY = "grpc://127.0.0.1:1"
PATIENCE = 60
FEEDS = ["--feed=x:0=@" + peer.fixture("digits_x.npy"), "--feed=y:0=@" + peer.fixture("digits_y.npy")]


class ProbeTest(processes.TestCase):
    def run_muster(self, *words):
        return subprocess.run([peer.MUSTER, *words], capture_output=True, text=True, timeout=PATIENCE, check=False,
                              stdin=subprocess.DEVNULL)

    def expect(self, code, words, *command):
        said = self.run_muster(*command)
        self.assertEqual(said.returncode, code, said.stdout + said.stderr)
        self.assertIn(words, said.stdout + said.stderr)
        return said

    def train(self, target, steps):
        self.expect(0, "trained digits", "train", "--meta-graph=" + DIGITS, "--master=" + target, *FEEDS, "--steps=%d" % steps)

    def finish(self, target):
        self.expect(0, "", "finish", "--model=digits", "--master=" + target)

    def await_ready(self, target, model="digits"):
        """The server asks the model's ready op by itself, once the chief has prepared it."""
        peer.await_true(lambda: self.run_muster("status", "--ready=" + model, target).returncode == 0, model + " is ready")

    # --- status --ready ---

    def test_ready_exits_as_its_help_says(self):
        _, target = self.serve()
        self.expect(0, target + ": ready", "status", "--ready", target)
        self.expect(0, target + ": ready", "status", target, "--ready")
        self.expect(1, "digits: not ready: no chief has ever registered", "status", "--ready=digits", target)
        self.prepare(target)
        self.await_ready(target)
        self.expect(0, target + ", digits: ready", "status", "--ready=digits", target)
        said = self.expect(0, "", "status", "--ready=digits", target, "--json")
        self.assertEqual(json.loads(said.stdout), {"target": target, "model": "digits", "ready": True})
        self.finish(target)
        self.expect(1, "digits: not ready", "status", "--ready=digits", target)
        self.expect(2, "no answer from " + NOBODY, "status", "--ready", NOBODY, "--timeout=2")
        self.expect(3, "invalid master", "status", "--ready", "http://127.0.0.1:1")
        self.expect(3, "one TARGET", "status", "--ready")
        self.expect(3, "--watch", "status", "--ready", "--watch", target)

    def test_ready_needs_no_token(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            cert, key, token = peer.secrets(folder)
            server = self.start(peer.MUSTER, "serve", "--listen=localhost:0", "--tls-cert=" + cert, "--tls-key=" + key,
                                "--token-file=" + token)
            server.expect("serving grpcs://")
            target = server.lines[0].split()[1]
            self.expect(0, ": ready", "status", "--ready", target, "--tls-ca=" + cert)
            self.expect(1, "not ready", "status", "--ready=digits", target, "--tls-ca=" + cert)

    # --- wait --model ---

    def wait_named(self, target, *words):
        return self.start(peer.MUSTER, "wait", "--model=digits", "--master=" + target, *words)

    def test_waits_for_a_model_by_its_name(self):
        _, target = self.serve()
        waiting = self.wait_named(target)
        waiting.expect("waiting for digits at %s: no chief has ever registered" % target)
        self.prepare(target)
        self.assertEqual(waiting.wait(PATIENCE), 0, waiting.text())
        self.assertRegex(waiting.text(), "ready after ")
        status = json.loads(peer.muster("status", target, "--json"))
        self.assertEqual(status["sessions"], 0)
        self.finish(target)
        over = self.wait_named(target, "--json")
        self.assertEqual(over.wait(PATIENCE), 5, over.text())
        result = json.loads([line for line in over.lines if line.startswith("{")][-1])
        self.assertEqual((result["outcome"], result["model"]), ("over", "digits"))

    def test_a_wait_by_name_ends_with_its_timeout(self):
        _, target = self.serve()
        self.expect(1, "no chief has ever registered", "wait", "--model=digits", "--master=" + target, "--timeout=10")
        self.expect(2, "no answer from " + NOBODY, "wait", "--model=digits", "--master=" + NOBODY, "--timeout=1")
        self.expect(3, "needs --meta-graph=FILE or --model=NAME", "wait", "--master=" + target)
        self.expect(3, "exists only in this process", "wait", "--model=digits", "--master=local")
        for name in [["--model="], ["--model=digits", "--model="]]:
            self.expect(3, "--model is empty", "wait", *name, "--master=" + target)
        self.expect(3, "invalid master", "wait", "--model=digits", "--master=http://localhost:1")

    def test_a_name_that_no_retry_helps_has_failed(self):
        _, target = self.serve()
        waiting = self.start(peer.MUSTER, "wait", "--model=" + "m" * 300, "--master=" + target, "--json")
        self.assertEqual(waiting.wait(PATIENCE), 3, waiting.text())
        self.assertEqual(json.loads([line for line in waiting.lines if line.startswith("{")][-1])["outcome"], "failed")

    def test_a_wait_by_name_outlasts_the_server(self):
        held = peer.hold_port()
        self.addCleanup(held.close)
        port = held.getsockname()[1]
        target = "grpc://127.0.0.1:%d" % port
        waiting = self.wait_named(target)
        waiting.expect("no answer from the master")
        server, _ = self.serve(port)
        waiting.expect("no chief has ever registered")
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE), 0)
        waiting.expect("the master is gone")
        self.serve(port)
        self.prepare(target)
        self.assertEqual(waiting.wait(PATIENCE), 0, waiting.text())

    def test_waits_for_several_models_until_one_deadline(self):
        _, target = self.serve()
        waiting = self.start(peer.MUSTER, "wait", "--model=digits", "--model=other", "--master=" + target, "--json")
        waiting.expect("waiting for digits")
        self.prepare(target)
        waiting.expect("waiting for other at %s: no chief has ever registered" % target)
        self.prepare(target, "--model=other")
        self.assertEqual(waiting.wait(PATIENCE), 0, waiting.text())
        results = [json.loads(line) for line in waiting.lines if line.startswith("{")]
        self.assertEqual([(result["model"], result["outcome"]) for result in results], [("digits", "ready"), ("other", "ready")])
        self.expect(1, "waiting for nobody", "wait", "--model=digits", "--model=nobody", "--model=other", "--master=" + target,
                    "--timeout=6")
        self.expect(3, "several models can't be combined with --meta-graph", "wait", "--meta-graph=" + DIGITS, "--model=a",
                    "--model=b", "--master=" + target)

    def test_waits_for_a_step(self):
        _, target = self.serve()
        waiting = self.wait_named(target, "--for=step>=40", "--json")
        waiting.expect("waiting for digits at %s: no chief has ever registered" % target)
        self.train(target, 30)
        self.assertEqual(waiting.wait(PATIENCE), 5, waiting.text())
        self.assertIn("muster: the job 'digits' is over, at step 30", waiting.text())
        self.expect(0, "digits is at step 30\n", "wait", "--model=digits", "--for=step>=30", "--master=" + target)
        said = self.expect(0, "", "wait", "--model=digits", "--for=step>=20", "--master=" + target, "--json")
        result = json.loads(said.stdout)
        self.assertEqual((result["outcome"], result["step"]), ("ready", 30))

    def test_a_wait_for_a_step_follows_the_chief(self):
        _, target = self.serve()
        training = self.start(peer.MUSTER, "train", "--meta-graph=" + DIGITS, "--master=" + target, *FEEDS, "--steps=100000000")
        waiting = self.wait_named(target, "--for=step>=1000")
        self.assertEqual(waiting.wait(PATIENCE), 0, waiting.text())
        self.assertRegex(waiting.text(), r"(?m)^digits is at step \d{4,}$")
        self.expect(1, "the step isn't reached after ", "wait", "--model=digits", "--for=step>=100000000", "--master=" + target,
                    "--timeout=6")
        training.signal(signal.SIGKILL)
        training.wait(PATIENCE)
        gone = self.wait_named(target, "--for=step>=100000000")
        gone.expect("is gone, at step ")

    def test_a_wait_for_a_step_is_checked(self):
        for wrong in ("step>=0", "step>=x", "step>5", "steps>=5"):
            self.expect(3, "wait: invalid --for '%s' (use ready or step>=N)" % wrong, "wait", "--model=m", "--for=" + wrong,
                        "--master=" + NOBODY)
        self.expect(3, "wait: --for=step>=N can't be combined with --meta-graph", "wait", "--meta-graph=" + DIGITS,
                    "--for=step>=1", "--master=" + NOBODY)
        self.expect(2, "no answer from " + NOBODY, "wait", "--model=m", "--for=step>=1", "--master=" + NOBODY, "--timeout=1")

    # --- /readyz ---

    def test_expected_models_keep_readyz_from_being_ready(self):
        server, target = self.serve(0, "--http=127.0.0.1:0", "--expect=digits", "--expect=other")
        server.expect("http http://")
        page = [line.split()[1] for line in server.lines if line.startswith("http ")][0] + "/readyz"
        self.assertEqual(self.get(page), (503, "digits: no chief has ever registered\nother: no chief has ever registered\n"))
        self.prepare(target)
        self.await_ready(target)
        self.assertEqual(self.get(page), (503, "other: no chief has ever registered\n"))
        self.prepare(target, "--model=other")
        self.await_ready(target, "other")
        self.assertEqual(self.get(page)[0], 200)
        self.finish(target)
        self.assertEqual(self.get(page), (503, "digits: its job is over\n"))

    def get(self, url):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    # --- status --watch ---

    def test_watch_shows_it_again(self):
        _, target = self.serve()
        watching = self.start(peer.MUSTER, "status", "--watch=100ms", "--json", target)
        peer.await_true(lambda: len(watching.lines) >= 3, "it is shown again")
        self.assertEqual({json.loads(line)["target"] for line in watching.lines}, {target})
        watching.signal(signal.SIGINT)
        self.assertEqual(watching.wait(PATIENCE), -signal.SIGINT)
        self.expect(3, "invalid --watch '1ms' (use 100ms or more)", "status", "--watch=1ms", target)

    def test_watch_shows_each_change_when_it_happens(self):
        _, target = self.serve()
        watching = self.start(peer.MUSTER, "status", "--watch", "--json", target)
        peer.await_true(lambda: len(watching.lines) >= 1, "it is shown")
        self.prepare(target)
        peer.await_true(lambda: any(json.loads(line)["models"] for line in watching.lines), "the chief is shown")
        watching.signal(signal.SIGINT)
        self.assertEqual(watching.wait(PATIENCE), -signal.SIGINT)
        shown = [json.dumps(json.loads(line)["models"]) for line in watching.lines if line.startswith("{")]
        self.assertEqual(shown[0], "[]")

    def test_watch_draws_over_what_a_terminal_shows(self):
        _, target = self.serve()
        main, other = pty.openpty()
        watching = subprocess.Popen([peer.MUSTER, "status", "--watch=100ms", target], stdout=other, stdin=subprocess.DEVNULL,
                                    preexec_fn=peer.die_with_parent)
        os.close(other)
        drawn, end = b"", time.monotonic() + PATIENCE
        while drawn.count(b"\x1b[H\x1b[J") < 3 and time.monotonic() < end:
            drawn += os.read(main, 4096)
        watching.send_signal(signal.SIGINT)
        self.assertEqual(watching.wait(PATIENCE), -signal.SIGINT)
        os.close(main)
        self.assertGreaterEqual(drawn.count(b"\x1b[H\x1b[Jup  no chief has ever registered"), 2, drawn)


if __name__ == "__main__":
    peer.main()
