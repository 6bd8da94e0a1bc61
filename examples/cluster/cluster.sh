#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs cluster.py in the environment that has TensorFlow: $MUSTER_TENSORFLOW, or the one that
# bazel/setup --tests makes.
set -eu
python=${MUSTER_TENSORFLOW:-${HOME:-}/.cache/muster/tensorflow}/bin/python3
if [ ! -x "$python" ]; then
  echo "cluster: no TensorFlow at $python: bazel/setup --tests installs it" >&2
  exit 3
fi
export CUDA_VISIBLE_DEVICES='' TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 PYTHONDONTWRITEBYTECODE=1
exec "$python" examples/cluster/cluster.py "$@"
