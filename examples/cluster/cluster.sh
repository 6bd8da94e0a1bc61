#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A training job on a TensorFlow cluster by muster's commands, all of it on this machine: a parameter server, a chief and two
# workers. The second worker is a program in C (task.c). Halfway the parameter server is killed, with all variables: the chief
# restores the last checkpoint, the workers join again, and the job goes on to its end.
#
#   bazel run //examples/cluster
#
# The tasks have the ports from MUSTER_CLUSTER_PORT (2222), their gateways those behind.
set -euo pipefail
tensorflow=${MUSTER_TENSORFLOW:-${HOME:-}/.cache/muster/tensorflow}
if [ ! -x "$tensorflow/bin/python3" ]; then
  echo "cluster: no TensorFlow at $tensorflow: bazel/setup --tests installs it" >&2
  exit 3
fi
muster=$PWD/cli/muster task=$PWD/examples/cluster/task data=$PWD/tests/fixtures
port=${MUSTER_CLUSTER_PORT:-2222}
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES=
TF_CONFIG=$(printf '{"cluster": {"ps": ["localhost:%d"], "chief": ["localhost:%d"], "worker": ["localhost:%d", "localhost:%d"]}}' \
  "$port" $((port + 1)) $((port + 2)) $((port + 3)))
export TF_CONFIG

folder=$(mktemp -d "${TEST_TMPDIR:-/tmp}/cluster-XXXXXX")
cd "$folder"
declare -A running
end() {
  { kill -9 "${running[@]}" || true; wait; } 2>/dev/null
  rm -rf "$folder"
}
trap end EXIT

# start NAME WHO COMMAND…: its lines come with the name before them, without TensorFlow's details, which are indented.
start() {
  local name=$1 who=$2
  shift 2
  "$@" > >(sed -u "/^ /d; s/^/$(printf '%-9s' "$who") /") 2>&1 &
  running[$name]=$!
}

serve() {
  start "server of $1" "$1" "$muster" serve --master="tensorflow:$tensorflow" --task="$1" --log-level=error
}

train() {
  start "$1" "$1" "$muster" train --task="$1" --meta-graph="$data/digits_ps.meta" --feed=x:0=@"$data/digits_x.npy" \
    --feed=y:0=@"$data/digits_y.npy" --steps=1500 --checkpoint-dir=run --save-every=100 --step-timeout=20
}

saved() {
  sed -n 's/^model_checkpoint_path: ".*-\([0-9]*\)"$/\1/p' run/checkpoint 2>/dev/null || echo 0
}

for name in ps:0 chief:0 worker:0 worker:1; do
  serve $name
done
train chief:0
train worker:0
TF_CONFIG="${TF_CONFIG%\}}, \"task\": {\"type\": \"worker\", \"index\": 1}}" \
  start worker:1 worker:1 "$task" "$data/digits_ps.meta" "$data" run 1500

until [ "$(saved)" -ge 500 ]; do
  kill -0 "${running[chief:0]}"
  sleep 0.05
done
kill -9 "${running[server of ps:0]}"
wait "${running[server of ps:0]}" 2>/dev/null || true
echo "ps:0      killed (SIGKILL)"
serve ps:0

for name in chief:0 worker:0 worker:1; do
  wait "${running[$name]}"
  unset "running[$name]"
done
printf '\n%s: ' "$(basename "$(sed -n 's/^model_checkpoint_path: "\(.*\)"$/\1/p' run/checkpoint)")"
"$muster" run --task=chief:0 --meta-graph="$data/digits_ps.meta" --feed=x:0=@"$data/digits_x.npy" \
  --feed=y:0=@"$data/digits_y.npy" --fetch=accuracy:0 --timeout=60
echo "Next: docs/cluster.md, and examples/cluster/task.c"
