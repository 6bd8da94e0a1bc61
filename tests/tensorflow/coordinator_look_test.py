# SPDX-License-Identifier: Apache-2.0
"""The coordinator's page of a job on a TensorFlow cluster in headless Chromium: running, waiting for tasks, a parameter server away,
the coordinator away.

    coordinator_look_test.py [DIRECTORY]     also writes a picture of each, narrow and wide, light and dark, into DIRECTORY
"""
import os
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, "tests/page")
import browser
import coordinator_test
import peer

import tensorflow as tf

WIDTHS, SCHEMES = (400, 1000, 1400), ("dark", "light")
PICTURES = sys.argv.pop() if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else None


@unittest.skipUnless(browser.CHROMIUM, "Chromium isn't installed: Debian has it in the package chromium")
class Look(coordinator_test.Coordinated):
    serve_options = ["--http=127.0.0.1:0"]
    workers = 2
    epochs = 10**5

    def setUp(self):
        super().setUp()
        self.run_dir = self.enterContext(tempfile.TemporaryDirectory(dir="/tmp"))  # a short name
        self.page = self.coordinator.stdout.readline().decode().split()[1]
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # Chromium writes on while it ends
        self.addCleanup(folder.cleanup)
        self.browsers = [browser.Browser(os.path.join(folder.name, str(width)), peer.die_with_parent) for width in WIDTHS]
        for each, width in zip(self.browsers, WIDTHS):
            self.addCleanup(each.end)
            each.look(self.page, width, "light")
        self.ended = threading.Event()
        self.feeder = threading.Thread(target=self.feed)
        self.options += ["--save-secs=5", "--min-tasks=3"]

    def feed(self):
        """A few steps of each task at a time, so that they have a rate."""
        while not self.ended.wait(0.3):
            for name in list(self.tasks):
                try:
                    self.allow(3, name)
                except tf.errors.OpError:  # it is on its way back
                    pass

    def check(self, name, word, live="live"):
        for each, width in zip(self.browsers, WIDTHS):
            def shows():
                return (each.value("(document.querySelector('.state') || {}).textContent") == word and
                        each.value("document.getElementById('live').textContent").startswith(live))
            with self.subTest(name=name, width=width):
                peer.await_true(shows, "the page says " + word)
                self.assertLessEqual(each.value("document.documentElement.scrollWidth"), width)
                for scheme in SCHEMES if PICTURES else ():
                    each.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                    each.picture(os.path.join(PICTURES, "%s-%d-%s.png" % (name, width, scheme)))

    def test_shows_a_cluster_in_four_states(self):
        for name in ("chief:0", "worker:0", "worker:1"):
            self.train(name)
        self.feeder.start()
        self.addCleanup(self.feeder.join)
        self.addCleanup(self.ended.set)
        peer.await_true(lambda: (model := self.model()) and (model["durable_step"] or 0) > 0 and
                        len(peer.muster_json("status", "grpc://" + self.address)["jobs"][0]["members"]) == 3, "three tasks train")
        self.check("running", "ready")
        self.kill("worker:1")
        self.check("paused", "waiting for tasks")
        self.train("worker:1")
        self.check("resumed", "ready")
        self.cluster.kill("ps:0")
        self.check("ps-away", "not ready")
        self.stop(self.coordinator)
        self.check("coordinator-away", "not ready", live="no connection")


if __name__ == "__main__":
    peer.main()
