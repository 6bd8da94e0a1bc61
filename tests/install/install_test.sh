#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bazel run //:install, into a folder of the test's own: what it holds, and that others can build against it with what
# pkg-config says and nothing else.
set -u
work=$(mktemp -d "$TEST_TMPDIR/XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
to=$work/muster
lib=$to/lib
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# A folder that isn't the last one, as a packager does it.
./install --prefix="$to" --destdir="$work/stage" >"$work/out" || { cat "$work/out"; exit 1; }
mv "$work/stage$to" "$to" || exit 1

# Only muster's own names are seen from outside; of the engine only the master that it is.
exported() { nm -D --defined-only "$1" | sed -n 's/^[0-9a-f]* [A-Z] \([^@]*\).*/\1/p' | grep -v '^MUSTER_.*_\?0$'; }
exported "$lib/libmuster.so" | grep -v '^muster_' && fail "libmuster exports foreign names"
exported "$lib/libmuster.so" | grep -qx muster_session_manager_new || fail "libmuster has no session manager"
exported "$lib/libmuster-engine.so" | grep -v '^muster_local_master_' && fail "libmuster-engine exports its inside"
exported "$lib/libmuster-engine.so" | grep -qx muster_local_master_offer || fail "libmuster-engine has no master"
readelf -d "$lib/libmuster.so" | grep -qF '[libmuster.so.0]' || fail "libmuster has another soname"
readelf -d "$lib/libmuster-engine.so" | grep -F NEEDED | grep -qF '[libmuster.so.0]' || fail "the engine doesn't need libmuster"
readelf -d "$lib"/*.so | grep -E 'R(UN)?PATH' && fail "a library looks for others in a folder of its own"

# Each public header stands by itself, on what pkg-config says.
export PKG_CONFIG_PATH=$lib/pkgconfig
flags=$(pkg-config --cflags muster) || fail "pkg-config doesn't know muster"
libs=$(pkg-config --libs muster-engine) || fail "pkg-config doesn't know muster-engine"
export flags to
# shellcheck disable=SC2016
(cd "$to/include/muster-0" && find . -name '*.h' -print0) | xargs -0 -P2 -n8 bash -c '
  status=0
  for header; do
    echo "#include \"${header#./}\"" | cc -std=c11 -Wall -Wextra -Werror $flags -fsyntax-only -x c - || { echo "in $header"; status=1; }
  done
  exit $status' headers || fail "a public header doesn't compile by itself"
# shellcheck disable=SC2086
echo '#include <muster.h>' | g++ -Wall -Wextra -Werror $flags -fsyntax-only -x c++ - || fail "C++ can't read muster.h"

# A program of somebody else's.
# shellcheck disable=SC2086
cc -std=c11 -Wall -Wextra -Werror $flags tests/install/user.c -o "$work/user" $libs || fail "a program doesn't build"
export LD_LIBRARY_PATH=$lib
saved=$("$work/user" tests/fixtures/linreg.meta "$work/run" 2>&1)
[ "$saved" = "saved $work/run/model.ckpt-3" ] || fail "the program says: $saved"

# The command, and one version everywhere.
version=$("$to/bin/muster" --version | tr -dc '0-9.')
for name in muster muster-engine; do
  [ "$(pkg-config --modversion $name)" = "$version" ] || fail "$name.pc has another version than $version"
done
[ -e "$lib/libmuster.so.$version" ] || fail "libmuster has another version than $version"
"$to/bin/muster" checkpoint latest "$work/run" | grep -qx "$work/run/model.ckpt-3" || fail "the command doesn't find what was saved"

# The example that README.md begins with.
examples=$to/share/muster/examples
"$to/bin/muster" train --master=local --meta-graph="$examples/digits.meta" --feed=x:0=@"$examples/images.npy" --feed=y:0=@"$examples/labels.npy" \
  --steps=20 --checkpoint-dir="$work/example" >"$work/out" 2>&1 || { fail "the example doesn't train"; cat "$work/out"; }
"$to/bin/muster" checkpoint latest "$work/example" | grep -qx "$work/example/model.ckpt-20" || fail "the example left no checkpoint"
grep -qF "CC BY 4.0" "$examples/README" || fail "the example's licence isn't named"

# TensorFlow's runtime has a program of its own, which the command finds, and the library for anybody's program.
libm=$(ldconfig -p 2>/dev/null | sed -n 's/.*libm\.so\.6.* => //p' | head -n 1)
libm=${libm:-$(cc -print-file-name=libm.so.6)}
cat >"$work/tensorflow.c" <<C
#include <muster.h>
int main (int n, char **words)
{
  GError *error = NULL;
  muster_tensorflow_master_offer ();
  MusterMaster *master = muster_master_new_for_target (words[1], &error);
  GPtrArray *devices = master ? muster_master_list_devices (master, MUSTER_WAIT_FOREVER, NULL, &error) : NULL;
  g_print ("%s\n", error ? error->message : "");
  return n != 2 || devices;
}
C
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror $flags "$work/tensorflow.c" -o "$work/tensorflow" $(pkg-config --libs muster) || fail "a program for TensorFlow doesn't build"
for program in "$to/bin/muster serve --master=tensorflow:$libm" "$work/tensorflow tensorflow:$libm"; do
  $program >"$work/out" 2>&1
  grep -qF "it has no symbol TF_Version" "$work/out" || { fail "this doesn't run TensorFlow's program: $program"; cat "$work/out"; }
done

# What isn't understood is refused, before anything is written.
./install --perfix=/nowhere >"$work/out" 2>&1 && fail "a wrong option was taken"
grep -qF -- "--perfix" "$work/out" || fail "a wrong option isn't named"

[ "$failures" = 0 ] && echo "installed, built against and used"
exit $((failures > 0))
