#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a Python test in the environment that has moto's server and botocore, $MUSTER_S3 or the one
# that bazel/setup --tests makes; where there is none, reports the test as skipped.
set -eu
python=${MUSTER_S3:-${HOME:-}/.cache/muster/s3}/bin/python3
if [ ! -x "$python" ]; then
  echo "skipped: no S3 server at $python; bazel/setup --tests installs it"
  if [ -n "${XML_OUTPUT_FILE:-}" ]; then
    cat >"$XML_OUTPUT_FILE" <<XML
<testsuites><testsuite name="$1" tests="1" failures="0" errors="0"><testcase name="s3"
classname="$1"><skipped message="no S3 server"/></testcase></testsuite></testsuites>
XML
  fi
  exit 0
fi
export PYTHONDONTWRITEBYTECODE=1
exec "$python" "$@"
