# SPDX-License-Identifier: Apache-2.0
"""What is told to TensorFlow's own server and to `muster serve`, to compare what they answer: values, types of errors, and
their texts, but for what differs by intent (see `plain` and `fails`)."""
import re

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

import side_by_side
from master_rpc import Failed, Master, feed

v1 = tf.compat.v1
v1.disable_v2_behavior()


def graph_of(build):
    graph = tf.Graph()
    with graph.as_default():
        build()
    return graph.as_graph_def()


def model():
    x, y, z = (v1.placeholder(tf.float32, [], name=name) for name in "xyz")
    total = tf.add(x, y, name="sum")
    tf.multiply(total, z, name="product")
    three = tf.constant(3.0, name="three")
    tf.add(three, three, name="six")
    old = v1.get_variable("old", [], initializer=v1.constant_initializer(1.0), use_resource=False)
    new = v1.get_variable("new", [], initializer=v1.constant_initializer(2.0), use_resource=True)
    v1.assign_add(old, total, name="grow")
    tf.identity(new.read_value(), name="new_value")
    tf.no_op(name="idle")
    v1.global_variables_initializer()


MODEL = graph_of(model)
X, Y, Z = feed("x:0", 1.0), feed("y:0", 2.0), feed("z:0", 3.0)


def nodes(*names, op="NoOp", **attributes):
    graph = graph_pb2.GraphDef()
    for name in names:
        graph.node.add(name=name, op=op, **attributes)
    return graph


def versions(**fields):
    graph = nodes("n")
    bad = fields.pop("bad_consumers", [])
    for name, value in fields.items():
        setattr(graph.versions, name, value)
    graph.versions.bad_consumers.extend(bad)
    return graph


def values(response):
    """A step's fetches by name; TensorFlow gives one that is asked for twice once."""
    return sorted({t.name: tf.make_ndarray(t.tensor).tolist() for t in response.tensor}.items())


def plain(text):
    """A text without what may differ: handles, the task's name, muster's names of ops, TensorFlow's own log."""
    text = text.split("\nRecent warning and error logs:")[0]
    text = re.sub(r"[0-9a-f]{16}", "HANDLE", text).replace("/job:localhost", "/job:worker")
    text = re.sub(r" \(op '\w+'\)", "", text)
    return text.replace(" Possibly, this master has restarted.", "")


class Story:
    """One telling: what a server answered, line by line."""

    def __init__(self, target):
        self.target, self.master, self.told = target, Master(target), []

    def tell(self, label, ask):
        """What ask gives, or how it fails: type and whole text."""
        try:
            got = ask()
        except Failed as error:
            self.told.append((label, error.code, error.in_body, plain(error.message)))
            return None
        self.told.append((label, got if isinstance(got, (bool, int, float, str, list, tuple)) else type(got).__name__))
        return got

    def fails(self, label, ask, *names):
        """The same, but of the text only whether it holds these words: where muster says it in its own."""
        try:
            ask()
        except Failed as error:
            self.told.append((label, error.code, error.in_body, [name for name in names if name in error.message]))
        else:
            self.told.append((label, "didn't fail"))

    def session(self, graph=MODEL, **fields):
        return self.master.CreateSession(graph_def=graph, **fields).session_handle

    def ready_session(self, **fields):
        handle = self.session(**fields)
        self.master.RunStep(session_handle=handle, target=["init"])
        return handle

    def step(self, handle, **fields):
        return values(self.master.RunStep(session_handle=handle, **fields))


class TestCase(side_by_side.TestCase):
    def compare(self, tell):
        """Tells a story to both, and gives what both answered."""
        told = []
        for target in (self.theirs, self.ours):
            story = Story(target)
            self.addCleanup(story.master.close)
            story.master.Reset()
            tell(story)
            told.append(story.told)
        self.assertEqual(told[1], told[0])
        self.assertTrue(told[0])
        return told[0]
