# SPDX-License-Identifier: Apache-2.0
"""A program of TensorFlow 1, as the census has them: a model, its optimizer, a Saver, summaries and a
ready op, built once for each kind of variable and run on any master."""
import contextlib
import os

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1

REF, RESOURCE = "ref", "resource"
KINDS = (REF, RESOURCE)


@contextlib.contextmanager
def variables_of(kind):
    """Within it, variables are of this kind, slots, counters and averages too."""
    (v1.enable_resource_variables if kind == RESOURCE else v1.disable_resource_variables)()
    try:
        yield
    finally:
        v1.disable_resource_variables()


@contextlib.contextmanager
def functional_control_flow():
    """Within it, conditions and loops are functions of the graph's library, as TensorFlow 2 builds them."""
    v1.enable_control_flow_v2()
    try:
        yield
    finally:
        v1.disable_control_flow_v2()


def digits(rows=32, inputs=16, classes=10, seed=3):
    """Some rows to learn from."""
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, inputs)).astype(np.float32), random.integers(0, classes, rows).astype(np.int64)


class Program:
    """What a program consists of; the subclasses are the rows of the census.

    build () makes the model in the default graph and sets loss and train, and may set fetches, more to
    look at in each step. A program is built and run once, and remembers nothing between runs.
    """

    STEPS = 6
    sharded = False  # its Saver

    def __init__(self, kind, folder):
        """folder: where its files go, checkpoints among them."""
        self.kind = kind
        self.folder = folder
        self.fetches = {}
        self.graph = tf.Graph()
        with variables_of(kind), self.graph.as_default():
            v1.set_random_seed(11)
            self.step = v1.train.get_or_create_global_step()
            self.build()
            self.finish()

    def build(self):
        raise NotImplementedError

    def finish(self):
        """The parts around a model that each program has."""
        v1.summary.scalar("loss", self.loss)
        self.summary = v1.summary.merge_all()
        self.init = v1.global_variables_initializer()
        self.local_init = tf.group(v1.local_variables_initializer(), v1.tables_initializer())
        self.saver = v1.train.Saver(sharded=self.sharded)
        self.ready = v1.report_uninitialized_variables()

    def feed(self, i):
        return {}

    def after_loss(self):
        """What updates variables comes after the loss where the loss reads them itself: a reference is read when
        the reader runs, and TensorFlow promises no order."""
        return tf.control_dependencies([self.loss])

    @property
    def ops(self):
        """The names of its ops; those inside a function as "fn:NAME"."""
        definition = self.graph.as_graph_def()
        inside = {"fn:" + node.op for function in definition.library.function for node in function.node_def}
        return {node.op for node in definition.node} | inside

    # What it does on a master: its results, by name, in the order in which they came.

    def run(self, target):
        results = {}
        # Which of a failed step's operations have run isn't told: nothing of it stays.
        with v1.Session(target, graph=self.graph) as session:
            results["a step on nothing fails"] = self.lacks_values(lambda: self.train_once(session, 0))
        v1.Session.reset(target)
        with v1.Session(target, graph=self.graph) as session:
            results["not ready"] = sorted(session.run(self.ready))
            session.run(self.init)
            session.run(self.local_init)
            results["still not ready"] = sorted(session.run(self.ready))
            results.update(self.values(session, "at the start"))
            for i in range(self.STEPS):
                for name, value in self.train_once(session, i).items():
                    results["step %d: %s" % (i, name)] = value
            results.update(self.saved_and_restored(session))
        return results

    @contextlib.contextmanager
    def started(self, session):
        """Within it, its steps can be run one after the other, as often as one likes."""
        session.run(self.init)
        session.run(self.local_init)
        yield

    def train_once(self, session, i):
        fetches = dict(self.fetches, loss=self.loss, train=self.train)
        fetched = session.run(fetches, self.feed(i))
        del fetched["train"]
        return fetched

    def values(self, session, when):
        with self.graph.as_default():
            variables = v1.global_variables() + v1.local_variables()
        # a Variable over parts is fetched part by part
        names = [variable.op.name for variable in variables]
        return {"%s %s" % (name, when): value for name, value in zip(names, session.run(variables))}

    def saved_and_restored(self, session):
        """Saves, goes on, and goes back."""
        path = self.saver.save(session, os.path.join(self.folder, "model"), global_step=self.step)
        results = self.values(session, "saved")
        results["checkpoint"] = os.path.basename(path)
        self.train_once(session, self.STEPS)
        results["summary"] = self.summarised(session)
        self.saver.restore(session, path)
        results.update(self.values(session, "restored"))
        return results

    def summarised(self, session):
        summary = v1.Summary.FromString(session.run(self.summary, self.feed(0)))
        return {value.tag: value.simple_value for value in summary.value}

    @staticmethod
    def lacks_values(run):
        """Whether a step fails for want of values: with one of the errors that TensorFlow has for that, by the
        operation that runs first."""
        try:
            run()
        except (tf.errors.FailedPreconditionError, tf.errors.NotFoundError, tf.errors.InternalError):
            return True
        return False
