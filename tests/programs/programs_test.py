#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs on tf-slim, tensorflow-estimator 2.15 and DeepCTR train, save and resume through a kill of the client and one of
the server, on the engine, on TensorFlow's runtime and on TensorFlow's own server. Prints a table. By hand:

    bazel test --test_output=streamed //tests/programs:programs_test

It installs them into an environment of its own, $MUSTER_PROGRAMS or ~/.cache/muster/programs, with TensorFlow 2.15, the
last one with estimators, for which Debian 12's Python isn't too new; skipped with another one.
"""
import os
import queue
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, "tests/tensorflow")
import peer

ENVIRONMENT = os.environ.get("MUSTER_PROGRAMS", os.path.expanduser("~/.cache/muster/programs"))
PYTHON = os.path.join(ENVIRONMENT, "bin/python")
TENSORFLOW = os.environ.get("MUSTER_TENSORFLOW", os.path.expanduser("~/.cache/muster/tensorflow"))
FOLDER = os.path.abspath("tests/programs")
WAIT_SECONDS = 120
FOREVER = 10**7
PROGRAMS = ["slim", "estimator", "deepctr"]
MASTERS = ["engine", "runtime", "TensorFlow"]
_SERVER = """
import sys, tensorflow as tf
server = tf.distribute.Server({"worker": ["localhost:" + sys.argv[1]]}, job_name="worker", task_index=0)
print("serving " + server.target, flush=True)
sys.stdin.read()
"""


def install():
    pip = [PYTHON, "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", "install"]
    if not os.path.exists(os.path.join(ENVIRONMENT, "ready")):
        subprocess.run([sys.executable, "-m", "venv", "--clear", ENVIRONMENT], check=True)
        subprocess.run(pip + ["tensorflow-cpu==2.15.1", "tensorflow-estimator==2.15.0", "tf-slim==1.1.0"], check=True)
        # It wants an h5py that has no wheel for this Python, to save Keras models.
        subprocess.run(pip + ["--no-deps", "deepctr==0.9.3"], check=True)
        open(os.path.join(ENVIRONMENT, "ready"), "w").close()


class Process:
    """A process with its lines."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, cwd=FOLDER, preexec_fn=peer.die_with_parent)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with self.process.stdout:
            for line in self.process.stdout:
                self.lines.put(line)
        self.lines.put(None)

    def line(self):
        """The next one; None at the end."""
        return self.lines.get(timeout=WAIT_SECONDS)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(WAIT_SECONDS)
        self.process.stdin.close()


class Client(Process):
    def __init__(self, program, port, directory, steps):
        super().__init__(PYTHON, "program_%s.py" % program, "grpc://localhost:%d" % port, directory, str(steps))
        self.sessions = 0

    def step(self):
        """(step, loss) of the next step; None at the end."""
        while True:
            line = self.line()
            if line is None:
                return None
            self.sessions += line == "session\n"
            found = re.match(r"step (\d+) loss (\S+)", line)
            if found:
                return int(found.group(1)), float(found.group(2))


def server(master, port):
    if master == "TensorFlow":
        process = Process(PYTHON, "-c", _SERVER, str(port))
    else:
        process = Process(peer.MUSTER, "serve", "--listen=localhost:%d" % port,
                          *(["--master=tensorflow:" + TENSORFLOW] if master == "runtime" else []))
    line = process.line()
    assert line and line.startswith("serving"), (master, line)
    return process


def saved(directory):
    """The step of the latest checkpoint; 0: there is none."""
    try:
        with open(os.path.join(directory, "checkpoint")) as state:
            found = re.search(r'^model_checkpoint_path: ".*ckpt-(\d+)"', state.read(), re.M)
        return int(found.group(1)) if found else 0
    except FileNotFoundError:
        return 0


class Programs(peer.TestCase):
    def until_saved(self, client, directory, after):
        """Trains until a checkpoint of a step after this one is there; the first and the last step."""
        first = last = client.step()
        while last is not None and saved(directory) <= after:
            last = client.step()
        self.assertIsNotNone(last, "the client ended before it had saved")
        return first, last

    def client(self, *arguments):
        client = Client(*arguments)
        self.addCleanup(client.kill)
        return client

    def server(self, master, port):
        serving = server(master, port)
        self.addCleanup(serving.kill)
        return serving

    def to_the_end(self, client, end):
        """Its last step's loss."""
        step = client.step()
        while step is not None:
            last, step = step, client.step()
        self.assertEqual((client.process.wait(WAIT_SECONDS), last[0]), (0, end))
        return last[1]

    def story(self, program, master):
        held = peer.hold_port()
        self.addCleanup(held.close)
        port, directory = peer.port_of(held), self.folder()
        serving = self.server(master, port)
        client = self.client(program, port, directory, FOREVER)
        start, _ = self.until_saved(client, directory, 0)
        client.kill()
        before = saved(directory)
        client = self.client(program, port, directory, FOREVER)
        resumed, _ = self.until_saved(client, directory, before)
        self.assertGreaterEqual(resumed[0], before)

        before, sessions = saved(directory), client.sessions
        serving.kill()
        serving = self.server(master, port)
        step = client.step()
        while step is not None and client.sessions == sessions:
            step = client.step()
        how = "itself" if step is not None else "started again"
        if step is None:
            client = self.client(program, port, directory, FOREVER)
            step = client.step()
        self.assertGreaterEqual(step[0], before)
        self.until_saved(client, directory, saved(directory))
        client.kill()

        end = saved(directory) + 50
        loss = self.to_the_end(self.client(program, port, directory, end), end)
        self.assertLess(loss, start[1])
        serving.kill()
        return "| %s | %s | at %d | at %d, %s | %d | %.4f to %.4f |" % (program, master, resumed[0], before, how, end, start[1],
                                                                        loss)

    def test_train_save_and_resume(self):
        print("| program | master | client killed: resumed | server killed: saved, resumed by | ended at | loss |\n"
              "|---|---|---|---|---|---|", flush=True)
        for program in PROGRAMS:
            for master in MASTERS:
                with self.subTest(program=program, master=master):
                    print(self.story(program, master), flush=True)


if __name__ == "__main__":
    if sys.version_info[:2] > (3, 11):
        print("skipped: TensorFlow 2.15 has no wheels for this Python", file=sys.stderr)
        sys.exit(0)
    install()
    peer.main()
