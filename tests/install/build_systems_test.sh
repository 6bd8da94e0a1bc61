#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The examples for Meson and CMake build outside of the tree, against what is installed, and train, save and resume.
set -u
work=$(mktemp -d "$TEST_TMPDIR/XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

./install --prefix="$work/muster" >"$work/out" || { cat "$work/out"; exit 1; }
export PKG_CONFIG_PATH=$work/muster/lib/pkgconfig LD_LIBRARY_PATH=$work/muster/lib
mkdir "$work/home" && export HOME=$work/home
cp -rL examples/meson examples/cmake "$work/" && rm -f "$work"/*/BUILD || exit 1

# try NAME TOOL: what was built, twice
try() {
  for step in 3 3; do
    saved=$("$work/$1/build/train" "$work/muster/share/muster/examples/digits.meta" "$work/$1/run" 2>&1)
    [ "$saved" = "trained 3 steps, saved $work/$1/run/model.ckpt-$step" ] || fail "$1's program says: $saved"
  done
  "$work/$1/build/train" "$work/nothing.meta" "$work/run" >"$work/out" 2>&1
  [ $? = 4 ] || fail "$1's program does without a model: $(cat "$work/out")"
}

skipped=''
if command -v meson >/dev/null && command -v ninja >/dev/null; then
  (cd "$work/meson" && meson setup --fatal-meson-warnings -Dwerror=true build && meson compile -C build) >"$work/out" 2>&1 &&
    try meson || { fail "the example for Meson doesn't build"; tail -40 "$work/out"; }
else
  skipped="$skipped meson"
fi
if command -v cmake >/dev/null; then
  (cd "$work/cmake" && cmake -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" -B build && cmake --build build) >"$work/out" 2>&1 &&
    try cmake || { fail "the example for CMake doesn't build"; tail -40 "$work/out"; }
else
  skipped="$skipped cmake"
fi
[ -z "$skipped" ] || echo "SKIPPED:$skipped isn't installed: bazel/setup --tests installs it"
exit $((failures > 0))
