# SPDX-License-Identifier: Apache-2.0
"""beside_tensorflow.py ORDER PLAIN SECURE CA TOKEN: loads TensorFlow and muster, and makes calls of both, in the order of these words."""
import sys

plain, secure, ca, token = sys.argv[2:]


def load_tensorflow():
    import tensorflow.compat.v1


def load_muster():
    import muster
    from gi.repository import Muster, MusterEngine
    Muster.system_clock().now_us(), MusterEngine.Master.new()


def call_tensorflow():
    import tensorflow.compat.v1 as tf
    with tf.Graph().as_default():
        three = tf.constant(3)
        for target in (plain, tf.train.Server({"local": ["127.0.0.1:0"]}, job_name="local", task_index=0).target):
            with tf.Session(target) as session:
                assert session.run(three) == 3


def call_muster():
    from gi.repository import Muster, MusterEngine
    builder = Muster.GraphBuilder.new()
    builder.constant("c", Muster.Tensor(5))
    graph = builder.end()
    for master in (MusterEngine.Master.new(), Muster.Master.new_for_target(plain), Muster.Master.new_with_files(secure, ca, None, None, token)):
        with master.create_session(graph, timeout=60) as session:
            assert session.run("c:0") == 5


for name in sys.argv[1].split():
    globals()[name]()
print("done", flush=True)
