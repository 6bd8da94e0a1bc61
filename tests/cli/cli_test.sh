#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command as a person and as a program use it: what it prints, and how it exits. Every wait is bounded, and the server
# is ended by its id.
set -u
export LC_ALL=C.UTF-8
muster=cli/muster
fixtures=tests/fixtures
work=$(mktemp -d)
failures=0
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

# expect CODE WORDS COMMAND...: the exit code, and words that stdout and stderr together must hold
expect () {
  local code=$1 words=$2 got
  shift 2
  timeout 60 "$@" >"$work/out" 2>&1 </dev/null
  got=$?
  if [ "$got" != "$code" ] || ! grep -qF -- "$words" "$work/out"; then
    echo "FAILED: $* -> exit $got (wanted $code), wanted '$words' in:"
    sed 's/^/  /' "$work/out"
    failures=$((failures + 1))
  fi
}

expect 0 "Usage: muster COMMAND" $muster --help
expect 3 "Usage: muster COMMAND" $muster
expect 3 "unknown command 'prepar'" $muster prepar
expect 3 "Unknown option --coordinator" $muster save --coordinator=grpc://localhost:1 --meta-graph=$fixtures/digits.meta # it claims nothing
for command in serve prepare wait train status run save finish certs checkpoint; do
  expect 0 "muster $command" $muster $command --help
done

# Output that can't be written is a failure; a reader that has read enough is none.
for words in --version --help "help train" "checkpoint --help" "inspect $fixtures/digits.meta --json"; do
  expect 4 "muster: couldn't write the output: No space left on device" bash -c '"$0" "$@" >/dev/full' $muster $words
  expect 4 "muster: couldn't write the output: Bad file descriptor" bash -c '"$0" "$@" >&-' $muster $words
  said=$(set -o pipefail; { $muster $words | true; } 2>&1) && [ -z "$said" ] ||
    { echo "FAILED: $words minded a reader that was gone: $said"; failures=$((failures + 1)); }
done
expect 3 "unknown command" bash -c '"$0" "$@" >/dev/full' $muster prepar
expect 0 "muster: couldn't write the output: No space left on device" bash -c '"$0" "$@" >/dev/full' \
  $muster train --meta-graph=$fixtures/digits.meta --master=local --feed=x:0=@$fixtures/digits_x.npy \
  --feed=y:0=@$fixtures/digits_y.npy --steps=5 --checkpoint-dir="$work/told"

# usage
expect 3 "needs --meta-graph=FILE" $muster prepare --master=local
expect 3 "needs --master=TARGET" $muster wait --meta-graph=$fixtures/digits.meta
expect 3 "invalid duration 'soon'" $muster prepare --meta-graph=$fixtures/digits.meta --master=local --timeout=soon
expect 3 "--colour" $muster run --colour
expect 3 "invalid --cluster 'ps:0' (use TASK=HOST:PORT)" $muster prepare --meta-graph=$fixtures/digits.meta --master=local --cluster=ps:0
expect 3 "--cluster" $muster prepare --meta-graph=$fixtures/digits.meta --master=local --cluster=ps:0=nowhere
expect 3 "one TARGET" $muster status
expect 3 "invalid master 'nonsense://x'" $muster status nonsense://x
expect 3 "finish: --step=-1 is out of range (use 0 or more)" $muster finish --model=digits --master=grpc://127.0.0.1:1 --step=-1
expect 3 "needs --model=NAME" $muster finish --master=grpc://127.0.0.1:1
expect 3 "--epoch must be 1" $muster prepare --meta-graph=$fixtures/digits.meta --master=local --epoch=-1
expect 3 "fetch an op that reads it, such as 'global_step/Read/ReadVariableOp:0'" $muster run --meta-graph=$fixtures/digits.meta --master=local --fetch=global_step:0
expect 3 "needs at least one --fetch" $muster run --meta-graph=$fixtures/digits.meta --master=local

# bad input
head -c 2000 $fixtures/digits.meta >"$work/cut.meta"
head -c 5000 /dev/urandom >"$work/random.meta"
expect 3 "cut.meta" $muster prepare --meta-graph="$work/cut.meta" --master=local
expect 3 "random.meta" $muster prepare --meta-graph="$work/random.meta" --master=local
expect 3 "nested.meta" $muster prepare --meta-graph=$fixtures/nested.meta --master=local
expect 3 "nowhere.meta" $muster prepare --meta-graph=nowhere.meta --master=local
expect 3 "local" $muster prepare --meta-graph=$fixtures/digits.meta --master=nonsense://x
expect 2 "127.0.0.1:1" $muster prepare --meta-graph=$fixtures/digits.meta --master=grpc://127.0.0.1:1 --timeout=5
expect 2 "127.0.0.1:1" $muster wait --meta-graph=$fixtures/digits.meta --master=grpc://127.0.0.1:1 --timeout=1

expect 2 "ps:0 does not answer" $muster wait --meta-graph=$fixtures/digits.meta --master=grpc://127.0.0.1:1 --timeout=1 --cluster=ps:0=127.0.0.1:1
expect 2 "no process listens" $muster status grpc://127.0.0.1:1

# a master in the process
expect 0 "initialised" $muster prepare --meta-graph=$fixtures/digits.meta --master=local
expect 0 "loss:0 float[] =" $muster run --meta-graph=$fixtures/linreg.meta --master=local --feed=x:0=[1,2] --feed=y:0=[2,4] --fetch=loss:0
expect 3 "no tensor 'z'" $muster run --meta-graph=$fixtures/linreg.meta --master=local --feed=z=1 --fetch=loss:0
expect 3 "no_such" $muster run --meta-graph=$fixtures/linreg.meta --master=local --fetch=no_such:0
expect 3 "x" $muster run --meta-graph=$fixtures/digits.meta --master=local --feed=x:0=@$fixtures/digits_y.npy --fetch=logits:0

# a master for others
mkfifo "$work/serving"
$muster serve --listen=127.0.0.1:0 --health-listen=127.0.0.1:0 >"$work/serving" &
server=$!
{ read -r -t 20 word target; read -r -t 20 health_word health; } <"$work/serving"
[ "$word" = serving ] || { echo "FAILED: serve said '$word'"; exit 1; }
[[ "$health_word $health" =~ ^health\ grpc://127.0.0.1:[1-9][0-9]*$ ]] ||
  { echo "FAILED: serve said '$health_word $health' of its health"; failures=$((failures + 1)); }
port=${target##*:}
expect 3 "127.0.0.1:$port" $muster serve --listen=127.0.0.1:"$port"
expect 3 "127.0.0.1:$port" $muster serve --listen=127.0.0.1:0 --health-listen=127.0.0.1:"$port"
expect 2 "offers no MasterService" $muster status "$health"
expect 0 "up  no chief has ever registered" $muster status "$target"
expect 3 "unknown method" $muster prepare --meta-graph=$fixtures/digits.meta --master="$health" --timeout=10

model="--meta-graph=$fixtures/digits.meta --master=$target"
expect 1 "no chief has ever registered at $target" $muster wait $model --timeout=10
grep -qF "try: start the chief with" "$work/out" || { echo "FAILED: wait didn't say what to try"; failures=$((failures + 1)); }
grep -qF "15 variables are not initialised: " "$work/out" || { echo "FAILED: wait didn't say what is missing"; cat "$work/out"; failures=$((failures + 1)); }
expect 4 "uninitialized" $muster save $model --checkpoint-dir="$work/run"
expect 0 '"outcome":"ready"' $muster prepare $model --json
expect 0 "ready after" $muster wait $model --timeout=10

# two chiefs, and a job that is over
expect 4 "is already initialised (by " $muster prepare $model
grep -qF "\`muster wait\` joins its model" "$work/out" || { echo "FAILED: no way out for the second chief"; failures=$((failures + 1)); }
expect 0 "initialised 15 variables" $muster prepare $model --overwrite
expect 0 "finished digits at step 0" $muster finish $model
expect 5 "digits is finished: its chief ended the job at step 0, " $muster wait $model --timeout=10
expect 5 "digits is finished: its chief ended the job at step 0" $muster prepare $model
grep -qF "to train further, use \`muster train --overwrite\`" "$work/out" || { echo "FAILED: no way out of a finished job"; failures=$((failures + 1)); }
expect 0 "initialised 15 variables" $muster prepare $model --overwrite
for _ in {1..300}; do # the server hears a moment later that it has ended
  $muster status "$target" | grep -q "prepared the model and exited" && break
  sleep 0.1
done
expect 0 "prepared the model and exited" $muster status "$target"
expect 0 '"final_step":7' $muster finish --model=other --master="$target" --step=7 --json
expect 0 '"pushed":true' $muster wait $model --timeout=10 --json
expect 0 "loss:0" $muster run $model --feed=x:0=@$fixtures/digits_x.npy --feed=y:0=@$fixtures/digits_y.npy --target=train --fetch=loss:0 --steps=5
expect 0 "model.ckpt-5" $muster save $model --checkpoint-dir="$work/run"
expect 0 "$work/run/model.ckpt-5" $muster checkpoint latest "$work/run"
expect 0 "latest, good" $muster checkpoint list "$work/run"
expect 0 "latest, intact" $muster checkpoint list "$work/run" --verify
expect 0 "intact  15 tensors" $muster checkpoint verify "$work/run"
expect 0 "15 tensors" $muster checkpoint show "$work/run"
expect 0 "global_step  int64 []" $muster checkpoint show "$work/run" global_step
expect 0 "hidden" $muster checkpoint show "$work/run/model.ckpt-5"
expect 0 '"dtype":"float"' $muster checkpoint show "$work/run/model.ckpt-5" --json
expect 0 "ready: digits at step 5" $muster prepare $model --checkpoint-dir="$work/run"
expect 0 "ready: digits at step 5" $muster prepare $model --checkpoint="$work/run/model.ckpt-5"

expect 0 "loss:0" $muster run $model --feed=x:0=@$fixtures/digits_x.npy --feed=y:0=@$fixtures/digits_y.npy --target=train --fetch=loss:0
expect 0 "model.ckpt-6" $muster save $model --checkpoint-dir="$work/run"
expect 3 "invalid --when-full 'cry' (use fail, skip or pause)" $muster save $model --checkpoint-dir="$work/run" --when-full=cry
expect 3 "--keep=-2 is out of range (use -1 or more)" $muster save $model --checkpoint-dir="$work/run" --keep=-2
for bucket in hdfs://bucket/run gs://bucket/run; do
  expect 3 "no store supports" $muster save $model --checkpoint-dir=$bucket
  expect 3 "no store supports" $muster prepare $model --checkpoint-dir=$bucket
  expect 3 "no store supports" $muster prepare $model --checkpoint=$bucket/model.ckpt-1
  expect 3 "no store supports" $muster checkpoint list $bucket
  expect 3 "no store supports" $muster checkpoint latest $bucket
  expect 3 "no store supports" $muster checkpoint show $bucket/model.ckpt-1
  expect 3 "no store supports" $muster checkpoint verify $bucket
  expect 3 "no store supports" $muster checkpoint diff $bucket/model.ckpt-1 "$work/run"
  expect 3 "no store supports" $muster checkpoint prune $bucket --keep=1
done
expect 0 '"skipped":false' $muster save $model --checkpoint-dir="$work/kept" --json --when-full=skip --keep=-1
expect 0 "durable, " $muster save $model --checkpoint-dir="$work/kept" --when-full=pause

# A meta graph was changed after the save: verify reports it, and it is refused.
cp -r "$work/run" "$work/changed"
expect 0 "intact" $muster checkpoint verify "$work/changed/model.ckpt-6"
expect 0 "ready: model.ckpt-6" $muster prepare --meta-graph="$work/changed/model.ckpt-6.meta" --master=local
printf '\x7f' | dd of="$work/changed/model.ckpt-6.meta" bs=1 seek=100 conv=notrunc status=none
expect 1 "The meta graph 'model.ckpt-6.meta' was changed after the save" $muster checkpoint verify "$work/changed"
expect 3 "was changed after the save" $muster prepare --meta-graph="$work/changed/model.ckpt-6.meta" --master=local
expect 1 "~ global_step           int64 []  5 → 6" $muster checkpoint diff "$work/run/model.ckpt-5" "$work/run"
cp -r "$work/run" "$work/pruned"
expect 0 "removed 1 of 2 checkpoints" $muster checkpoint prune "$work/pruned" --keep=1
expect 0 "model.ckpt-6" $muster checkpoint latest "$work/pruned"
expect 0 "ready: digits at step 6" $muster prepare $model --checkpoint-dir="$work/pruned"

# the newest is damaged: the one before is taken, aloud
cp -r "$work/run" "$work/newest"
truncate -s -20 "$work/newest/model.ckpt-6.data-00000-of-00001"
expect 0 "set aside as $work/newest/model.ckpt-6.bad" $muster prepare $model --checkpoint-dir="$work/newest"
grep -qF "ready: digits at step 5" "$work/out" || { echo "FAILED: not the one before"; cat "$work/out"; failures=$((failures + 1)); }
expect 0 "set aside: The tensor" $muster checkpoint list "$work/newest"

# a job that never was saved there
expect 3 "no checkpoint in '" $muster checkpoint latest "$work"
expect 3 "" $muster checkpoint list "$work/nowhere"
expect 3 "" $muster checkpoint show "$work/run/model.ckpt-7"

# damage: nothing is assigned, and the state file's is said aloud
rm "$work/run/model.ckpt-6".*
printf 'model_checkpoint_path: "model.ckpt-5"\n' >"$work/run/checkpoint"
cp -r "$work/run" "$work/bad"
truncate -s -20 "$work/bad/model.ckpt-5.data-00000-of-00001"
expect 3 "model.ckpt-5" $muster prepare $model --checkpoint="$work/bad/model.ckpt-5"
expect 0 "damaged" $muster checkpoint list "$work/bad"
expect 3 "use --allow-missing" $muster prepare --meta-graph=$fixtures/linreg.meta --master=local --checkpoint="$work/run/model.ckpt-5"
printf 'nonsense' >"$work/bad/checkpoint"
expect 3 "checkpoint" $muster prepare $model --checkpoint-dir="$work/bad"

kill -TERM "$server"
wait "$server"
[ $? = 0 ] || { echo "FAILED: serve didn't end well at SIGTERM"; failures=$((failures + 1)); }
server=
[ "$failures" = 0 ] && echo "all as expected"
exit $((failures > 0))
