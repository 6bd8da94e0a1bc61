#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/metrics of a server that a job uses, and the dashboard and the alerts that are made for it."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, "tests/tensorflow")
import peer

DIGITS, X, Y = (peer.fixture(name) for name in ("digits.meta", "digits_x.npy", "digits_y.npy"))
RULES = os.path.abspath("packaging/prometheus/muster.rules.yml")
DASHBOARD = os.path.abspath("packaging/grafana/muster.json")
PROMTOOL = shutil.which("promtool")
PATIENCE = 60


def run(*words):
    return subprocess.run([peer.MUSTER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=PATIENCE, check=False)


class Metrics(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_dir = os.path.join(folder.name, "run")

    def serve(self):
        server = subprocess.Popen([peer.MUSTER, "serve", "--listen=localhost:0", "--http=localhost:0"],
                                  stdout=subprocess.PIPE, text=True, preexec_fn=peer.die_with_parent)

        def end():
            server.terminate()
            server.wait(PATIENCE)
            server.stdout.close()

        self.addCleanup(end)
        return dict(server.stdout.readline().split() for _ in range(2))

    def train(self, at, steps):
        trained = run("train", "--master=" + at["serving"], "--meta-graph=" + DIGITS, "--feed=x:0=@" + X,
                      "--feed=y:0=@" + Y, "--loss=loss:0", "--steps=%d" % steps, "--checkpoint-dir=" + self.run_dir)
        self.assertEqual(trained.returncode, 0, trained.stderr)

    def metrics(self, at):
        with urllib.request.urlopen(at["http"] + "/metrics", timeout=PATIENCE) as answer:
            return answer.read().decode()

    def value(self, page, sample):
        found = re.search("^%s (.*)$" % re.escape(sample), page, re.M)
        self.assertIsNotNone(found, sample)
        return float(found.group(1))

    def test_count_what_a_job_did(self):
        at = self.serve()
        waits = subprocess.Popen([peer.MUSTER, "wait", "--master=" + at["serving"], "--meta-graph=" + DIGITS],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                 preexec_fn=peer.die_with_parent)
        self.addCleanup(waits.stderr.close)
        self.assertIn("waiting", waits.stderr.readline())
        peer.await_true(lambda: 'muster_model_waiting{model="digits"} 1' in self.metrics(at), "the client is counted")
        self.train(at, 20)
        self.assertEqual(waits.wait(PATIENCE), 0)
        page = self.metrics(at)
        self.assertNotIn("muster_model_waiting{", page)
        self.assertGreater(self.value(page, "muster_watch_latency_seconds_count"), 0)
        self.assertEqual(self.value(page, "muster_restore_duration_seconds_count"), 0)
        self.assertEqual(self.value(page, 'muster_model_phase{model="digits",phase="over"}'), 1)

        again = self.serve()
        self.train(again, 40)
        page = self.metrics(again)
        self.assertEqual(self.value(page, "muster_restore_duration_seconds_count"), 1)
        self.assertEqual(self.value(page, 'muster_model_failures{model="digits"}'), 0)

    def test_dashboard_and_alerts_use_metrics_that_exist(self):
        at = self.serve()
        self.train(at, 20)
        known = set(re.findall(r"^(muster_\w+)", self.metrics(at), re.M))
        # only while there is one
        known |= {"muster_model_waiting", "muster_certificate_expiry_timestamp_seconds", "muster_model_saving_seconds", "muster_model_save_interval_seconds", "muster_members",
                  "muster_members_needed"}
        with open(DASHBOARD, encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        with open(RULES, encoding="utf-8") as file:
            rules = re.findall(r"expr: (.*)", file.read())
        asked = "\n".join([target["expr"] for panel in panels for target in panel["targets"]] + rules)
        used = set(re.findall(r"muster_\w+", asked))
        self.assertGreater(len(used), 20)
        self.assertEqual(used - known, set())

    def test_each_state_that_needs_a_person_has_an_alert(self):
        with open(RULES, encoding="utf-8") as file:
            alerts = dict(re.findall(r"- alert: (\w+)\n +expr: (.*)", file.read()))
        for alert, metric in (("MusterDown", "up"), ("MusterNoChief", "muster_model_waiting"), ("MusterChiefLost", "muster_model_chief_alive"),
                              ("MusterStepsStalled", "muster_step_stalled_seconds"), ("MusterJobPaused", "muster_members_needed"),
                              ("MusterJobFailsAgain", "muster_model_failures"), ("MusterSaveFailed", 'outcome="failed"'),
                              ("MusterSaveSkipped", 'outcome="skipped"'), ("MusterCheckpointOld", "muster_model_durable_age_seconds"),
                              ("MusterLimitNear", "muster_limit_used"), ("MusterCertificateEnds", "muster_certificate_expiry_timestamp_seconds")):
            self.assertIn(metric, alerts[alert])

    def models(self, page, clause):
        """The models for which a clause of an alert can hold: a number that it compares by < or > may be any."""
        samples = re.findall(r'^(\w+)\{model="([^"]*)"(?:,phase="([^"]*)")?\} (.*)$', page, re.M)
        found = re.fullmatch(r'(\w+)(?:\{phase=~?"(.*)"\})?(?: == (.*)| [<>] .*)?', clause)
        if not found:  # a function of Prometheus
            return {model for _, model, _, _ in samples}
        metric, phases, value = found.groups()
        return {model for name, model, phase, now in samples
                if name == metric and re.fullmatch(phases or ".*", phase) and value in (None, now)}

    def test_a_job_that_is_over_needs_nobody(self):
        at = self.serve()
        self.train(at, 20)
        page = self.metrics(at)
        self.assertEqual(self.value(page, 'muster_model_ready{model="digits"}'), 0)
        with open(RULES, encoding="utf-8") as file:
            alerts = dict(re.findall(r"- alert: (\w+)\n +expr: (muster_model_.*)", file.read()))
        self.assertLessEqual({"MusterModelNotReady", "MusterChiefLost", "MusterGoodputLow"}, set(alerts))
        for alert, rule in alerts.items():
            clause, *more = re.split(r" (and|unless) on \(instance, model\) ", rule)
            firing = self.models(page, clause)
            for how, clause in zip(more[::2], more[1::2]):
                others = self.models(page, clause)
                firing = firing & others if how == "and" else firing - others
            self.assertEqual(firing, set(), alert)

    @unittest.skipUnless(PROMTOOL, "promtool isn't installed: Debian has it in the package prometheus")
    def test_promtool_accepts_the_alerts(self):
        checked = subprocess.run([PROMTOOL, "check", "rules", RULES], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)


if __name__ == "__main__":
    unittest.main()
