#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The types of the bindings and of the overrides, as mypy sees them."""
import ast
import glob
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, ROOT + "/python")
import case  # noqa: E402,F401
import muster  # noqa: E402
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

class Prints(Muster.Hook):
    def do_after_run(self, context: Muster.RunContext) -> None:
        print(context.step_now())

    def do_end(self, session: Muster.Session, deadline_us: int) -> bool:
        return True

def copies(batches: Muster.Batches) -> Muster.SaverOptions:
    position = Muster.PositionOptions(batches=batches, feeds=["x:0"], n_batches=100)
    position.copy().n_batches, Muster.Join("m", None, 2).copy().slot
    return Muster.SaverOptions(max_to_keep=3).copy()

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

# What a person mistypes, each in the last line of a program.
MISTAKES = """
muster.Sevar
muster.Scaffold.lod("digits.meta")
muster.Saver(model.meta_graph(), max_to_kep=3)
muster.SaverOptions(keep_bst=2)
manager.prepare_session(master, init_opp="init")
manager.prepare_session(master, init_op=5)
manager.wait_for_session(master, time_out=60)
session.rum("loss:0")
session.fetch("loss:0", timeout="60")
job.untill_step = 7
muster.train(master=master, checkpint_dir="run")
muster.DType.FLOT
"""
PROGRAM_WITHOUT = """
import pathlib
import muster

model, master = muster.Scaffold.load(pathlib.Path("digits.meta")), muster.LocalMaster()
saver = muster.Saver(model.meta_graph(), max_to_keep=3)
manager = muster.SessionManager(model.graph(), ready_op=model.ready_op())
with manager.prepare_session(master, init_op=model.init_op(), init_feeds={"x:0": 1.0}, saver=saver, checkpoint_dir=pathlib.Path("run"),
                             timeout=60) as session:
    print(session.run("loss:0"), session.fetch("loss:0", timeout=1.5), muster.__version__, muster.DType.FLOAT.name)
job = muster.Training(model, master, loss="loss:0", max_to_keep=2, epochs=3)
job.until_step = 7
print(muster.train(job).step, muster.train(scaffold=model, master=master, checkpoint_dir="run").step)
try:
    muster.checkpoint.open("run")
except muster.FileNotFound as error:
    print(error.filename, error.code)
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

    def test_find_what_a_person_mistypes(self):
        for i, mistake in enumerate(MISTAKES.strip().splitlines()):
            with open("%s/mistake%d.py" % (self.folder, i), "w", encoding="utf-8") as file:
                file.write(PROGRAM_WITHOUT + mistake + "\n")
        with open(self.folder + "/none.py", "w", encoding="utf-8") as file:
            file.write(PROGRAM_WITHOUT)
        said = self.mypy("none.py", *("mistake%d.py" % i for i in range(len(MISTAKES.split("\n")) - 2)))
        found = [(line.split(":")[0], int(line.split(":")[1])) for line in said if " error: " in line]
        last = len(PROGRAM_WITHOUT.splitlines()) + 1
        self.assertEqual(sorted(found), sorted([("mistake%d.py" % i, last) for i in range(len(MISTAKES.split("\n")) - 2)]), said)

    def test_the_examples_are_clean(self):
        with open(self.folder + "/mypy.ini", "w", encoding="utf-8") as file:
            file.write("[mypy]\n[mypy-numpy.*]\nfollow_imports = skip\n")
        self.assertEqual(self.mypy(ROOT + "/examples/python/resume.py", ROOT + "/examples/python/train.py"), [])


class Names(unittest.TestCase):
    """The stubs and the library have the same functions with the same arguments."""

    def test_are_those_of_the_library(self):
        stub = next(path for path in (ROOT + "/python/stubs/gi/repository/Muster.pyi", ROOT + "/bazel-bin/python/stubs/gi/repository/Muster.pyi")
                    if os.path.exists(path))
        with open(stub, encoding="utf-8") as file:
            classes = [(None, file_body) for file_body in [ast.parse(file.read()).body]]
        n = 0
        classes += [(node.name, node.body) for node in classes[0][1] if isinstance(node, ast.ClassDef)]
        for name, body in classes:
            home = getattr(muster, name) if name is not None else muster
            overloads = {node.name for node in body if isinstance(node, ast.FunctionDef) and node.decorator_list
                         and getattr(node.decorator_list[0], "id", "") == "overload"}
            for node in body:
                if not isinstance(node, ast.FunctionDef) or node.name.startswith("do_") or node.name in overloads or name == "Tensor":
                    continue
                if node.name.startswith("__") and node.name != "__init__":
                    continue
                member = home if node.name == "__init__" else getattr(home, node.name)
                with self.subTest(function="%s.%s" % (name, node.name)):
                    known = [each for each in inspect.signature(member).parameters if each != "self"]
                    listed = [each.arg for each in node.args.args + node.args.kwonlyargs if each.arg not in ("self", "cls")]
                    self.assertEqual(known, listed)
                    n += 1
        self.assertGreater(n, 500)


if __name__ == "__main__":
    if subprocess.run(["/usr/bin/python3", "-c", "import mypy"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: needs mypy, which `bazel/setup --tests` installs")
        sys.exit(0)
    sys.exit(unittest.main())
