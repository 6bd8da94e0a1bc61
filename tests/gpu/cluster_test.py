# SPDX-License-Identifier: Apache-2.0
"""A cluster by muster's commands with its variables on a GPU: saved in the background, and restored after the parameter server's
death. A GPU and TensorFlow built for it in $MUSTER_TENSORFLOW are needed; MUSTER_GPU_DEVICE=CPU runs the same without."""
import glob
import json
import os
import subprocess
import sys

DEVICE = os.environ.get("MUSTER_GPU_DEVICE", "GPU")
if DEVICE != "CPU":
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
os.environ["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"  # the tasks share it

import tensorflow as tf

sys.path.insert(0, "tests/tensorflow")
import cluster_peer
import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
STEPS = 3000


def missing():
    """Why there is nothing to test; None: there is."""
    if DEVICE == "CPU":
        return None
    if not glob.glob("/dev/nvidia[0-9]*"):
        return "no GPU here (/dev/nvidia0)"
    if not tf.test.is_built_with_cuda():
        return "TensorFlow %s in %s isn't built for GPUs" % (tf.__version__, sys.prefix)
    done = subprocess.run([sys.executable, "-c", "import tensorflow as tf, sys; sys.exit(not tf.config.list_physical_devices('GPU'))"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # it would keep the GPU's memory here
    return None if done.returncode == 0 else "TensorFlow finds no GPU"


def build_model(path):
    """Each element of w, on the parameter server's GPU, grows by 1 in each step."""
    with tf.Graph().as_default():
        with v1.device("/job:ps/task:0/device:CPU:0"):
            step = v1.train.create_global_step()
        with v1.device("/job:ps/task:0/device:%s:0" % DEVICE):
            w = v1.get_variable("w", [1024, 1024], initializer=v1.zeros_initializer(), use_resource=True)
        with tf.control_dependencies([w.assign_add(tf.ones([1024, 1024]), read_value=False)]):
            v1.add_to_collection("train_op", v1.assign_add(step, 1, name="train").op)
        cluster_peer.export_sharded(path, max_to_keep=100)


@peer.unittest.skipIf(missing(), missing())
class Variables(peer.TestCase):
    def setUp(self):
        self.cluster = cluster_peer.Served(workers=1)
        self.addCleanup(self.cluster.end)
        self.cluster.start("ps:0", "chief:0")
        self.meta, self.run = os.path.join(self.folder(), "gpu.meta"), self.folder()
        build_model(self.meta)

    def train(self):
        process = subprocess.Popen(
            [peer.MUSTER, "train", "--json", "--task=chief:0", "--meta-graph=" + self.meta, "--no-positions", "--steps=%d" % STEPS,
             "--save-secs=200ms", "--checkpoint-dir=" + self.run, "--timeout=120"], env=self.cluster.environment("chief:0"),
            stdout=subprocess.PIPE, text=True, preexec_fn=peer.die_with_parent)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, 10)
        self.addCleanup(process.kill)
        return process

    def expect_whole(self):
        """Each checkpoint is of one step."""
        states = v1.train.get_checkpoint_state(self.run).all_model_checkpoint_paths
        for prefix in states:
            step, w = (tf.train.load_variable(prefix, name) for name in ("global_step", "w"))
            self.assertEqual((w.min(), w.max()), (step, step), prefix)
        return len(states)

    def test_are_saved_in_the_background_and_restored(self):
        process, events, is_killed = self.train(), [], False
        for line in process.stdout:
            events.append(json.loads(line))
            if not is_killed and events[-1]["event"] == "saved" and events[-1]["step"] > STEPS // 4:
                self.cluster.kill("ps:0")
                self.cluster.start("ps:0")
                is_killed = True
        self.assertEqual(process.wait(peer.COMMAND_SECONDS), 0)
        self.assertTrue(is_killed)
        self.assertEqual([each["event"] for each in events].count("ready"), 2)
        self.assertGreater(self.expect_whole(), 2)


if __name__ == "__main__":
    peer.main()
