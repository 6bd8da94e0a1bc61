# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's own server: prints HOST:PORT, serves until its input ends."""

import os
import sys

from tensorflow_quietly import tf

server = tf.train.Server.create_local_server()
print(server.target[len("grpc://"):], flush=True)
sys.stdin.read()
os._exit(0)  # a server of TensorFlow's can't be stopped
