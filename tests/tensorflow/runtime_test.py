# SPDX-License-Identifier: Apache-2.0
"""--master=tensorflow: TensorFlow's own runtime as muster's child, which serves this machine alone and ends with muster."""
import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()

ENVIRONMENT = sys.prefix
LIBRARY = os.path.join(os.path.dirname(tf.__file__), "libtensorflow_cc.so.2")
SECONDS = 60


class Process:
    """A muster command that tells its child's story on stderr."""

    def __init__(self, *arguments, **variables):
        environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
        environment.update(variables)
        self.process = subprocess.Popen([peer.MUSTER, *arguments], env=environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, preexec_fn=peer.die_with_parent)
        self._said = b""

    def said(self, pattern):
        """Waits until stderr has a line like that; what its groups match."""
        until = time.monotonic() + SECONDS
        while True:
            found = re.search(pattern, self._said.decode(errors="replace"))
            if found:
                return found.groups()
            ready, _, _ = select.select([self.process.stderr], [], [], until - time.monotonic())
            more = os.read(self.process.stderr.fileno(), 65536) if ready else b""
            if not more:
                raise AssertionError("no %r in: %s" % (pattern, self._said.decode(errors="replace")))
            self._said += more

    def target(self):
        line = self.process.stdout.readline().decode()
        if not line.startswith("serving "):
            raise AssertionError("%r, %s" % (line, self.process.stderr.read().decode()))
        return line.split()[1]

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.process.stdout.close()
        self.process.stderr.close()


def await_end(pid):
    peer.await_true(lambda: not peer.is_running(pid), "process %d had ended" % pid)


def listening(pid):
    """(address as the kernel writes it, port) of each listening TCP socket of a process."""
    inodes = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            inodes.update(re.findall(r"^socket:\[(\d+)\]$", os.readlink("/proc/%d/fd/%s" % (pid, fd))))
    found = []
    for table in "tcp", "tcp6":
        with open("/proc/%d/net/%s" % (pid, table)) as file:
            for line in file.readlines()[1:]:
                words = line.split()
                if words[3] == "0A" and words[9] in inodes:
                    address, port = words[1].split(":")
                    found.append((address, int(port, 16)))
    return found


HOME = ("0100007F", "0000000000000000FFFF00000100007F")


def model():
    """More than muster's engine computes: a convolution and a loop."""
    graph = tf.Graph()
    with graph.as_default():
        w = v1.get_variable("w", [3, 3, 1, 2], initializer=v1.constant_initializer(0.5))
        x = v1.placeholder(tf.float32, [1, 4, 4, 1], name="x")
        y = tf.reduce_sum(tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME"), name="y")
        n = tf.while_loop(lambda i: i < 10, lambda i: i + 3, [tf.constant(0)], name="loop")
        v1.train.GradientDescentOptimizer(0.1).minimize(y, name="train")
        v1.global_variables_initializer()
    return graph, w, y, n


class Runtime(peer.TestCase):
    def start(self, *arguments, **variables):
        server = Process("serve", "--listen=localhost:0", *arguments, **variables)
        self.addCleanup(server.close)
        return server

    def test_what_the_engine_lacks_runs(self):
        server = self.start("--master=tensorflow:" + ENVIRONMENT)
        graph, w, y, n = model()
        feed = {"x:0": np.ones([1, 4, 4, 1], np.float32)}
        target = server.target()
        with v1.Session(target, graph=graph) as session:
            session.run("init")
            self.assertEqual(session.run([y, n], feed), [100.0, [12]])
            session.run("train", feed)
        with v1.Session(graph=graph) as here:
            here.run("init")
            here.run("train", feed)
            wanted = here.run(w)
        with v1.Session(target, graph=graph) as session:
            np.testing.assert_allclose(session.run(w), wanted, rtol=1e-6)

    def test_it_comes_back_when_it_dies(self):
        server = self.start("--master=tensorflow:" + ENVIRONMENT)
        pid = int(server.said(r"as process (\d+)\n")[0])
        target = server.target()
        graph, w, _, _ = model()
        config = v1.ConfigProto(operation_timeout_in_ms=SECONDS * 1000)
        session = v1.Session(target, graph=graph, config=config)
        session.run("init")
        os.kill(pid, signal.SIGKILL)
        await_end(pid)
        with self.assertRaises((tf.errors.UnavailableError, tf.errors.AbortedError)):
            while True:
                session.run(w)
        server.said(r"process %d\) was killed by signal 9" % pid)
        server.said(r"restarted as process (\d+)")
        with v1.Session(target, graph=graph, config=config) as again:
            with self.assertRaises(tf.errors.FailedPreconditionError):
                again.run(w)
            again.run("init")
            np.testing.assert_array_equal(again.run(w), np.full([3, 3, 1, 2], 0.5))

    def test_a_monitored_session_goes_on_from_its_checkpoint(self):
        server = self.start("--master=tensorflow:" + ENVIRONMENT)
        pid = int(server.said(r"as process (\d+)\n")[0])
        graph = tf.Graph()
        with graph.as_default():
            step = v1.train.create_global_step()
            counted = v1.assign_add(step, 1)
            with v1.train.MonitoredTrainingSession(server.target(), checkpoint_dir=self.folder(), save_checkpoint_steps=5,
                                                   save_checkpoint_secs=None, save_summaries_steps=None,
                                                   save_summaries_secs=None) as session:
                while session.run(counted) < 8:
                    pass
                os.kill(pid, signal.SIGKILL)
                after = session.run(counted)
        self.assertGreaterEqual(after, 2)
        self.assertLess(after, 8)

    def test_what_it_has_to_print_is_no_result(self):
        graph = tf.Graph()
        with graph.as_default():
            with tf.control_dependencies([tf.print("to whoever looks", output_stream=sys.stdout)]):
                tf.add(1.0, 2.0, name="sum")
            path = os.path.join(self.folder(), "sum.meta")
            v1.train.export_meta_graph(path)
        done = subprocess.run([peer.MUSTER, "run", "--meta-graph=" + path, "--master=tensorflow:" + ENVIRONMENT, "--fetch=sum:0",
                               "--json"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("to whoever looks", done.stdout)
        self.assertIn("to whoever looks", done.stderr)

    def trainable(self, folder):
        """The meta graph of a model that the engine can't compute."""
        path = os.path.join(folder, "filter.meta")
        graph = tf.Graph()
        with graph.as_default():
            step = v1.train.create_global_step()
            x = tf.reshape(tf.random.uniform([8, 8], seed=1), [1, 8, 8, 1])
            w = v1.get_variable("w", [3, 3, 1, 1], initializer=v1.constant_initializer(0.5))
            loss = tf.reduce_sum(tf.square(tf.nn.conv2d(x, w, strides=[1, 1, 1, 1], padding="SAME")), name="loss")
            train = v1.train.GradientDescentOptimizer(1e-4).minimize(loss, global_step=step)
            v1.add_to_collection("train_op", train)
            v1.add_to_collection(v1.GraphKeys.INIT_OP, v1.global_variables_initializer())
            v1.add_to_collection(v1.GraphKeys.READY_OP, v1.report_uninitialized_variables())
            v1.train.export_meta_graph(path, saver_def=v1.train.Saver().as_saver_def())
        return "--meta-graph=" + path

    def test_prepare_and_train_have_it_as_a_target(self):
        folder = self.folder()
        job = [self.trainable(folder), "--master=tensorflow:" + ENVIRONMENT, "--checkpoint-dir=" + folder]
        self.assertIn("ready", peer.muster("prepare", *job))
        self.assertIn("step 20", peer.muster("train", *job, "--steps=20"))
        self.assertEqual(v1.train.latest_checkpoint(folder), os.path.join(folder, "model.ckpt-20"))
        said = peer.muster("train", *job, "--steps=40", "--tasks=2", "--task=chief:0", code=3)
        self.assertIn("runs in this process", said)

    def test_a_training_goes_on_when_it_dies(self):
        folder = self.folder()
        training = Process("train", self.trainable(folder), "--master=tensorflow:" + ENVIRONMENT, "--checkpoint-dir=" + folder,
                           "--steps=5000", "--save-every=100")
        self.addCleanup(training.close)
        pid = int(training.said(r"as process (\d+)\n")[0])
        until = time.monotonic() + SECONDS
        while v1.train.latest_checkpoint(folder) in (None, os.path.join(folder, "model.ckpt-0")):
            self.assertLess(time.monotonic(), until)
            select.select([], [], [], 0.01)
        os.kill(pid, signal.SIGKILL)
        said = training.process.communicate(timeout=SECONDS)
        self.assertEqual(training.process.returncode, 0, said)
        self.assertRegex(said[0].decode(), r"restored .*model.ckpt-[1-9]\d*")
        self.assertEqual(v1.train.latest_checkpoint(folder), os.path.join(folder, "model.ckpt-5000"))

    def test_its_version_and_place_are_reported(self):
        server = self.start("--master=tensorflow:" + LIBRARY)
        version, library = server.said(r"  TensorFlow (\S+) from '(.*)', as process \d+\n")
        self.assertEqual(version, tf.__version__)
        self.assertEqual(os.path.realpath(library), os.path.realpath(LIBRARY))

    def test_it_is_found_in_the_virtual_environment(self):
        server = self.start("--master=tensorflow", VIRTUAL_ENV=ENVIRONMENT, PATH="/nowhere")
        server.said(r"as process (\d+)\n")

    def test_it_is_found_among_the_packages_of_python3(self):
        server = self.start("--master=tensorflow", PATH=os.path.join(ENVIRONMENT, "bin"))
        server.said(r"as process (\d+)\n")

    def test_it_listens_on_this_machine_alone(self):
        server = self.start("--master=tensorflow:" + ENVIRONMENT)
        pid = int(server.said(r"as process (\d+)\n")[0])
        sockets = listening(pid)
        self.assertEqual(len(sockets), 1, sockets)
        self.assertIn(sockets[0][0], HOME)
        graph, _, _, n = model()
        with v1.Session(server.target(), graph=graph) as session:
            session.run([n, "init"])
        self.assertEqual(listening(pid), sockets)

    def test_it_opens_files_only_in_the_data_directories(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        data, secret = os.path.join(folder, "data"), os.path.join(folder, "secret")
        os.mkdir(data)
        with open(secret, "w", encoding="utf-8") as file:
            file.write("secret")
        server = self.start("--master=tensorflow:" + ENVIRONMENT, "--data-dir=" + data)
        graph, _, _, n = model()
        with graph.as_default():
            path = v1.placeholder(tf.string, [])
            read, write = tf.io.read_file(path), tf.io.write_file(path, "new")
            saver = v1.train.Saver()
        with v1.Session(server.target(), graph=graph) as session:
            session.run([n, "init"])
            saver.restore(session, saver.save(session, os.path.join(data, "model.ckpt")))
            session.run(write, {path: os.path.join(data, "file")})
            self.assertEqual(session.run(read, {path: os.path.join(data, "file")}), b"new")
            for step, at in (read, secret), (read, "/etc/passwd"), (read, "/proc/self/environ"), (write, secret):
                with self.assertRaises(tf.errors.PermissionDeniedError):
                    session.run(step, {path: at})
            with self.assertRaises(tf.errors.PermissionDeniedError):
                saver.save(session, os.path.join(folder, "model.ckpt"))
        with open(secret, encoding="utf-8") as file:
            self.assertEqual(file.read(), "secret")

    def test_who_has_none_reads_how_to_get_it(self):
        for path, wanted in [("", "pip install tensorflow"), (":/no/such/place", "doesn't exist"), (":/bin/ls", "can't be loaded"),
                             (":" + os.path.join(os.path.dirname(LIBRARY), "libtensorflow_framework.so.2"), "has no symbol TF_")]:
            with self.subTest(path=path):
                server = self.start("--master=tensorflow" + path, PATH="/nowhere")
                self.assertEqual(server.process.wait(SECONDS), 3)
                self.assertIn(wanted, server.process.stderr.read().decode())

    def test_it_ends_with_its_parent(self):
        for how in signal.SIGKILL, signal.SIGTERM, signal.SIGINT:
            with self.subTest(how=how.name):
                server = self.start("--master=tensorflow:" + ENVIRONMENT)
                pid = int(server.said(r"as process (\d+)\n")[0])
                server.target()
                server.process.send_signal(how)
                server.process.wait(SECONDS)
                await_end(pid)

    def test_it_ends_with_its_parent_though_it_is_stopped(self):
        server = self.start("--master=tensorflow:" + ENVIRONMENT)
        pid = int(server.said(r"as process (\d+)\n")[0])
        peer.stop(pid)
        server.process.kill()
        server.process.wait(SECONDS)
        await_end(pid)


if __name__ == "__main__":
    peer.main()
