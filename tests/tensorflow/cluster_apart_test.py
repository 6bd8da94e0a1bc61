# SPDX-License-Identifier: Apache-2.0
"""A job on a TensorFlow cluster whose machines share no directory: each task on a machine of its own (a network namespace with a disk),
saving to an S3 store (moto's) and to the memory of another machine. The parameter server's and the chief's machines are lost with their
disks, and the job goes on elsewhere, with the values that TensorFlow reads from the checkpoint. MUSTER_LONG=1: on two parameter servers;
then the machine with the memory is lost, too; and a variable of more than 2 GiB."""
import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

import machines
import peer

peer.enter_namespace(machines.NEED)

import cluster_gate
import cluster_peer
from cluster_gate import BATCH, ROWS

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
LONG = "MUSTER_LONG" in os.environ
MOTO = (os.environ.get("MUSTER_S3") or os.path.expanduser("~/.cache/muster/s3")) + "/bin/python3"
BUCKET = "models"
PARTS = 3
LARGE_ROWS, LARGE_COLUMNS = 577, 1 << 20  # of four bytes: 2.25 GiB
LARGE_STEPS = 3
CHIEF_BYTES = 512 << 20  # what a chief's command takes at most while it saves a variable that is larger

_STORE = """
import mmap, os, sys
import boto3
from moto.s3.models import FakeKey
from moto.server import ThreadedMotoServer

# moto reads all of an object for each range of it: map what is large, and forget its parts.
stored = FakeKey.value
def get(key):
    return vars(key).get("mapped") or stored.fget(key)
def put(key, value):
    vars(key).pop("mapped", None)
    if len(value) < 1 << 30:
        return stored.fset(key, value)
    key.multipart.parts.clear()
    key._value_buffer.rollover()
    stored.fset(key, value)
    key._value_buffer.flush()
    key.mapped = mmap.mmap(key._value_buffer.fileno(), 0, access=mmap.ACCESS_READ)
FakeKey.value = property(get, put)

server = ThreadedMotoServer(ip_address=sys.argv[1], port=0, verbose=False)
server.start()
url = "http://%s:%d" % server.get_host_and_port()
boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b").create_bucket(Bucket=sys.argv[2])
print(url, flush=True)
sys.stdin.read()
os._exit(0)
"""


def build_counts(path, parameter_servers):
    """The gate's model, with the counts of the rows in parts, on all parameter servers."""
    with tf.Graph().as_default():
        rows = v1.placeholder(tf.int64, [None], name="x")
        with v1.device(v1.train.replica_device_setter(ps_tasks=parameter_servers, worker_device="")):
            step = v1.train.create_global_step()
            first = v1.get_variable("first", initializer=0, use_resource=True)
            last = v1.get_variable("last", initializer=0, use_resource=True)
            seen = v1.get_variable("seen", shape=[ROWS], dtype=tf.int64, initializer=v1.zeros_initializer(), use_resource=True,
                                   partitioner=v1.fixed_size_partitioner(PARTS))
        with tf.control_dependencies([first.assign_add(1, read_value=False)]):
            token = cluster_gate.gate().dequeue()
        with tf.control_dependencies([token]):
            counts = tf.split(tf.reduce_sum(tf.one_hot(rows, ROWS, dtype=tf.int64), 0), PARTS)
            writes = [part.assign_add(count, read_value=False) for part, count in zip(seen, counts)] + [last.assign_add(1, read_value=False)]
        with tf.control_dependencies(writes):
            v1.add_to_collection("train_op", v1.assign_add(step, 1, use_locking=True, name="train").op)
        cluster_peer.export_sharded(path)
    return path


def build_large(path):
    """Each row of one variable has its number; the step adds 1 to one of them."""
    with tf.Graph().as_default():
        with v1.device(v1.train.replica_device_setter(ps_tasks=1, worker_device="")):
            step = v1.train.create_global_step()
            rows = tf.range(LARGE_ROWS, dtype=tf.float32)[:, None]
            large = v1.get_variable("large", initializer=lambda: tf.broadcast_to(rows, [LARGE_ROWS, LARGE_COLUMNS]), use_resource=True)
        with v1.device("/job:ps/task:0"):
            add = tf.raw_ops.ResourceScatterAdd(resource=large.handle, indices=tf.reshape(step, [1]), updates=1.)
        with tf.control_dependencies([add]):
            v1.add_to_collection("train_op", v1.assign_add(step, 1, use_locking=True, name="train").op)
        cluster_peer.export_sharded(path)
    return path


class Cluster(cluster_peer.Served):
    """Each task on a machine that has its name."""

    def __init__(self, network, **counts):
        super().__init__(**counts)
        self.network, self.machines = network, {}
        self.jobs = {job: ["%s%d:2222" % (job, index) for index in range(len(tasks))] for job, tasks in self.jobs.items()}
        self.jobs["observer"] = [machines.HERE + ":2222"]  # the test's machine, which all let in
        for name in self.names():
            self.place(name)

    def names(self):
        return [name for name in super().names() if not name.startswith("observer")]

    def place(self, name):
        self.machines[name] = self.network.machine(name.replace(":", ""))

    def lose(self, name):
        """Its machine is gone; it gets another one, with another disk and address."""
        self.kill(name)
        self.network.end(self.machines[name])
        self.place(name)

    def target(self, name):
        return "grpc://%s:2222" % self.machines[name].address

    def begin(self, *names, before=()):
        for name in names:
            super().begin(name, before=[*self.machines[name].enter, *before])


class Stored(cluster_gate.Job):
    """What both jobs need: the store, and what TensorFlow reads there."""
    counts = {}  # of tasks

    def make_cluster(self):
        self.network = machines.Network(self)
        os.environ["TMPDIR"] = self.network.disk  # also for what a chief stages
        self.addCleanup(os.environ.pop, "TMPDIR")
        self.start_store()
        return Cluster(self.network, **self.counts)

    def start_store(self):
        store = subprocess.Popen([MOTO, "-c", _STORE, machines.HERE, BUCKET], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, preexec_fn=peer.die_with_parent)
        self.addCleanup(peer.end, store)
        self.url = peer.first_line(store, "moto")
        for name, value in (("ENDPOINT_URL", self.url), ("ACCESS_KEY_ID", "id"), ("SECRET_ACCESS_KEY", "secret"), ("REGION", "eu-central-1"),
                            ("EC2_METADATA_DISABLED", "true"), ("CONFIG_FILE", "/nonexistent"), ("SHARED_CREDENTIALS_FILE", "/nonexistent")):
            os.environ["AWS_" + name] = value
            self.addCleanup(os.environ.pop, "AWS_" + name)

    @property
    def before(self):
        return {name: machine.enter for name, machine in self.cluster.machines.items()}

    def download(self, prefix):
        """The objects of a checkpoint, as they are, in a folder; the prefix there."""
        key, folder = urllib.parse.urlparse(prefix).path[1:], self.folder()
        with self.get("?list-type=2&prefix=%s." % key) as answer:
            keys = re.findall("<Key>(.*?)</Key>", answer.read().decode())
        for one in keys:
            with self.get("/" + one) as answer, open(os.path.join(folder, os.path.basename(one)), "wb") as file:
                shutil.copyfileobj(answer, file)
        return os.path.join(folder, os.path.basename(key))

    def get(self, what):
        return urllib.request.urlopen(urllib.request.Request("%s/%s%s" % (self.url, BUCKET, what),
                                                             headers={"Authorization": "AWS any:any", "Range": "bytes=0-"}))

    def newest(self, directory):
        """(step, prefix) of the latest checkpoint that is listed there."""
        listed = subprocess.run([peer.MUSTER, "checkpoint", "latest", directory], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                timeout=peer.COMMAND_SECONDS)
        prefix = listed.stdout.strip()
        return (int(prefix.rpartition("-")[2]), prefix) if listed.returncode == 0 and prefix else (-1, None)

    def restored_from(self, name):
        return [event["restored_from"] for event in self.events(name) if event.get("event") == "ready"]

    def await_restored(self, name):
        peer.await_true(lambda: self.restored_from(name), name + " has a model")
        return self.restored_from(name)[0]

    def connect(self):
        """To the parameter servers that there are now."""
        config = v1.ConfigProto(device_filters=["/job:ps"], operation_timeout_in_ms=20000)
        return v1.Session(self.cluster.target("ps:0"), graph=self.graph, config=config)


@peer.needs_namespace
@unittest.skipUnless(os.path.exists(MOTO), "no S3 server; bazel/setup --tests installs it")
class Apart(Stored):
    parameter_servers = 2 if LONG else 1
    counts = {"workers": 1, "parameter_servers": parameter_servers}
    epochs = 6

    def build(self, path):
        return build_counts(path, self.parameter_servers)

    def setUp(self):
        super().setUp()
        self.run_dir = "s3://%s/run" % BUCKET
        self.times_lost = 0
        self.memory = self.network.machine("memory")
        self.options = ["--fast-dir=grpc://memory:2300/run,every=1", "--save-every=5"]
        self.tier = "grpc://%s:2300/run" % self.memory.address
        self.holder = subprocess.Popen([*self.memory.enter, peer.MUSTER, "serve", "--listen=%s:2300" % self.memory.address, "--insecure",
                                        "--checkpoint-memory=64MiB"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       preexec_fn=peer.die_with_parent)
        self.addCleanup(peer.end, self.holder)
        peer.first_line(self.holder, "the memory")

    def expect_counts(self, prefix):
        """What TensorFlow reads there, which is of one step."""
        reader = tf.train.load_checkpoint(prefix)
        read = {name: reader.get_tensor(name) for name in ("seen", "last", "global_step")}
        self.assertEqual((read["last"], read["seen"].sum()), (read["global_step"], BATCH * read["global_step"]))
        return read

    def live(self):
        """What the parameter servers have."""
        with self.graph.as_default():
            def read(name, dtype):
                parts = []
                for task in range(self.parameter_servers):
                    with v1.device("/job:ps/task:%d" % task):
                        handle = tf.raw_ops.VarHandleOp(shared_name=name, dtype=dtype, shape=None)
                        parts.append((tf.raw_ops.VarIsInitializedOp(resource=handle), tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)))
                return parts
            reads = [read("seen/part_%d" % part, tf.int64) for part in range(PARTS)] + [read("last", tf.int32)]
        with self.connect() as session:
            values = [next(session.run(value) for is_there, value in places if session.run(is_there)) for places in reads]
        return {"seen": np.concatenate(values[:PARTS]), "last": values[PARTS]}

    def lose(self):
        """All machines but the worker's and those of the checkpoints; the long way in silence."""
        names = [name for name in self.cluster.names() if not name.startswith("worker")]
        for name in names if LONG else ():
            machines.ip("link", "set", self.cluster.machines[name].port, "nomaster")
        self.kill("chief:0")
        for name in names:
            self.cluster.lose(name)
        self.cluster.start(*names)
        self.train("chief:0")

    def tokens(self, name):
        device = "/job:" + name.replace(":", "/task:")
        with tf.Graph().as_default(), v1.device(device):
            size = cluster_gate.gate().size()
            config = v1.ConfigProto(device_filters=["/job:ps", device], operation_timeout_in_ms=20000)
            with v1.Session(self.cluster.target(name), config=config) as session:
                return session.run(size)

    def train_until(self, condition, what):
        """Both tasks are then in the middle of a step, without a token."""
        def is_true():
            if condition():
                return True
            self.allow(1, *self.tasks)
            peer.await_true(lambda: not any(self.tokens(name) for name in self.tasks), "all tokens are taken")
            return False
        peer.await_true(is_true, what)

    def finish(self):
        batches = ROWS * self.epochs // BATCH
        self.allow(5 * batches, *self.tasks)
        for name, (process, _) in self.tasks.items():
            self.assertEqual(process.wait(self.patience), 0, name)
        step, prefix = self.newest(self.run_dir)
        self.assertEqual(step, batches)
        self.assertEqual(self.expect_counts(self.download(prefix))["seen"].tolist(), [self.epochs] * ROWS)

    def expect_restored(self, prefix, local):
        """The chief's model is what TensorFlow reads there; no step has ended since. The worker has joined again."""
        self.assertEqual(self.await_restored("chief:0"), prefix)
        read, live = self.expect_counts(local), self.live()
        self.assertEqual(live["seen"].tolist(), read["seen"].tolist())
        self.assertEqual(live["last"], read["last"])
        self.times_lost += 1
        peer.await_true(lambda: len(self.restored_from("worker:0")) > self.times_lost, "the worker has joined again")

    def test_goes_on_elsewhere_when_the_machines_are_lost(self):
        self.train("chief:0")
        self.train("worker:0")
        self.train_until(lambda: self.newest(self.run_dir)[0] >= 5, "there is a durable checkpoint")
        self.train_until(lambda: self.newest(self.tier)[0] > self.newest(self.run_dir)[0], "a newer one is in the other machine's memory")
        self.expect_counts(self.download(self.newest(self.run_dir)[1]))
        self.lose()
        step, prefix = self.newest(self.tier)
        local = os.path.join(self.folder(), "copy")
        peer.muster("checkpoint", "copy", prefix, local)
        self.expect_restored(prefix.replace(self.memory.address, "memory"), local)
        self.assertEqual(tf.train.load_checkpoint(local).get_variable_to_shape_map()["seen"], [ROWS])
        self.assertGreater(step, 0)
        if LONG:
            self.lose_the_memory()
        self.finish()

    def lose_the_memory(self):
        self.train_until(lambda: self.newest(self.run_dir)[0] >= self.newest(self.tier)[0] - 3, "the durable tier has a checkpoint since")
        self.holder.kill()
        self.network.end(self.memory)
        self.lose()
        _, prefix = self.newest(self.run_dir)
        self.expect_restored(prefix, self.download(prefix))


@peer.needs_namespace
@unittest.skipUnless(os.path.exists(MOTO), "no S3 server; bazel/setup --tests installs it")
@unittest.skipUnless(LONG, "takes 10 GB of memory: MUSTER_LONG=1")
class Large(Stored):
    """A variable that no message can hold."""
    counts = {"workers": 0}

    def build(self, path):
        return build_large(path)

    def run_chief(self, steps):
        """The command's report and the most memory that it had."""
        process = subprocess.Popen([*self.before["chief:0"], peer.MUSTER, "train", "--meta-graph=" + self.meta, "--no-positions", "--save-blocking",
                                    "--save-every=1000", "--keep=1",
                                    "--checkpoint-dir=s3://%s/large" % BUCKET, "--steps=%d" % steps],
                                   env=self.environment("chief:0"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, preexec_fn=peer.die_with_parent)
        with process.stdout:
            said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0, said)
        print("%s\nthe command's memory: %d MB" % (said, used.ru_maxrss >> 10), file=sys.stderr, flush=True)
        return said, used.ru_maxrss << 10

    def test_is_saved_and_restored_in_parts(self):
        said, used = self.run_chief(LARGE_STEPS)
        self.assertIn("67 MB at a time", said)
        self.assertLess(used, CHIEF_BYTES)
        _, prefix = self.newest("s3://%s/large" % BUCKET)
        local = self.download(prefix)
        read = tf.train.load_checkpoint(local).get_tensor("large")
        self.assertEqual(read.shape, (LARGE_ROWS, LARGE_COLUMNS))
        for row in range(LARGE_ROWS):
            self.assertTrue((read[row] == row + (row < LARGE_STEPS)).all(), row)
        del read
        shutil.rmtree(os.path.dirname(local))
        for name in ("ps:0", "chief:0"):
            self.cluster.lose(name)
        self.cluster.start("ps:0", "chief:0")
        said, used = self.run_chief(LARGE_STEPS + 1)
        self.assertLess(used, CHIEF_BYTES)
        self.assertIn("restored " + prefix, said)
        with self.graph.as_default(), v1.device("/job:ps/task:0"):
            handle = tf.raw_ops.VarHandleOp(shared_name="large", dtype=tf.float32, shape=[LARGE_ROWS, LARGE_COLUMNS])
            which = v1.placeholder(tf.int32, [1])
            live = tf.raw_ops.ResourceGather(resource=handle, indices=which, dtype=tf.float32)
        with self.connect() as session:
            for row in range(LARGE_ROWS):
                self.assertTrue((session.run(live, {which: [row]})[0] == row + (row <= LARGE_STEPS)).all(), row)


if __name__ == "__main__":
    peer.main()
