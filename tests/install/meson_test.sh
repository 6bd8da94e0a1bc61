#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Meson's build, for distributions, of the work tree: it is configured without a warning, compiles every source, and generates what is
# generated. With --config=long it is built, installs what Bazel's does, exports the same names, and a program is built against it.
set -u
if ! command -v meson >/dev/null || ! command -v ninja >/dev/null; then
  echo "SKIPPED: meson isn't installed: bazel/setup --tests installs it"
  exit 0
fi
work=$(mktemp -d "$TEST_TMPDIR/XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bazels=$PWD
cd "$(dirname "$(readlink -f "$0")")/../.." || exit 1
export HOME=$work PATH=/usr/bin:/bin LC_ALL=C.UTF-8
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
run() { "$@" >"$work/out" 2>&1 || { fail "$*"; tail -40 "$work/out"; exit 1; }; }

run meson setup --fatal-meson-warnings -Doptimization=0 -Ddebug=false --prefix="$work/muster" --libdir=lib "$work/build" .
meson introspect --targets "$work/build" | grep -o '"[^"]*\.c"' | sed "s|\"$PWD/||; s|\"||g" | sort -u >"$work/compiled"
git ls-files '*.c' | grep -vE '^(tests|bench|examples)/' | sort | comm -13 "$work/compiled" - >"$work/left"
[ -s "$work/left" ] && fail "Meson doesn't compile $(tr '\n' ' ' <"$work/left")"
run ninja -C "$work/build" library_fields.c engine_fields.c command_fields.c muster.h
grep -qF '"tensorflow/tensorflow_master.h"' "$work/build/muster.h" || fail "muster.h lacks a header"

if [ -n "${MUSTER_LONG:-}" ]; then
  run ninja -C "$work/build"
  run meson install -C "$work/build" --no-rebuild
  lib=$work/muster/lib
  (cd "$bazels" && ./install --prefix="$work/bazel") >"$work/out" || fail "Bazel's installation"
  installed() { (cd "$1" && find . ! -type d | sed 's|/muster$|/muster.bash|' | grep -v 'gir\|python' | sort); }
  diff <(installed "$work/bazel") <(installed "$work/muster") || fail "it installs other files than Bazel does"
  exported() { nm -D --defined-only --format=posix "$1" | cut -d' ' -f1 | sort; }
  for library in libmuster libmuster-engine; do
    diff <(exported "$work/bazel/lib/$library.so.0") <(exported "$lib/$library.so.0") || fail "$library exports other names than Bazel's"
  done
  export PKG_CONFIG_PATH=$lib/pkgconfig LD_LIBRARY_PATH=$lib
  # shellcheck disable=SC2046
  run cc -std=c11 -Wall -Wextra -Werror tests/install/user.c -o "$work/user" $(pkg-config --cflags --libs muster-engine)
  saved=$("$work/user" tests/fixtures/linreg.meta "$work/run" 2>&1)
  [ "$saved" = "saved $work/run/model.ckpt-3" ] || fail "the program says: $saved"
  run "$work/muster/bin/muster" train --example --steps=20 --checkpoint-dir="$work/example"
  "$work/muster/bin/muster" serve --master=tensorflow:/lib/x86_64-linux-gnu/libm.so.6 2>&1 | grep -qF "it has no symbol TF_Version" ||
    fail "the command doesn't find the program for TensorFlow"
  for file in share/man/man1/muster.1 lib/systemd/system/muster-serve.service lib/pkgconfig/muster.pc; do
    diff <(sed "s|$work/bazel|$work/muster|g" "$work/bazel/$file") "$work/muster/$file" || fail "$file is another than Bazel's"
  done
fi
exit $((failures > 0))
