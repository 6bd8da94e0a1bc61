# SPDX-License-Identifier: Apache-2.0
"""Restores that TensorFlow's own restore op can't do, on TensorFlow's server and on muster's: the chief
reads the tensors and feeds them in the place of the RestoreV2 nodes."""
import os

import numpy as np
import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()

VALUES = {
    "old": np.arange(6, dtype=np.float32).reshape(2, 3) + 1,
    "new": np.arange(4, dtype=np.int64) + 10,
    "text": np.array([b"a", b"", b"long enough to lie outside"], dtype=object),
    "global_step": np.int64(77),
}


def build(names=tuple(VALUES), sharded=False, reshape=False, shapes=None):
    """Variables of both kinds, at another value than VALUES, and a saver."""
    graph = tf.Graph()
    with graph.as_default():
        variables = []
        for name in names:
            start = np.full_like(VALUES[name], b"x" if name == "text" else 5)
            start = start.reshape((shapes or {}).get(name, start.shape))
            variables.append(v1.get_variable(
                name, initializer=tf.constant(start), use_resource=name != "old",
                collections=[v1.GraphKeys.GLOBAL_VARIABLES] +
                ([v1.GraphKeys.GLOBAL_STEP] if name == "global_step" else [])))
        v1.add_to_collection(v1.GraphKeys.INIT_OP, v1.global_variables_initializer())
        v1.add_to_collection(v1.GraphKeys.READY_OP, v1.report_uninitialized_variables())
        saver = v1.train.Saver(variables, sharded=sharded, reshape=reshape)
    return graph, saver


def write_meta(folder, graph, saver):
    path = os.path.join(folder, "model.meta")
    with graph.as_default():
        saver.export_meta_graph(path)
    return path


def write_checkpoint(folder, values, name="model.ckpt-77"):
    """A name-based checkpoint of values, as TensorFlow's Saver writes it."""
    prefix = os.path.join(folder, name)
    with tf.Graph().as_default(), v1.Session() as session:
        variables = {key: v1.get_variable(key, initializer=tf.constant(value)) for key, value in values.items()}
        session.run(v1.global_variables_initializer())
        v1.train.Saver(variables).save(session, prefix, write_meta_graph=False)
    return prefix


def write_objects(folder, values):
    """An object-based one: a Checkpoint of objects."""
    with tf.Graph().as_default(), v1.Session() as session:
        root = v1.train.Checkpoint()
        root.layers = [v1.get_variable(name, initializer=tf.constant(value), use_resource=True)
                       for name, value in values.items()]
        session.run(v1.global_variables_initializer())
        return root.write(os.path.join(folder, "objects"), session=session)


class Story:
    """One server for all, without a variable at the beginning of each."""

    @classmethod
    def setUpClass(cls):
        cls.target = cls.enterClassContext(cls.server())

    def start(self):
        v1.Session.reset(self.target)
        return self.target

    def prepare(self, target, meta, prefix, *more, code=0):
        return peer.muster("prepare", "--meta-graph=" + meta, "--master=" + target, "--timeout=60",
                           "--checkpoint=" + prefix, *more, code=code)

    def values_on(self, target, graph):
        with graph.as_default(), v1.Session(target) as session:
            variables = v1.global_variables()
            return dict(zip([v.op.name for v in variables], session.run(variables)))

    def check(self, got, wanted):
        self.assertEqual(sorted(got), sorted(wanted))
        for name, value in wanted.items():
            np.testing.assert_array_equal(got[name], value, err_msg=name)

    def restored(self, prefix_of, *more, **how):
        """What the variables are after prepare restored the checkpoint that prefix_of wrote."""
        target, folder = self.start(), self.folder()
        graph, saver = build(**how)
        meta = write_meta(folder, graph, saver)
        self.prepare(target, meta, prefix_of(folder), *more)
        return self.values_on(target, graph)

    def test_the_plain_case(self):
        self.check(self.restored(lambda folder: write_checkpoint(folder, VALUES)), VALUES)

    def test_what_the_checkpoint_lacks_is_initialised(self):
        """SAV.63, DIFF.9"""
        some = {name: VALUES[name] for name in ("old", "global_step")}
        got = self.restored(lambda folder: write_checkpoint(folder, some), "--allow-missing")
        self.check(got, dict(some, new=[5] * 4, text=[b"x"] * 3))

    def test_a_missing_name_changes_nothing(self):
        target, folder = self.start(), self.folder()
        graph, saver = build()
        meta = write_meta(folder, graph, saver)
        some = {"old": VALUES["old"], "news": VALUES["new"], "global_step": VALUES["global_step"]}
        prefix = write_checkpoint(folder, some)
        said = self.prepare(target, meta, prefix, code=3)
        self.assertIn("2 of 4 variables", said)
        self.assertIn("nearest: news", said)
        with graph.as_default(), v1.Session(target) as session:
            self.assertEqual(len(session.run(v1.report_uninitialized_variables())), 4)

    def test_names_are_mapped(self):
        values = {("was/" + name if name != "text" else name): value for name, value in VALUES.items()}
        renames = ["--rename=%s=was/%s" % (name, name) for name in VALUES if name != "text"]
        self.check(self.restored(lambda folder: write_checkpoint(folder, values), *renames), VALUES)

    def test_objects_are_restored_by_their_variables_names(self):
        """SAV.64"""
        self.check(self.restored(lambda folder: write_objects(folder, VALUES)), VALUES)

    def test_shapes_are_changed_on_request(self):
        """SAV.65"""
        got = self.restored(lambda folder: write_checkpoint(folder, VALUES), "--reshape", shapes={"old": (3, 2)})
        self.check(got, dict(VALUES, old=VALUES["old"].reshape(3, 2)))

    def test_a_graph_that_reshapes_needs_no_request(self):
        """SAV.65: a Saver made with reshape"""
        got = self.restored(lambda folder: write_checkpoint(folder, VALUES), shapes={"old": (6,)}, reshape=True)
        self.check(got, dict(VALUES, old=VALUES["old"].reshape(6)))

    def test_a_sharded_saver_is_fed_too(self):
        some = {name: VALUES[name] for name in ("old", "new")}
        got = self.restored(lambda folder: write_checkpoint(folder, some), "--allow-missing", sharded=True)
        self.check(got, dict(some, text=[b"x"] * 3, global_step=5))

    def test_what_is_large_goes_in_several_steps(self):
        """72 MB: more than muster feeds at once"""
        target, folder = self.start(), self.folder()
        large = {name: np.full([6 << 20], i + 1, np.float32) for i, name in enumerate("abc")}
        graph = tf.Graph()
        with graph.as_default():
            for name in ("a", "b", "c", "missing"):
                v1.get_variable(name, [6 << 20 if name != "missing" else 1], initializer=v1.zeros_initializer())
            v1.add_to_collection(v1.GraphKeys.INIT_OP, v1.global_variables_initializer())
            saver = v1.train.Saver()
        prefix = write_checkpoint(folder, large)
        self.prepare(target, write_meta(folder, graph, saver), prefix, "--allow-missing")
        self.check(self.values_on(target, graph), dict(large, missing=[0]))

    def partitioned(self, parts, axis):
        """A graph with one variable of shape (12, 4) in parts."""
        graph = tf.Graph()
        with graph.as_default():
            v1.get_variable("wide", [12, 4], initializer=v1.zeros_initializer(), use_resource=True,
                            partitioner=v1.fixed_size_partitioner(parts, axis=axis) if parts > 1 else None)
            v1.get_variable("more", [2], initializer=v1.zeros_initializer(), use_resource=True)
            v1.add_to_collection(v1.GraphKeys.INIT_OP, v1.global_variables_initializer())
            saver = v1.train.Saver()
        return graph, saver

    def test_slices_fit_any_other_partitioning(self):
        """SAV.31: from each partitioning into each, by the restore op and fed."""
        wide = np.arange(48, dtype=np.float32).reshape(12, 4)
        for parts, axis in ((1, 0), (3, 0), (2, 1)):
            folder = self.folder()
            graph, _ = self.partitioned(parts, axis)
            prefix = os.path.join(folder, "model.ckpt-1")
            with graph.as_default(), v1.Session() as session:
                session.run(v1.global_variables_initializer())
                column = 0
                for variable in sorted((v for v in v1.global_variables() if v.op.name.startswith("wide")),
                                       key=lambda v: v.op.name):
                    rows, columns = variable.shape.as_list()
                    part = wide[column:column + rows] if axis == 0 else wide[:, column:column + columns]
                    column += rows if axis == 0 else columns
                    variable.load(part, session)
                wides = [v for v in v1.global_variables() if v.op.name.startswith("wide")]
                pieces = wides[0] if parts == 1 else v1.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
                v1.train.Saver({"wide": pieces} if parts == 1 else
                               [v for v in pieces if v.op.name.startswith("wide")]).save(session, prefix)
            for other, other_axis in ((1, 0), (4, 0), (2, 1)):
                with self.subTest(stored=(parts, axis), wanted=(other, other_axis)):
                    target = self.start()
                    graph, saver = self.partitioned(other, other_axis)
                    # "more" isn't there: what is there has to be fed
                    self.prepare(target, write_meta(folder, graph, saver), prefix, "--allow-missing")
                    got = self.values_on(target, graph)
                    names = sorted(name for name in got if name.startswith("wide"))
                    np.testing.assert_array_equal(
                        np.concatenate([got[name] for name in names], axis=other_axis), wide)


class OnTensorFlow(Story, peer.TestCase):
    server = staticmethod(peer.tensorflow_server)


class OnMuster(Story, peer.TestCase):
    server = staticmethod(peer.muster_server)


if __name__ == "__main__":
    peer.main()
