# SPDX-License-Identifier: Apache-2.0
"""A cluster of TensorFlow's whose tasks see other files than the chief does."""
import os
import shutil
import subprocess

import numpy as np
import tensorflow as tf

import cluster_peer
import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()


def own_mounts():
    """The words before a command that give it mounts of its own, or None where that isn't allowed."""
    for way in (["unshare", "-m"], ["unshare", "-rm"]):
        trial = [*way, "mount", "-t", "tmpfs", "none", "/tmp"]
        if shutil.which("unshare") and subprocess.run(trial, stderr=subprocess.DEVNULL).returncode == 0:
            return way
    return None


class Cluster(peer.TestCase):
    """Two tasks of TensorFlow's, one of which may see other files, and a model that lives on both."""

    def cluster(self, *before_ps):
        """A worker and a parameter server; the worker's target."""
        cluster = cluster_peer.Cluster(workers=1, chiefs=0)
        self.addCleanup(cluster.end)
        cluster.start("ps:0", before=before_ps)
        cluster.start("worker:0")
        return cluster.target("worker:0")

    def model(self):
        built = os.path.join(self.folder(), "built.meta")
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                v1.get_variable("b", initializer=[1., 2.], use_resource=False)
                v1.get_variable("c", initializer=[4, 5, 6], use_resource=True)
                v1.get_variable("p", [3, 2], initializer=v1.ones_initializer(), partitioner=v1.fixed_size_partitioner(2))
            with tf.device("/job:worker/task:0"):
                v1.get_variable("a", initializer=3, use_resource=True)
            v1.add_to_collection(v1.GraphKeys.INIT_OP, v1.global_variables_initializer())
            v1.train.Saver(sharded=True).export_meta_graph(built)
        return built

    def mounts(self):
        mounts = own_mounts()
        if mounts is None:
            self.skipTest("mounts of one's own need root or unprivileged user namespaces")
        return mounts


class Probe(Cluster):
    """A task of TensorFlow's that doesn't see the chief's directory: the chief reads the variables through its session, and writes them."""

    def test_saves_and_restores_without_a_shared_directory(self):
        mounts = self.mounts()
        folder = self.folder()
        script = 'mount -t tmpfs none "$0" && exec "$@"'
        built = self.model()

        def where():
            return ["--meta-graph=" + built, "--master=" + self.cluster(*mounts, "sh", "-c", script, folder), "--timeout=60"]

        first = where()
        peer.muster("prepare", *first)
        done = subprocess.run([peer.MUSTER, "save", *first, "--checkpoint-dir=" + folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=True, text=True)
        self.assertRegex(done.stderr, "written by the chief, because ps:0 doesn't see '%s' of host '.*'" % folder)
        prefix = v1.train.latest_checkpoint(folder)
        reader = tf.train.load_checkpoint(prefix)
        self.assertEqual({name: reader.get_tensor(name).tolist() for name, _ in tf.train.list_variables(prefix)},
                         {"a": 3, "b": [1., 2.], "c": [4, 5, 6], "p": [[1., 1.]] * 3})
        self.assertIn("2 slices", peer.muster("checkpoint", "show", prefix))
        self.assertEqual([name for name in os.listdir(folder) if "probe" in name], [])
        self.assertIn("restored " + prefix, peer.muster("prepare", *where(), "--checkpoint-dir=" + folder))

    def test_large_variables_go_in_parts(self):
        mounts, folder = self.mounts(), self.folder()
        built = os.path.join(folder, "built.meta")
        script = 'mount -t tmpfs none "$0" && exec "$@"'

        def values():
            return tf.reshape(tf.range(21 << 20), [3, 7 << 20]), tf.cast(tf.range(20 << 20), tf.float32)

        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                for name, value in zip("rq", values()):
                    v1.Variable(value, name=name, use_resource=name == "q")
            v1.add_to_collection(v1.GraphKeys.INIT_OP, v1.global_variables_initializer())
            v1.train.Saver(sharded=True).export_meta_graph(built)
        target = self.cluster(*mounts, "sh", "-c", script, folder)
        peer.muster("prepare", "--meta-graph=" + built, "--master=" + target, "--timeout=60")
        peer.muster("save", "--meta-graph=" + built, "--master=" + target, "--timeout=60", "--checkpoint-dir=" + folder)
        target = self.cluster(*mounts, "sh", "-c", script, folder)
        self.assertIn("restored ", peer.muster("prepare", "--meta-graph=" + built, "--master=" + target, "--checkpoint-dir=" + folder, "--timeout=60"))
        with tf.Graph().as_default():
            v1.train.import_meta_graph(built)
            same = [tf.reduce_all(tf.equal(variable, value)) for variable, value in zip(v1.global_variables(), values())]
            with v1.Session(target) as session:
                self.assertEqual(session.run(same), [True, True])

    def test_is_content_where_all_tasks_see_it(self):
        folder = self.folder()
        where = ["--meta-graph=" + self.model(), "--master=" + self.cluster(), "--timeout=60"]
        peer.muster("prepare", *where)
        peer.muster("save", *where, "--checkpoint-dir=" + folder)
        prefix = v1.train.latest_checkpoint(folder)
        self.assertEqual(sorted(name for name, _ in tf.train.list_variables(prefix)), ["a", "b", "c", "p"])
        self.assertEqual([name for name in os.listdir(folder) if "probe" in name], [])


class OwnEyes(Cluster):
    """A task of TensorFlow's that reads damage where the chief reads none."""

    def save(self, built, folder, values):
        with tf.Graph().as_default():
            saver = v1.train.import_meta_graph(built, clear_devices=True)
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                for value in values:
                    for variable in v1.global_variables():
                        variable.load(np.full(variable.shape, value, variable.dtype.base_dtype.as_numpy_dtype), session)
                    saver.save(session, os.path.join(folder, "model"), global_step=value, write_meta_graph=False)

    def cluster_that_sees(self, folder, damage):
        """The cluster; the parameter server sees the newest checkpoint's data as damage makes it."""
        seen = self.folder()
        for name in os.listdir(folder):
            if ".data-" in name and name.startswith("model-2"):
                with open(os.path.join(folder, name), "rb") as whole, open(os.path.join(seen, name), "wb") as damaged:
                    damaged.write(damage(whole.read()))
        script = 'to=$1; shift; for f in "$0"/*; do mount --bind "$f" "$to/${f##*/}" || exit; done; exec "$@"'
        return self.cluster(*self.mounts(), "sh", "-c", script, seen, folder)

    def values_on(self, target, built):
        with tf.Graph().as_default():
            v1.train.import_meta_graph(built)
            with v1.Session(target) as session:
                return {int(value) for array in session.run(v1.global_variables()) for value in np.ravel(array)}

    def check_fall_back(self, damage):
        self.mounts()
        folder, built = self.folder(), self.model()
        self.save(built, folder, [1, 2])
        target = self.cluster_that_sees(folder, damage)
        peer.muster("prepare", "--meta-graph=" + built, "--master=" + target, "--timeout=60",
                    "--checkpoint-dir=" + folder)
        said = peer.muster("checkpoint", "list", folder)
        self.assertIn("set aside: 'model-2' is undamaged for the chief, but not for the master", said)
        self.assertEqual(self.values_on(target, built), {1})

    def test_is_believed_about_a_checksum(self):
        self.check_fall_back(lambda data: bytes(len(data)))

    def test_is_believed_about_a_file_that_is_short(self):
        self.check_fall_back(lambda data: data[:2])

    def test_keeps_the_others_from_assigning(self):
        self.mounts()
        folder, built = self.folder(), self.model()
        self.save(built, folder, [2])
        target = self.cluster_that_sees(folder, lambda data: bytes(len(data)))
        peer.muster("prepare", "--meta-graph=" + built, "--master=" + target, "--timeout=60",
                    "--checkpoint-dir=" + folder, code=3)
        with tf.Graph().as_default():
            v1.train.import_meta_graph(built)
            unset = v1.report_uninitialized_variables()
            with v1.Session(target) as session:
                self.assertEqual(len(session.run(unset)), 5)


if __name__ == "__main__":
    peer.main()
