# SPDX-License-Identifier: Apache-2.0
"""tensorflow_saver.py META_GRAPH: TensorFlow's Saver on a session in this process.

Prints "ready". Then each line of its input is a verb with its argument, and answered by the seconds it
took: "save PREFIX" saves, and syncs what TensorFlow doesn't; "restore PREFIX" restores.
"""

import os
import sys
import time

from tensorflow_quietly import tf


def sync(path):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


def save(saver, session, prefix):
    saver.save(session, prefix, write_meta_graph=False)
    directory, name = os.path.split(prefix)
    for file in os.listdir(directory):
        if file.startswith(name + ".") or file == "checkpoint":
            sync(os.path.join(directory, file))
    sync(directory)


def restore(saver, session, prefix):
    saver.restore(session, prefix)


def main(path):
    tf.disable_eager_execution()
    meta_graph = tf.MetaGraphDef()
    with open(path, "rb") as file:
        meta_graph.ParseFromString(file.read())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(meta_graph.graph_def, name="")
    saver = tf.train.Saver(saver_def=meta_graph.saver_def)
    verbs = {"save": save, "restore": restore}
    # Rewriting a graph of 100,000 variables takes it minutes, and changes nothing here.
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    with tf.Session(graph=graph, config=config) as session:
        session.run("init")
        print("ready", flush=True)
        for line in sys.stdin:
            verb, argument = line.split()
            started = time.perf_counter()
            verbs[verb](saver, session, argument)
            print(time.perf_counter() - started, flush=True)


main(*sys.argv[1:])
