#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a Python test in the environment that has TensorFlow, $MUSTER_TENSORFLOW or the one that
# bazel/setup --tests makes; where there is none, reports the test as skipped.
set -eu
python=${MUSTER_TENSORFLOW:-${HOME:-}/.cache/muster/tensorflow}/bin/python3
if [ ! -x "$python" ]; then
  echo "skipped: no TensorFlow at $python; bazel/setup --tests installs it"
  if [ -n "${XML_OUTPUT_FILE:-}" ]; then
    cat >"$XML_OUTPUT_FILE" <<XML
<testsuites><testsuite name="$1" tests="1" failures="0" errors="0"><testcase name="tensorflow"
classname="$1"><skipped message="no TensorFlow"/></testcase></testsuite></testsuites>
XML
  fi
  exit 0
fi
export CUDA_VISIBLE_DEVICES='' TF_CPP_MIN_LOG_LEVEL=2 TF_ENABLE_ONEDNN_OPTS=0 PYTHONDONTWRITEBYTECODE=1
exec "$python" "$@"
