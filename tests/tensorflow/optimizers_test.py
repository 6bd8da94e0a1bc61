# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's client trains on `muster serve`, and learns what it learns in its own process."""
import numpy as np
import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()

STEPS = 5
KINDS = ("sgd", "momentum", "adam", "adagrad", "rms", "ftrl")


def train(target, name):
    """All variables of a model after STEPS steps on target ("": this process)."""
    x, y = np.load(peer.fixture("mlp_x.npy")), np.load(peer.fixture("mlp_y.npy"))
    rows = len(x) // STEPS
    with tf.Graph().as_default():
        v1.train.import_meta_graph(peer.fixture(name + ".meta"))
        with v1.Session(target) as session:
            session.run(v1.get_collection(v1.GraphKeys.INIT_OP))
            for i in range(STEPS):
                part = slice(i * rows, (i + 1) * rows)
                session.run("train", {"x:0": x[part], "y:0": y[part]})
            variables = v1.global_variables()
            return dict(zip([v.op.name for v in variables], session.run(variables)))


class Optimizers(peer.TestCase):
    def check(self, name):
        wanted = train("", name)
        learned = train(self.serve(), name)
        self.assertEqual(sorted(learned), sorted(wanted))
        self.assertEqual(wanted["global_step"], STEPS)
        for variable, value in wanted.items():
            np.testing.assert_allclose(learned[variable], value, rtol=1e-4, atol=1e-7, err_msg=variable)


def add(name):
    setattr(Optimizers, "test_%s_learns_what_tensorflow_learns" % name, lambda self: self.check(name))


for kind in KINDS:
    add("mlp_%s_ref" % kind)
    add("mlp_%s_resource" % kind)

if __name__ == "__main__":
    peer.main()
