# SPDX-License-Identifier: Apache-2.0
"""A cluster of tf.distribute.Server processes, of which each can be killed, stopped and started again."""
import json
import os
import signal
import subprocess
import sys

import peer

_TASK = """
import json, os, sys
import tensorflow as tf
cluster = json.loads(os.environ["TF_CONFIG"])
server = tf.distribute.Server(cluster["cluster"], job_name=cluster["task"]["type"],
                              task_index=cluster["task"]["index"], start=True)
print(server.target, flush=True)
sys.stdin.read()
os._exit(0)
"""


class Cluster:
    """Its tasks are called "ps:0", "chief:0", "worker:1"; at first none of them runs."""

    def __init__(self, workers=2, parameter_servers=1, chiefs=1):
        self.ports = {job: [peer.hold_port() for _ in range(n)]
                      for job, n in (("ps", parameter_servers), ("chief", chiefs), ("worker", workers)) if n > 0}
        self.jobs = {job: ["localhost:%d" % peer.port_of(port) for port in ports] for job, ports in self.ports.items()}
        self.processes = {}

    def names(self):
        return ["%s:%d" % (job, index) for job, tasks in self.jobs.items() for index in range(len(tasks))]

    def config(self, name):
        """TF_CONFIG for a task."""
        job, index = name.split(":")
        return json.dumps({"cluster": self.jobs, "task": {"type": job, "index": int(index)}})

    def environment(self, name):
        return dict(os.environ, TF_CONFIG=self.config(name))

    def target(self, name):
        job, index = name.split(":")
        return "grpc://" + self.jobs[job][int(index)]

    def begin(self, *names, before=()):
        """Starts tasks, but doesn't wait until they serve."""
        for name in names:
            self.processes[name] = subprocess.Popen(
                [*before, sys.executable, "-c", _TASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=self.environment(name), preexec_fn=peer.die_with_parent)

    def start(self, *names, before=()):
        """Starts tasks and waits until they serve."""
        self.begin(*names, before=before)
        for name in names:
            peer.first_line(self.processes[name], "TensorFlow's " + name)

    def signal(self, name, number):
        self.processes[name].send_signal(number)

    def stop(self, name):
        peer.stop(self.processes[name].pid)

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait(10)
        process.stdin.close()
        process.stdout.close()

    def end(self):
        for name in sorted(self.processes, key=lambda name: name.startswith("ps")):  # these stop last
            self.processes[name].send_signal(signal.SIGCONT)
            peer.end(self.processes[name])
        self.processes.clear()
        for ports in self.ports.values():
            for port in ports:
                port.close()


class Served(Cluster):
    """The same tasks by `muster serve --master=tensorflow --task=…`."""
    master = "tensorflow:" + sys.prefix

    def __init__(self, **counts):
        super().__init__(**counts)
        self.gateways = {}  # the targets of those that serve
        self.more = {}  # of TF_CONFIG

    def begin(self, *names, before=()):
        cluster = json.dumps({"cluster": self.jobs, **self.more})  # one value for all
        for name in names:
            self.processes[name] = subprocess.Popen(
                [*before, peer.MUSTER, "serve", "--master=" + self.master, "--task=" + name],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=dict(os.environ, TF_CONFIG=cluster),
                preexec_fn=peer.die_with_parent)

    def start(self, *names, before=()):
        self.begin(*names, before=before)
        for name in names:
            self.gateways[name] = peer.first_line(self.processes[name], name).split()[1]

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait(10)
        process.stdout.close()


def export_sharded(path, **how):
    """The default graph, with a sharded saver: each parameter server writes its variables."""
    import tensorflow as tf
    v1 = tf.compat.v1
    saver = v1.train.Saver(sharded=True, **how)
    v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
    v1.train.Scaffold(saver=saver).finalize()
    v1.train.export_meta_graph(path, saver_def=saver.as_saver_def())


def build_model(path, parameter_servers=1, scope=None):
    """y = w x + b with its variables on the parameter servers and one of each task's own, exported as a meta graph with a
    sharded saver. Whoever runs it computes on its own task. The train op takes no feeds: w and b grow by 1 and 2. The
    variables' names begin with scope, if one is given."""
    import tensorflow as tf
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.variable_scope(scope or v1.get_variable_scope(), auxiliary_name_scope=False):
        with v1.device(v1.train.replica_device_setter(ps_tasks=parameter_servers, worker_device="")):
            step = v1.train.create_global_step()
            w = v1.get_variable("w", initializer=[1., 2.], use_resource=True)
            b = v1.get_variable("b", initializer=3., use_resource=False)
        own = v1.get_local_variable("own", initializer=[7., 8.])
        tf.add(w * 2. + b, own, name="y")
        with tf.control_dependencies([w.assign_add([1., 1.], read_value=False), v1.assign_add(b, 2.)]):
            v1.add_to_collection("train_op", v1.assign_add(step, 1, name="train").op)
        export_sharded(path)
    return path
