# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's SessionManager over a graph from a file."""

from tensorflow_quietly import tf

tf.disable_eager_execution()


def read(path):
    definition = tf.GraphDef()
    with open(path, "rb") as file:
        definition.ParseFromString(file.read())
    return definition


def manager(definition, ready_op):
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    name = ready_op if ":" in ready_op else ready_op + ":0"
    ready = graph.get_tensor_by_name(name)
    return graph, tf.train.SessionManager(ready_op=ready, graph=graph)
