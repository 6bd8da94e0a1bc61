# SPDX-License-Identifier: Apache-2.0
"""A TensorFlow cluster on this machine, and a training job in C on it.

One parameter server, a chief and two workers, each a process of tf.distribute.Server; beside the chief and each worker a
task in C (task.c), which trains a model of handwritten digits. In the middle the parameter server, with all variables, is
killed: the chief restores the last checkpoint, the workers join in again, and the job goes on to its end.

    bazel run //examples/cluster
"""
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

TASK = os.path.abspath("examples/cluster/task")
DATA = os.path.abspath("tests/fixtures")
MODEL = "digits.meta"
CHECKPOINTS = "run"
STEPS = 3000
KILL_AT = 1000
PATIENCE = 150  # seconds, for all of it

SERVER = """
import json, os, sys
import tensorflow as tf
told = json.loads(os.environ["TF_CONFIG"])
server = tf.distribute.Server(told["cluster"], job_name=told["task"]["type"], task_index=told["task"]["index"])
print("serving", flush=True)
sys.stdin.read()
os._exit(0)
"""


def say(who, words):
    print("%-9s %s" % (who, words), flush=True)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def free_ports(n):
    taken = [socket.socket() for _ in range(n)]
    for one in taken:
        one.bind(("localhost", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


class Cluster:
    def __init__(self):
        ports = ["localhost:%d" % port for port in free_ports(4)]
        self.jobs = {"ps": ports[:1], "chief": ports[1:2], "worker": ports[2:]}
        self.servers, self.tasks, self.followers = {}, {}, []
        self.saved_step = 0
        self.progress = threading.Condition()

    def environment(self, name):
        job, index = name.split(":")
        told = {"cluster": self.jobs, "task": {"type": job, "index": int(index)}}
        return dict(os.environ, TF_CONFIG=json.dumps(told))

    def start_servers(self, *names):
        """All at once: each takes some seconds to load TensorFlow."""
        for name in names:
            self.servers[name] = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE,
                                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                                  env=self.environment(name), preexec_fn=die_with_parent)
        for name in names:
            if self.servers[name].stdout.readline() != b"serving\n":
                raise RuntimeError("TensorFlow's server %s ended with %s" % (name, self.servers[name].wait()))
            job, index = name.split(":")
            say(name, "tf.distribute.Server at " + self.jobs[job][int(index)])

    def start_task(self, name, folder):
        task = subprocess.Popen([TASK, MODEL, DATA, CHECKPOINTS, str(STEPS)], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, env=self.environment(name), cwd=folder,
                                preexec_fn=die_with_parent)
        self.tasks[name] = task
        follower = threading.Thread(target=self.follow, args=(name, task.stdout))
        follower.start()
        self.followers.append(follower)

    def follow(self, name, lines):
        for line in lines:
            words = line.strip()
            if words.startswith("saved "):
                with self.progress:
                    self.saved_step = int(words.rsplit("-", 1)[1])
                    self.progress.notify_all()
                if self.saved_step % 1000 >= 200:  # not each of them
                    continue
            say(name, words[:150])

    def await_saved(self, step, deadline):
        with self.progress:
            if not self.progress.wait_for(lambda: self.saved_step >= step, deadline - time.monotonic()):
                raise RuntimeError("no checkpoint of step %d came in time" % step)

    def kill_server(self, name):
        server = self.servers.pop(name)
        server.kill()
        server.wait()
        say(name, "killed (SIGKILL)")

    def finish(self, deadline):
        codes = {name: task.wait(max(deadline - time.monotonic(), 1)) for name, task in self.tasks.items()}
        for follower in self.followers:
            follower.join()
        return codes

    def end(self):
        for process in [*self.tasks.values(), *self.servers.values()]:
            if process.poll() is None:
                process.kill()
                process.wait()


def build_model(folder):
    """A perceptron whose variables are on the parameter server; whoever runs it computes on its own task."""
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.logging.set_verbosity(v1.logging.ERROR)
    v1.disable_v2_behavior()
    with v1.device(v1.train.replica_device_setter(ps_tasks=1, worker_device="")):
        step = v1.train.create_global_step()
        x = v1.placeholder(tf.float32, [None, 64], "x")
        y = v1.placeholder(tf.int64, [None], "y")
        hidden_w = v1.get_variable("hidden/w", [64, 64], use_resource=True)
        hidden_b = v1.get_variable("hidden/b", [64], use_resource=True, initializer=v1.zeros_initializer())
        output_w = v1.get_variable("output/w", [64, 10], use_resource=True)
        output_b = v1.get_variable("output/b", [10], use_resource=True, initializer=v1.zeros_initializer())
        hidden = tf.nn.relu(tf.matmul(x, hidden_w) + hidden_b)
        logits = tf.matmul(hidden, output_w) + output_b
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits), name="loss")
        tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32), name="accuracy")
        v1.add_to_collection("train_op", v1.train.AdamOptimizer(0.003).minimize(loss, step, name="train"))
    saver = v1.train.Saver(sharded=True)
    v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
    v1.train.Scaffold(saver=saver).finalize()
    v1.train.export_meta_graph(os.path.join(folder, MODEL), saver_def=saver.as_saver_def())


def accuracy(checkpoints):
    """What the last checkpoint is worth, by TensorFlow's own saver."""
    import numpy as np
    import tensorflow as tf
    v1 = tf.compat.v1
    prefix = v1.train.latest_checkpoint(checkpoints)
    v1.reset_default_graph()
    saver = v1.train.import_meta_graph(prefix + ".meta", clear_devices=True)
    data = {"x:0": np.load(os.path.join(DATA, "digits_x.npy")), "y:0": np.load(os.path.join(DATA, "digits_y.npy"))}
    with v1.Session() as session:
        saver.restore(session, prefix)
        return os.path.basename(prefix), session.run("accuracy:0", data)


def main():
    folder = tempfile.mkdtemp(prefix="cluster-", dir=os.environ.get("TEST_TMPDIR"))
    cluster = Cluster()
    deadline = time.monotonic() + PATIENCE
    try:
        build_model(folder)
        cluster.start_servers("ps:0", "chief:0", "worker:0", "worker:1")
        for name in "worker:0", "worker:1", "chief:0":
            cluster.start_task(name, folder)
        cluster.await_saved(KILL_AT, deadline)
        cluster.kill_server("ps:0")
        cluster.start_servers("ps:0")
        codes = cluster.finish(deadline)
        if any(codes.values()):
            raise RuntimeError("a task failed: %s" % codes)
        name, part = accuracy(os.path.join(folder, CHECKPOINTS))
        print("\n%s names %.1f %% of the digits rightly, as TensorFlow reads it" % (name, 100 * part))
        print("Next: docs/cluster.md, and examples/cluster/task.c")
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        print("cluster: %s" % error, file=sys.stderr)
        sys.exit(4)
