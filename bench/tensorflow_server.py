# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's own server: prints HOST:PORT, serves until its input ends."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import tensorflow.compat.v1 as tf

server = tf.train.Server.create_local_server()
print(server.target[len("grpc://"):], flush=True)
sys.stdin.read()
os._exit(0)  # a server of TensorFlow's can't be stopped
