#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The demo ends well, dies once in between and says what a person came to see.
set -u
out=$(timeout 100 examples/digits/demo </dev/null 2>&1)
code=$?
echo "$out"
[ "$code" = 0 ] || { echo "FAILED: exit $code"; exit 1; }
for words in "serving grpc://" "worker 1  waiting: no chief has ever registered" \
  "worker 2  waiting: no chief has ever registered" "no checkpoint: initialised" "SIGKILL" "restored model.ckpt-" \
  "steps before the kill" "test accuracy" "w waiting"; do
  grep -qF -- "$words" <<<"$out" || { echo "FAILED: no '$words'"; exit 1; }
done
