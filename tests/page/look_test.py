#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's page in headless Chromium: waiting, running, elastic, paused, over, with a lost chief and failed, narrow and wide,
light and dark.

    look_test.py [DIRECTORY]     also writes a picture of each into DIRECTORY
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path[:0] = ["tests/tensorflow", "tests/page"]
import browser
import peer

DIGITS, X, Y = (peer.fixture(name) for name in ("digits.meta", "digits_x.npy", "digits_y.npy"))
PATIENCE = 60
WIDTHS = (400, 1400)
CUT_OFF = "[...document.querySelectorAll('section')].filter(s => s.scrollWidth > s.clientWidth).length"
# The words of tables, and the numbers with units, that are broken between two lines.
BROKEN = """[...document.querySelectorAll('td, th, dd, p, span')].flatMap(cell => [...cell.childNodes]).flatMap(node =>
  [...(node.data || '').matchAll(node.parentNode.matches('td, th') ? /\\w+/g : /[\\d.]+\\s(ms|s|B|[KMG]B|%)(?!\\w)/g)].filter(word => {
    const range = document.createRange();
    range.setStart(node, word.index);
    range.setEnd(node, word.index + word[0].length);
    return range.getClientRects().length > 1;
  })).map(word => word[0]).join(' ')"""
PICTURES = sys.argv.pop() if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else None


def until(what, happens):
    end = time.monotonic() + PATIENCE
    while not happens():
        if time.monotonic() > end:
            raise AssertionError("not within a minute: " + what)
        time.sleep(0.05)


@unittest.skipUnless(browser.CHROMIUM, "Chromium isn't installed: Debian has it in the package chromium")
class Look(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # Chromium writes on while it ends
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.server = self.start("serve", "--listen=localhost:0", "--http=localhost:0", "--chief-lease=3s",
                                 stdout=subprocess.PIPE)
        self.at = dict(self.server.stdout.readline().split() for _ in range(2))
        self.addCleanup(self.server.stdout.close)
        self.browser = browser.Browser(os.path.join(folder.name, "profile"), peer.die_with_parent)
        self.addCleanup(self.browser.end)

    def start(self, *words, stdout=subprocess.DEVNULL, **environment):
        process = subprocess.Popen([peer.MUSTER, *words], stdout=stdout, stderr=subprocess.DEVNULL, text=True,
                                   preexec_fn=peer.die_with_parent, env={**os.environ, **environment})

        def end():
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE)

        self.addCleanup(end)
        return process

    def state_is(self, word):
        return self.browser.value("(document.querySelector('.state') || {}).textContent") == word

    def check(self, name, word):
        """The page has this state's word, in every width and scheme, live and without a script."""
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                with self.subTest(name=name, width=width, scheme=scheme):
                    self.browser.look(self.at["http"], width, scheme)
                    until("live", lambda: self.browser.value("document.getElementById('live').textContent") == "live")
                    until(word, lambda: self.state_is(word))
                    self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.browser.value(CUT_OFF), 0)
                    self.assertEqual(self.browser.value(BROKEN), "")
                    if PICTURES:
                        self.browser.picture(os.path.join(PICTURES, "%s-%d-%s.png" % (name, width, scheme)))
        self.browser.look(self.at["http"], WIDTHS[0], "light", scripted=False)
        until(word + " without a script", lambda: self.state_is(word))
        self.assertEqual(self.browser.complaints, [])

    def train(self, labels, *words):
        return self.start("train", "--master=" + self.at["serving"], "--meta-graph=" + DIGITS, "--feed=x:0=@" + X,
                          "--feed=y:0=@" + labels, "--loss=loss:0", "--steps=100000000", "--task=chief:0", *words)

    def test_shows_a_job_that_has_failed(self):
        with open(Y, "rb") as file:
            labels = bytearray(file.read())
        labels[-8:] = (99).to_bytes(8, "little")  # there are ten
        bad = os.path.join(self.folder, "bad.npy")
        with open(bad, "wb") as file:
            file.write(labels)
        self.assertEqual(self.train(bad).wait(PATIENCE), 3)  # the model refuses a label
        self.check("failed", "failed")

    def test_shows_a_job_that_waits_runs_and_has_lost_its_chief(self):
        master = "--master=" + self.at["serving"]
        self.start("wait", master, "--meta-graph=" + DIGITS, "--task=worker:1")
        until("a waiting client", lambda: json.loads(self.status())["watchers"] == 1)
        self.check("waiting", "waiting")
        chief = self.train(Y, "--save-every=500", "--checkpoint-dir=" + os.path.join(self.folder, "run"))
        until("a durable checkpoint", lambda: any((m["durable_step"] or 0) > 500
                                                  for m in json.loads(self.status())["models"]))
        if PICTURES:
            time.sleep(100)  # so that there is something to see of the last hour
        self.check("running", "ready")
        chief.kill()
        chief.wait(PATIENCE)
        self.check("lost", "chief lost")

    def test_shows_a_job_that_waits_for_tasks_and_ends(self):
        start = ["train", "--master=" + self.at["serving"], "--meta-graph=" + DIGITS, "--feed=x:0=@" + X, "--feed=y:0=@" + Y,
                 "--loss=loss:0", "--task=auto", "--min-tasks=2", "--steps=100000000", "--checkpoint-dir=" + os.path.join(self.folder, "run")]
        tasks = [self.start(*start) for _ in range(2)]
        until("two tasks train", lambda: sum(m["batches"] > 0 for m in self.job()["members"]) == 2)
        tasks[0].kill()
        self.check("paused", "waiting for tasks")
        tasks[1].kill()
        subprocess.run([peer.MUSTER, "finish", "--model=digits", "--master=" + self.at["serving"]], check=True, stdout=subprocess.DEVNULL)
        self.check("over", "over")

    def tasks(self):
        """What the rows of the table say, by the task's name and the role's first word."""
        rows = self.browser.value("[...document.querySelectorAll('section')].filter(s => s.innerText.startsWith('Tasks'))"
                                  ".flatMap(s => [...s.querySelectorAll('tr')].slice(1).map(r => r.innerText)).join('\\n')")
        return [row.split("\t") for row in rows.split("\n")]

    def job(self):
        jobs = json.loads(self.status())["jobs"]
        return jobs[0] if jobs else {"members": [], "left": []}

    def test_shows_the_tasks_of_an_elastic_job(self):
        start = ["train", "--master=" + self.at["serving"], "--meta-graph=" + DIGITS, "--feed=x:0=@" + X, "--feed=y:0=@" + Y,
                 "--loss=loss:0", "--steps=100000000", "--task=auto", "--checkpoint-dir=" + os.path.join(self.folder, "run")]
        tasks = [self.start(*start, SLURM_PROCID=str(i)) for i in range(5)]
        until("five tasks train", lambda: sum(m["batches"] > 0 for m in self.job()["members"]) == 5)
        roles = {int(m["task"].split(":")[1]): m["role"] for m in self.job()["members"]}
        leaving, silent = [i for i in roles if roles[i] == "worker"][:2]
        tasks[leaving].send_signal(signal.SIGTERM)
        self.assertEqual(tasks[leaving].wait(PATIENCE), 6)
        tasks[silent].send_signal(signal.SIGSTOP)
        until("one is silent", lambda: len(self.job()["members"]) == 3)
        self.check("elastic", "ready")
        self.browser.look(self.at["http"], WIDTHS[1], "light")
        until("tasks", lambda: len(self.tasks()) >= 5)
        shown = {row[0] + " " + row[2].split()[-1] for row in self.tasks()}
        self.assertIn("task:%d left" % leaving, shown)
        self.assertEqual(sum(row[2].startswith("chief in slot") for row in self.tasks()), 1)
        self.assertEqual(sum(row[2].startswith("worker in slot") for row in self.tasks()), 2)
        self.assertEqual([row[0] for row in self.tasks() if "silent" in row[2] or "no sign" in row[2]], ["task:%d" % silent])

    def status(self):
        return subprocess.run([peer.MUSTER, "status", "--json", self.at["serving"]], stdout=subprocess.PIPE, text=True,
                              check=True).stdout


if __name__ == "__main__":
    unittest.main()
