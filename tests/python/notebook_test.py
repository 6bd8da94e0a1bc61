#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""muster in a notebook's kernel, which is interrupted and restarted, and in pytest's fixtures: with PyPI's packages."""
import os
import subprocess
import sys
import tempfile
import unittest

import pythons

ROOT = pythons.ROOT
PATIENCE = 60
HAS = "import ipykernel, jupyter_client, pytest"

QUEUE = """
import muster
builder = muster.GraphBuilder()
builder.node("FIFOQueueV2", "queue")
builder.attr_types("component_types", [muster.DType.FLOAT])
builder.constant("item", muster.Tensor(1.0))
builder.node("QueueEnqueueV2", "put")
builder.input("queue")
builder.input("item")
builder.attr_types("Tcomponents", [muster.DType.FLOAT])
builder.node("QueueDequeueV2", "take")
builder.input("queue")
builder.attr_types("component_types", [muster.DType.FLOAT])
session = muster.LocalMaster().create_session(builder.end())
"""
TRAIN = """
import muster
model = muster.Scaffold.load(%r)
saver = muster.Saver(model.meta_graph())
manager = muster.SessionManager.new_for_ops(model.graph(), model.ready_op(), None, model.local_init_op(), "linreg", "chief:0")
session = manager.prepare_session(muster.Master.new_for_target(%r), init_op=model.init_op(), saver=saver, checkpoint_dir=%r, timeout=60)
session.run(model.train_op(), {"x:0": [1.0], "y:0": [2.0]})
step = int(session.run(model.global_step()))
saver.save(session, %r, step)
print(step)
"""
FIXTURES = """
import muster
import pytest

@pytest.fixture(scope="module")
def scaffold():
    return muster.Scaffold.load(%r)

@pytest.fixture(params=[1, 2])
def session(request, scaffold):
    manager = muster.SessionManager(scaffold.graph(), ready_op=scaffold.ready_op(), local_init_op=scaffold.local_init_op())
    with manager.prepare_session(muster.LocalMaster(), init_op=scaffold.init_op()) as opened:
        yield opened

@pytest.mark.parametrize("steps", [1, 3])
def test_trains(session, scaffold, steps, capfd):
    for _ in range(steps):
        session.run(scaffold.train_op(), {"x:0": [1.0], "y:0": [2.0]})
    assert int(session.run(scaffold.global_step())) == steps
    assert capfd.readouterr() == ("", "")

def test_fails(session):
    session.run("nothing")

def test_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.meta") as caught:
        muster.Scaffold.load(tmp_path / "none.meta")
    assert isinstance(caught.value, muster.NotFound)
"""


class Kernel:
    """A notebook's kernel, and what its cells print and raise."""

    def __init__(self, env):
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(kernel_name="python3", env=env, startup_timeout=PATIENCE)

    def run(self, code, interrupt_at=None):
        """(what the cell printed, the name of what it raised); interrupted once it has printed a text."""
        printed, is_pressed = [], []

        def hear(message):
            printed.append(message["content"].get("text", "") if message["msg_type"] == "stream" else "")
            if interrupt_at is not None and interrupt_at in printed[-1] and not is_pressed:
                is_pressed.append(True)
                self.manager.interrupt_kernel()

        reply = self.client.execute_interactive(code, timeout=PATIENCE, output_hook=hear)
        return "".join(printed), reply["content"].get("ename")

    def restart(self):
        self.manager.restart_kernel(now=True)
        self.client.wait_for_ready(timeout=PATIENCE)

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


class Notebook(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(self.folder + "/libraries")
        os.environ.update(IPYTHONDIR=self.folder + "/ipython", JUPYTER_RUNTIME_DIR=self.folder + "/runtime")  # not the person's own
        self.env = pythons.environment(self.folder + "/libraries")

    def kernel(self):
        kernel = Kernel(self.env)
        self.addCleanup(kernel.end)
        return kernel

    def test_ctrl_c_ends_a_cell_and_leaves_the_session(self):
        kernel = self.kernel()
        self.assertEqual(kernel.run(QUEUE), ("", None))
        self.assertEqual(kernel.run("import threading\nthreading.Timer(0.3, print, ['waiting']).start()\nsession.run('take:0')", "waiting")[1],
                         "KeyboardInterrupt")
        self.assertEqual(kernel.run("session.run('put'); print(float(session.run('take:0')))"), ("1.0\n", None))
        self.assertEqual(kernel.run("await session.run_async('put'); print(float(await session.run_async('take:0')))"), ("1.0\n", None))

    def test_a_restarted_kernel_is_the_chief_again(self):
        built = [path for path in (ROOT + "/cli/muster", ROOT + "/bazel-bin/cli/muster") if os.path.exists(path)]
        server = subprocess.Popen([built[0], "serve", "--listen=localhost:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(server.communicate, timeout=PATIENCE)
        self.addCleanup(server.kill)
        cell = TRAIN % (ROOT + "/tests/fixtures/linreg.meta", server.stdout.readline().split()[1], *[self.folder + "/run"] * 2)
        kernel = self.kernel()
        self.assertEqual(kernel.run(cell), ("1\n", None))
        kernel.restart()
        self.assertEqual(kernel.run(cell), ("2\n", None))

    def test_pytests_fixtures_have_sessions(self):
        path = self.folder + "/test_model.py"
        with open(path, "w", encoding="utf-8") as file:
            file.write(FIXTURES % (ROOT + "/tests/fixtures/linreg.meta"))
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path], env=self.env, cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        self.assertRegex(done.stdout, r"\n2 failed, 5 passed in ")
        self.assertEqual(done.stdout.count("E   muster.NotFound") + done.stdout.count("E           muster.NotFound"), 2, done.stdout)


if __name__ == "__main__":
    if sys.executable != pythons.PYPI and os.path.exists(pythons.PYPI):
        if subprocess.run([pythons.PYPI, "-c", HAS], stderr=subprocess.DEVNULL).returncode != 0:
            print("skipped: needs ipykernel and pytest, which `bazel/setup --tests` installs")
            sys.exit(0)
        os.execv(pythons.PYPI, [pythons.PYPI, *sys.argv])
    unittest.main()
