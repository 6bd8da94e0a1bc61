# SPDX-License-Identifier: Apache-2.0
"""`muster checkpoint` on what TensorFlow has just written: a tf.train.Checkpoint under a CheckpointManager, a SavedModel, Keras."""
import json
import os
import subprocess

import numpy as np
import tensorflow as tf

import peer

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def lines(*arguments, code=0):
    out = peer.muster("checkpoint", *arguments, "--json", code=code)
    return [json.loads(line) for line in out.split("\n")[:-1]]


class Dense(tf.Module):

    def __init__(self, rows, columns):
        super().__init__()
        self.kernel = tf.Variable(tf.random.normal([rows, columns]), name="kernel")
        self.bias = tf.Variable(tf.zeros([columns]), name="bias")


class Net(tf.Module):

    def __init__(self):
        super().__init__()
        self.layers = [Dense(30, 40), Dense(40, 2)]
        self.last = self.layers[1]
        self.words = tf.Variable(["one", "eleven"], name="words")

    @tf.function(input_signature=[tf.TensorSpec([None, 30])])
    def __call__(self, x):
        for layer in self.layers:
            x = tf.matmul(x, layer.kernel) + layer.bias
        return x


class CheckpointTest(peer.TestCase):

    def save(self, steps=1):
        """A manager's directory with a checkpoint for each step; the net's first bias counts them."""
        self.net, self.directory = Net(), self.folder()
        self.checkpoint = tf.train.Checkpoint(net=self.net, step=tf.Variable(0, dtype=tf.int64))
        self.manager = tf.train.CheckpointManager(self.checkpoint, self.directory, max_to_keep=10)
        for _ in range(steps):
            self.net.layers[0].bias.assign_add(tf.ones([40]))
            self.checkpoint.step.assign_add(1)
            self.manager.save()

    def expect_all(self, prefix):
        """Every tensor that TensorFlow finds is shown, with its shape and values."""
        reader = tf.train.load_checkpoint(prefix)
        shapes = reader.get_variable_to_shape_map()
        rows = {row.get("key", row["name"]): row for row in lines("show", prefix)}
        self.assertEqual({key: row["shape"] for key, row in rows.items()}, shapes)
        for key, row in rows.items():
            value = np.asarray(reader.get_tensor(key))
            shown, = lines("show", prefix, row["name"], "--full")
            self.assertEqual(shown.get("key", shown["name"]), key)
            if value.dtype.kind in "OS":
                if key != GRAPH:
                    self.assertEqual(shown["values"], [text.decode() for text in np.ravel(value)])
                continue
            np.testing.assert_array_equal(np.array(shown["values"], value.dtype).reshape(value.shape), value)
            self.assertEqual(shown["statistics"]["zeros"], int(np.sum(value == 0)))
            np.testing.assert_allclose([shown["statistics"][name] for name in ("min", "max", "mean", "std")],
                                       [np.min(value), np.max(value), np.mean(value), np.std(value)], atol=1e-6)

    def test_show_of_a_checkpoint(self):
        self.save()
        self.expect_all(self.manager.latest_checkpoint)
        out = peer.muster("checkpoint", "show", self.directory)
        self.assertIn("net/layers/0/kernel  float   [30,40]  4.8 KB  0\n", out)
        self.assertIn("saved by TensorFlow as objects", out)
        self.assertNotIn(".ATTRIBUTES", out)
        shown, = lines("show", self.directory, "net/layers/1/kernel")  # it is stored as net/last
        self.assertEqual(shown["name"], "net/last/kernel")
        np.testing.assert_allclose(shown["values"], np.ravel(self.net.last.kernel.numpy()))

    def test_show_of_a_saved_model(self):
        net, directory = Net(), self.folder()
        tf.saved_model.save(net, directory)
        self.expect_all(os.path.join(directory, "variables", "variables"))
        self.assertIn("layers/0/kernel", peer.muster("checkpoint", "show", directory))
        self.assertIn("intact", peer.muster("checkpoint", "verify", directory))

    def test_show_of_keras_has_the_variables_names(self):
        model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(4, name="first")])
        model.compile("adam", "mse")
        model.train_on_batch(np.zeros((4, 3)), np.zeros((4, 4)))
        prefix = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(os.path.join(self.folder(), "keras"))
        out = peer.muster("checkpoint", "show", prefix)
        for variable in model.variables + model.optimizer.variables:
            self.assertIn(variable.path, out)
        self.expect_all(prefix)

    def test_a_directory(self):
        self.save(3)
        rows = lines("list", self.directory)
        self.assertEqual([(row["step"], row["state"], row["latest"]) for row in rows],
                         [(3, "good", True), (2, "good", False), (1, "good", False)])
        self.assertEqual(peer.muster("checkpoint", "latest", self.directory).strip(),
                         tf.train.latest_checkpoint(self.directory))
        self.assertEqual([row["state"] for row in lines("verify", self.directory)], ["intact"] * 3)

    def test_diff(self):
        self.save(2)
        old, new = self.manager.checkpoints
        out, = lines("diff", old, old)
        self.assertEqual(out["equal"], len(tf.train.list_variables(old)))
        done = subprocess.run([peer.MUSTER, "checkpoint", "diff", old, new], capture_output=True, text=True,
                              timeout=peer.COMMAND_SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[1:], [
            "~ net/layers/0/bias  float [40]  40 of 40 differ, by up to 1",
            "~ save_counter       int64 []  1 → 2",
            "~ step               int64 []  1 → 2",
        ])

    def test_prune_and_tensorflow_goes_on(self):
        self.save(4)
        peer.muster("checkpoint", "prune", self.directory, "--keep=2")
        self.assertEqual(tf.train.latest_checkpoint(self.directory), os.path.join(self.directory, "ckpt-4"))
        state = tf.train.get_checkpoint_state(self.directory)
        self.assertEqual([os.path.basename(path) for path in state.all_model_checkpoint_paths], ["ckpt-3", "ckpt-4"])
        manager = tf.train.CheckpointManager(self.checkpoint, self.directory, max_to_keep=2)
        self.assertEqual(len(manager.checkpoints), 2)
        self.checkpoint.restore(manager.latest_checkpoint).assert_consumed()
        self.assertEqual(manager.save(), os.path.join(self.directory, "ckpt-5"))
        self.assertEqual([row["step"] for row in lines("list", self.directory)], [5, 4])

    def test_what_is_pinned_stays_when_tensorflow_goes_on(self):
        self.save(4)
        peer.muster("checkpoint", "pin", os.path.join(self.directory, "ckpt-2"))
        state = tf.train.get_checkpoint_state(self.directory)
        self.assertEqual([os.path.basename(path) for path in state.all_model_checkpoint_paths],
                         ["ckpt-%d" % step for step in (1, 3, 4)])
        manager = tf.train.CheckpointManager(self.checkpoint, self.directory, max_to_keep=2)
        self.checkpoint.restore(manager.latest_checkpoint).assert_consumed()
        manager.save()
        manager.save()
        self.assertEqual({row["step"]: row["kept"] for row in lines("list", self.directory)},
                         {6: ["latest", "newest"], 5: ["newest"], 2: ["pinned"]})
        peer.muster("checkpoint", "unpin", os.path.join(self.directory, "ckpt-2"))
        self.assertEqual({row["step"]: row["kept"] for row in lines("list", self.directory)},
                         {6: ["latest", "newest"], 5: ["newest"], 2: []})


if __name__ == "__main__":
    peer.main()
