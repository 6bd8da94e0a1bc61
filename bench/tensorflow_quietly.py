# SPDX-License-Identifier: Apache-2.0
"""TensorFlow without its greetings on stderr, on the CPU."""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

_stderr = os.dup(2)
_nowhere = os.open(os.devnull, os.O_WRONLY)
os.dup2(_nowhere, 2)
import tensorflow.compat.v1 as tf

os.dup2(_stderr, 2)
os.close(_stderr)
os.close(_nowhere)
