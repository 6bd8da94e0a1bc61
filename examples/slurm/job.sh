#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job of equal tasks under Slurm: sbatch job.sh. The server runs beside the first task; srun starts the tasks, which need no index. One of
# them is the chief, and another takes over when it is gone. Names in `muster status` are from SLURM_PROCID (task:3).
#SBATCH --ntasks=4
#SBATCH --no-kill
#SBATCH --signal=TERM@120

port=2222
master=grpc://$(hostname):$port
# Within a cluster's own network; with TLS and tokens: docs/serving.md.
muster serve --listen=0.0.0.0:$port --insecure &
server=$!

# A task that dies doesn't end the others (--kill-on-bad-exit=0); each has its log.
srun --kill-on-bad-exit=0 --output=task-%t.log \
  muster train --task=auto --min-tasks=2 --master="$master" --meta-graph=digits.meta \
  --feed=x:0=@images.npy --feed=y:0=@labels.npy --loss=loss:0 --epochs=400 \
  --checkpoint-dir=run --save-secs=60 --grace=100s
code=$?

kill "$server"
wait "$server"
exit "$code"
