#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An elastic job under Slurm: sbatch job.sh. The server runs on the first node, and srun starts the tasks, which need no
# index. One of them is the chief; another takes over when it is gone. `muster status` has their names from SLURM_PROCID
# (task:3). muster must be on the PATH of every node, and the directory of the job on a file system that all of them share.
#SBATCH --job-name=digits
#SBATCH --ntasks=4
#SBATCH --time=1:00:00
# 120 s before the time limit the tasks get SIGTERM: they save and exit with 6, and the job is queued again.
#SBATCH --signal=TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
# A node that fails doesn't end the others. The first one does: Slurm queues the job again, which resumes.
#SBATCH --no-kill

# Each job has a port of its own, since jobs may share a node. Within a cluster's network; with TLS and tokens: docs/serving.md.
port=$((20000 + SLURM_JOB_ID % 10000))
master=grpc://$(hostname):$port
export master

# One task. If it is killed, such as by the OOM killer, it starts again and joins the job.
task() {
  trap 'ending=yes' TERM
  while :; do
    muster train --task=auto --min-tasks=2 --master="$master" --meta-graph=digits.meta \
      --feed=x:0=@images.npy --feed=y:0=@labels.npy --loss=loss:0 --epochs=400 \
      --checkpoint-dir=run --save-secs=60 --grace=100s
    code=$?
    [ $code -gt 128 ] && [ -z "$ending" ] || exit $code
    sleep 1
  done
}
export -f task

# scancel, and preemption by Slurm, signal all processes of the job: the tasks save while the server waits for them. Slurm
# kills what is left after KillWait (30 s unless the cluster sets it), however long --grace is.
trap 'cancelled=yes' TERM

muster serve --listen=0.0.0.0:$port --insecure &
server=$!
# --kill-on-bad-exit=0 and --wait=0: a task that ends doesn't end the others, whatever the cluster's defaults are.
srun --no-kill --kill-on-bad-exit=0 --wait=0 --open-mode=append --output=task-%t.log bash -c task
code=$? # the highest of the tasks' exit codes

# After a node has failed, the others may have ended the job well: wait exits with 5 if it is over.
if [ $code -gt 128 ] && [ -z "$cancelled" ]; then
  muster wait --model=digits --master="$master" --timeout=1
  [ $? = 5 ] && code=0
fi
kill $server 2>/dev/null
wait $server
# Preempted by the time limit. Any other code is the result: 0 trained, 3 and 4 failed.
[ $code = 6 ] && [ -z "$cancelled" ] && scontrol requeue "$SLURM_JOB_ID"
exit $code
