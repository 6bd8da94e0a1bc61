# SPDX-License-Identifier: Apache-2.0
"""examples/job with nodes that are TensorFlow's own servers, or one of each kind."""
import os
import re
import subprocess
import sys

import numpy as np
import tensorflow as tf

sys.path.insert(0, "tests/tensorflow")
import peer

JOB = os.path.abspath("examples/job/job")
END_SECONDS = 120


class Job(peer.TestCase):
    def servers(self, *kinds):
        return [self.enterContext(kind()) for kind in kinds]

    def train(self, folder, epochs, targets, code=0):
        done = subprocess.run([JOB, *(peer.fixture(name) for name in ("digits.meta", "digits_x.npy", "digits_y.npy")),
                               folder, str(epochs), *targets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=END_SECONDS, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def check(self, folder, *kinds):
        """Three epochs; then the metadata is set back to the first, as if the job had died there."""
        whole = self.train(folder, 3, self.servers(*kinds))
        self.assertIn("epoch 1\nepoch 2\nepoch 3\n", whole)
        with open(os.path.join(folder, "job.muster"), "w") as file:
            file.write("[job]\nversion=1\nepoch=1\n")
        again = self.train(folder, 3, self.servers(*kinds))
        self.assertNotIn("epoch 1\n", again)
        self.assertIn("epoch 2\nepoch 3\n", again)
        # Nothing of what was learnt, or of the order of the rows, depends on the death.
        self.assertEqual(*(sorted(re.findall(r"trainer_\d accuracy=\S+", text)) for text in (again, whole)))

    def test_on_tensorflows_servers(self):
        folder = self.folder()
        self.check(folder, peer.tensorflow_server, peer.tensorflow_server)
        reader = tf.train.load_checkpoint(os.path.join(folder, "trainer_1.3"))
        steps = reader.get_tensor("global_step")
        self.assertEqual(steps, 3 * (1797 // 32))
        names = [name.decode() for name in reader.get_tensor("blob_names/list")]
        self.assertEqual(sorted([*names, "blob_names/list", "blob_names/save"]), sorted(reader.get_variable_to_shape_map()))
        self.assertNotIn("muster/epochs", names)  # nobody counts there, so it has no value
        self.assertEqual(tf.train.load_checkpoint(os.path.join(folder, "trainer_0.3")).get_tensor("muster/epochs"), -1)
        self.assertTrue(np.all(np.isfinite(reader.get_tensor(names[0]))))

    def test_refuses_one_server_under_two_names(self):
        [target] = self.servers(peer.tensorflow_server)
        port = target.rsplit(":", 1)[1]
        said = self.train(self.folder(), 1, ["grpc://localhost:" + port, "grpc://127.0.0.1:" + port], code=4)
        self.assertIn("Node 'trainer_1' can't be on the master of node 'trainer_0'", said)

    def test_on_a_node_of_each_kind(self):
        self.check(self.folder(), peer.muster_server, peer.tensorflow_server)


if __name__ == "__main__":
    peer.main()
