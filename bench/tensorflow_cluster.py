# SPDX-License-Identifier: Apache-2.0
"""tensorflow_cluster.py model META: exports a model whose variables are on the parameter server.
tensorflow_cluster.py server TASK: TensorFlow's own server of a task of TF_CONFIG's cluster.
tensorflow_cluster.py TASK META DIRECTORY SECONDS: a task that trains on it: MonitoredTrainingSession; the chief saves every
so many seconds. It tells of steps as `muster train --json` does."""

import json
import os
import sys

from tensorflow_quietly import tf
from tensorflow.python.data.ops import dataset_ops
from tensorflow_telling import Teller

STEP_SECONDS = 0.02  # at least: the processors aren't to be busy with steps


class Paused(dataset_ops.UnaryUnchangedStructureDataset):
    """Each element comes after STEP_SECONDS."""

    def __init__(self, source):
        super().__init__(source, tf.raw_ops.SleepDataset(input_dataset=source._variant_tensor, sleep_microseconds=int(STEP_SECONDS * 1e6),
                                                         **source._flat_structure))


def export(meta):
    tf.disable_eager_execution()
    options = tf.data.Options()
    options.autotune.enabled = False  # its thread delays the end of a session, by up to a minute
    paused = Paused(tf.data.Dataset.from_tensors(0.).repeat()).with_options(options)
    pause = tf.data.make_one_shot_iterator(paused).get_next()
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device="")):
        step = tf.train.create_global_step()
        w = tf.get_variable("w", [64, 64])
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.random_normal([32, 64]) + pause, w)))
        tf.add_to_collection("train_op", tf.train.GradientDescentOptimizer(0.001).minimize(loss, step, name="train"))
    saver = tf.train.Saver(sharded=True)
    tf.train.Scaffold(saver=saver).finalize()
    tf.train.export_meta_graph(meta, saver_def=saver.as_saver_def())
    print("exported", flush=True)


def cluster():
    return json.loads(os.environ["TF_CONFIG"])["cluster"]


def serve(job, index):
    server = tf.train.Server(cluster(), job_name=job, task_index=index)
    print("serving " + server.target, flush=True)
    server.join()


def train(job, index, meta, directory, seconds):
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    saver = tf.train.import_meta_graph(meta)
    step = tf.train.get_global_step()
    filters = ["/job:ps", "/job:%s/task:%d" % (job, index)]
    with tf.train.MonitoredTrainingSession(
            "grpc://" + cluster()[job][index], is_chief=job == "chief", scaffold=tf.train.Scaffold(saver=saver), hooks=[Teller(step)],
            checkpoint_dir=directory if job == "chief" else None, save_checkpoint_secs=seconds, save_summaries_steps=None,
            save_summaries_secs=None, log_step_count_steps=None, config=tf.ConfigProto(device_filters=filters)) as session:
        while True:
            session.run("train")


def task(name):
    job, index = name.split(":")
    return job, int(index)


if sys.argv[1] == "model":
    export(sys.argv[2])
elif sys.argv[1] == "server":
    serve(*task(sys.argv[2]))
else:
    train(*task(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4]))
