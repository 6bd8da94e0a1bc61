# SPDX-License-Identifier: Apache-2.0
"""TF_CONFIG means to muster what it means to TensorFlow."""
import json
import os
import subprocess
import unittest

import tensorflow as tf
from tensorflow.python.distribute import multi_worker_util

import peer

TOOL = os.path.abspath("tests/tensorflow/cluster_tool")

JOBS = {"ps": ["a:1"], "chief": ["b:1"], "worker": ["c:1", "d:1"]}
WORKERS = {"worker": ["c:1", "d:1", "e:1"]}
CASES = [
    *({"cluster": JOBS, "task": {"type": job, "index": index}}
      for job, tasks in JOBS.items() for index in range(len(tasks))),
    *({"cluster": WORKERS, "task": {"type": "worker", "index": index}} for index in range(3)),
    {"cluster": JOBS, "task": {"type": "worker", "index": "1"}},
    {"cluster": JOBS, "task": {"type": "worker", "index": 1}, "rpc_layer": "grpc"},
    {"cluster": JOBS, "task": {"type": "worker", "index": 1}, "environment": "cloud"},
    {"cluster": JOBS, "task": {"type": "worker", "index": 1}, "session_master": "grpc://x:1"},
    {"cluster": {"worker": {"3": "c:1", "1": "d:1"}, "ps": {"0": "a:1"}}, "task": {"type": "worker", "index": 3}},
    {"cluster": {"chief": ["b:1"]}, "task": {"type": "chief", "index": 0}},
    {"cluster": JOBS},
    {},
]


def ours(config):
    """What the tool prints, as a list of pairs."""
    done = subprocess.run([TOOL, "config"], env=dict(os.environ, TF_CONFIG=json.dumps(config)), stdout=subprocess.PIPE,
                          text=True, check=True, timeout=peer.COMMAND_SECONDS)
    return [line.split(" ", 1) for line in done.stdout.splitlines()]


class Config(unittest.TestCase):
    def resolver(self, config):
        os.environ["TF_CONFIG"] = json.dumps(config)
        self.addCleanup(os.environ.pop, "TF_CONFIG", None)
        return tf.distribute.cluster_resolver.TFConfigClusterResolver()

    def tasks(self, resolver):
        spec = resolver.cluster_spec()
        return sorted("%s:%d %s" % (job, index, spec.task_address(job, index))
                      for job in spec.jobs for index in spec.task_indices(job))

    def check(self, config):
        said, theirs = ours(config), self.resolver(config)
        told = dict(said)
        self.assertEqual(told["job"], theirs.task_type or "-")
        self.assertEqual(int(told["index"]), theirs.task_id or 0)
        self.assertEqual(sorted(value for key, value in said if key == "task"), self.tasks(theirs))
        self.check_master(config, told["target"], theirs)
        if "task" in config and "3" not in config["cluster"].get("worker", []):  # its is_chief () wants every index
            self.assertEqual(told["chief"] == "1", multi_worker_util.is_chief(
                theirs.cluster_spec(), theirs.task_type, theirs.task_id))

    def check_master(self, config, target, theirs):
        """TensorFlow's "" is a session in this process."""
        if "cluster" not in config:
            self.assertEqual((target, theirs.master()), ("-", ""))
        elif "task" not in config:
            self.assertEqual(target, "-")
            self.assertRaises(ValueError, theirs.master)
        else:
            master = theirs.master(rpc_layer="grpc") or "local"
            self.assertEqual(target, master)

    def test_is_read_as_tensorflow_reads_it(self):
        for config in CASES:
            with self.subTest(config=config):
                self.check(config)

    def test_is_refused_where_tensorflow_refuses_it(self):
        for config in ({"cluster": {"worker": "c:1"}}, {"cluster": []},
                       {"cluster": JOBS, "task": {"type": "worker", "index": "one"}},
                       {"cluster": JOBS, "task": {"type": "worker", "index": 2}},
                       {"cluster": JOBS, "task": {"type": "boss", "index": 0}}):
            with self.subTest(config=config):
                with self.assertRaises((ValueError, TypeError)):
                    theirs = self.resolver(config)
                    multi_worker_util.is_chief(theirs.cluster_spec(), theirs.task_type, theirs.task_id)
                    theirs.master()
                    raise LookupError("TensorFlow takes it")
                with self.assertRaises(subprocess.CalledProcessError):
                    ours(config)


if __name__ == "__main__":
    peer.main()
