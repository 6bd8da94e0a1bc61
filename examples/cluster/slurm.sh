#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job on a TensorFlow cluster under Slurm: sbatch slurm.sh. The first node is the parameter server, the second one the chief,
# the others are workers. muster and TensorFlow must be on every node, and the job's directory on a file system that all share.
#SBATCH --job-name=digits
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --time=1:00:00

# Each job has ports of its own, since jobs may share a node. The node list (node[1-4]) becomes names.
port=$((20000 + SLURM_JOB_ID % 100 * 100))
nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
workers=$(printf ', "%s:'$port'"' "${nodes[@]:2}")
export TF_CONFIG="{\"cluster\": {\"ps\": [\"${nodes[0]}:$port\"], \"chief\": [\"${nodes[1]}:$port\"], \"worker\": [${workers:2}]}}"

# The chief or a worker: TensorFlow's runtime, and the command that trains on it.
task() {
  [ "$SLURM_PROCID" = 0 ] && task=chief:0 || task=worker:$((SLURM_PROCID - 1))
  muster serve --master=tensorflow --task=$task &
  muster train --task=$task --meta-graph=digits_ps.meta --feed=x:0=@images.npy --feed=y:0=@labels.npy \
    --no-positions --steps=20000 --checkpoint-dir=run --save-secs=60
  code=$?
  kill $!
  wait $!
  exit $code
}
export -f task

muster serve --master=tensorflow --task=ps:0 &
server=$!
srun --relative=1 --nodes=$((${#nodes[@]} - 1)) --kill-on-bad-exit=0 --wait=0 --output=task-%t.log bash -c task
code=$? # the highest of the tasks' exit codes
kill $server
wait $server
exit $code
