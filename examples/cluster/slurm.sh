#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job on a TensorFlow cluster under Slurm: sbatch slurm.sh. The first node is the parameter server, the second one the chief,
# the others are workers. muster and TensorFlow must be on every node, and the job's directory on a file system that all share.
#SBATCH --job-name=digits
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --time=1:00:00
# No other job has the same ports on these nodes.
#SBATCH --exclusive
# 120 s before the time limit the tasks get SIGTERM: the chief saves, and the job exits with 6.
#SBATCH --signal=TERM@120

# The node list (node[1-4]) becomes names.
port=2222
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
n=$((${#nodes[@]} - 1))
[ $n -ge 2 ] || { echo "$0: needs 3 nodes: parameter server, chief, worker; set --nodes" >&2; exit 3; }
workers=$(printf ', "%s:'$port'"' "${nodes[@]:2}")
export TF_CONFIG="{\"cluster\": {\"ps\": [\"${nodes[0]}:$port\"], \"chief\": [\"${nodes[1]}:$port\"], \"worker\": [${workers:2}]}}"

# Runs a command beside TensorFlow's runtime for the task, and exits with the command's code. If the runtime's server ends
# first, the command is killed.
beside() {
  trap ending=yes TERM # the command saves; its server waits for that
  muster serve --master=tensorflow --task=$task &
  server=$!
  "$@" &
  command=$!
  while kill -0 $command 2>/dev/null; do
    [ "$ending" ] || kill -0 $server 2>/dev/null || { kill -KILL $command; exit 4; }
    sleep 1
  done
  wait $command
  code=$?
  kill $server 2>/dev/null
  wait $server
  exit $code
}

# The chief or a worker.
task() {
  [ "$SLURM_PROCID" = 0 ] && task=chief:0 || task=worker:$((SLURM_PROCID - 1))
  beside muster train --task=$task --meta-graph=digits_ps.meta --feed=x:0=@images.npy --feed=y:0=@labels.npy \
    --steps=20000 --checkpoint-dir=run --save-secs=60 --grace=100s
}
export -f beside task

# One task on each of the other nodes, whatever sbatch has set for all. The exit code is the highest of theirs.
task=ps:0
beside srun --relative=1 --nodes=$n --ntasks=$n --ntasks-per-node=1 --kill-on-bad-exit=0 --wait=0 --output=task-%t.log bash -c task
