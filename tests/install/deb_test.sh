#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Debian package: installed, used and removed, in a folder of the test's own, with the machine's list of what is
# installed to check what the package needs. The machine itself isn't touched. dpkg wants to be root: who isn't becomes it in a
# user namespace.
set -u
if [ "$(id -u)" != 0 ]; then
  unshare -r true 2>/dev/null || { echo "SKIPPED: needs root, or a kernel that lets users have namespaces"; exit 0; }
  exec unshare -r "$0" "$@"
fi
export PATH=$PATH:/usr/sbin:/sbin
work=$(mktemp -d "$TEST_TMPDIR/XXXXXX") || exit 1
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
root=$work/root
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

mkdir -p "$root" "$work/admin/info" "$work/admin/updates" "$work/admin/triggers"
cp /var/lib/dpkg/status "$work/admin/status" || exit 1
package() { dpkg --instdir="$root" --admindir="$work/admin" --log="$work/log" --force-script-chrootless "$@" >"$work/out" 2>&1; }

package --install muster.deb || { cat "$work/out"; echo "FAILED: it can't be installed"; exit 1; }
dpkg-query --admindir="$work/admin" -W -f='${Status} ${Version}' muster | grep -qx "install ok installed $(cut -d'"' -f2 <(grep VERSION base/version.h))" ||
  fail "it isn't installed, or as another version"
dpkg-deb -f muster.deb Depends | grep -q libgrpc || fail "it doesn't need libgrpc: $(dpkg-deb -f muster.deb Depends)"
dpkg-deb -f muster.deb Depends | grep -q muster && fail "it needs itself"
dpkg-deb -c muster.deb | grep -v ' root/root ' && fail "files aren't root's"
(cd "$root" && dpkg-deb -I "$OLDPWD/muster.deb" md5sums | md5sum -c --quiet) || fail "files aren't what they were"

# The command, and a small served job.
muster=$root/usr/bin/muster
"$muster" --version >/dev/null || fail "the command doesn't run"
mkfifo "$work/said"
"$muster" serve --listen=localhost:0 >"$work/said" &
server=$!
read -r _ master <"$work/said"
job=(--meta-graph=tests/fixtures/linreg.meta --master="$master" --timeout=60)
"$muster" prepare "${job[@]}" --checkpoint-dir="$work/run" >"$work/out" 2>&1 || { fail "no model was prepared"; cat "$work/out"; }
"$muster" wait "${job[@]}" >"$work/out" 2>&1 || { fail "no model was waited for"; cat "$work/out"; }
kill "$server"
wait "$server" || fail "the server didn't end well"
server=

# The program for TensorFlow's runtime.
"$muster" serve --master=tensorflow:"$(cc -print-file-name=libm.so.6)" >"$work/out" 2>&1
grep -qF "it has no symbol TF_Version" "$work/out" || { fail "the command doesn't find the program for TensorFlow"; cat "$work/out"; }

# A C program, built against it.
lib=$(dirname "$(find "$root/usr/lib" -name libmuster.so)")
mkdir "$work/pc"
for file in "$lib"/pkgconfig/*.pc; do sed "s|=/usr|=$root/usr|" "$file" >"$work/pc/${file##*/}"; done
# shellcheck disable=SC2046
cc -std=c11 tests/install/user.c -o "$work/user" $(PKG_CONFIG_PATH=$work/pc pkg-config --cflags --libs muster-engine) ||
  fail "a program doesn't build against it"
export LD_LIBRARY_PATH=$lib GI_TYPELIB_PATH=$lib/girepository-1.0
"$work/user" tests/fixtures/linreg.meta "$work/user-run" | grep -qx "saved $work/user-run/model.ckpt-3" || fail "a program doesn't run"

# Python.
/usr/bin/python3 examples/python/train.py --data=tests/fixtures --steps=20 --checkpoint-dir="$work/python" >"$work/out" 2>&1
grep -qF "saved $work/python/model.ckpt-20" "$work/out" || { fail "Python's example doesn't run"; cat "$work/out"; }

# Gone again, and nothing stays.
package --purge muster || { fail "it can't be removed"; cat "$work/out"; }
[ -z "$(find "$root" -type f -o -type l)" ] || { fail "files stay behind"; find "$root"; }

[ "$failures" = 0 ] && echo "installed, used and removed"
exit $((failures > 0))
