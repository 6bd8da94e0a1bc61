#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The types of the bindings and of the overrides, as mypy sees them."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PROGRAM = """
import datetime
import muster.checkpoint
from gi.repository import Muster, MusterEngine

def train(session: Muster.Session, model: Muster.Scaffold) -> float:
    loss: Muster.Tensor = session.fetch("loss:0", timeout=datetime.timedelta(seconds=3))
    session.run([model.train_op(), "loss:0"], {"x:0": [1.0]}, timeout=3)
    return float(loss)

async def prepare(manager: Muster.SessionManager) -> Muster.Session:
    try:
        return await manager.prepare_session_async(MusterEngine.Master.new(), init_op="init")
    except Muster.NotReady as error:
        print(error.message, error.reasons)
        raise

def begin(saver: Muster.Saver, session: Muster.Session) -> None:
    saver.save_async(session, "run", 7, Muster.WAIT_FOREVER, None, print)

def retries(job: Muster.Training) -> Muster.RetryPolicy:
    print(job.clock)  # wrong: of two structs within it
    return job.waiting

Muster.deadline_after_async(0, 1)  # wrong: it doesn't wait
with muster.checkpoint.open("run") as closed:  # wrong: it isn't closed
    pass
shape: int = muster.checkpoint.open("run").shapes["w"]  # wrong
Muster.Session.fetch(3)  # wrong
Muster.Tensor([1]).no_such()  # wrong
"""


class Types(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def mypy(self, *arguments):
        stubs = [folder for folder in (ROOT + "/python/stubs", ROOT + "/bazel-bin/python/stubs") if glob.glob(folder + "/gi/repository/Muster.pyi")]
        shutil.copytree(stubs[0], self.folder + "/stubs", symlinks=False)
        for file in ("__init__.pyi", "repository/__init__.pyi", "repository/GLib.pyi", "repository/GObject.pyi"):
            shutil.copy(ROOT + "/python/stubs/gi/" + file, self.folder + "/stubs/gi/" + file)
        done = subprocess.run(["/usr/bin/python3", "-m", "mypy", "--cache-dir=" + self.folder, "--no-error-summary", *arguments],
                              env={**os.environ, "MYPYPATH": self.folder + "/stubs:" + ROOT + "/python"}, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=self.folder)
        return done.stdout.splitlines()

    def test_are_themselves_clean(self):
        self.assertEqual(self.mypy("--strict", "-p", "gi.repository", "-m", "muster.checkpoint"), [])

    def test_find_mistakes_and_nothing_else(self):
        with open(self.folder + "/program.py", "w", encoding="utf-8") as file:
            file.write(PROGRAM)
        wrong = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}
        said = self.mypy("program.py")
        self.assertEqual({int(line.split(":")[1]) for line in said}, wrong, said)

    def test_the_example_is_clean(self):
        with open(self.folder + "/mypy.ini", "w", encoding="utf-8") as file:
            file.write("[mypy]\n[mypy-numpy.*]\nfollow_imports = skip\n")
        self.assertEqual(self.mypy(ROOT + "/examples/python/resume.py"), [])


if __name__ == "__main__":
    if subprocess.run(["/usr/bin/python3", "-c", "import mypy"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: needs mypy, which `bazel/setup --tests` installs")
        sys.exit(0)
    sys.exit(unittest.main())
