#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Debian packages: installed, used, upgraded and removed, in a folder of the test's own, with the machine's list of what is
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

names=(gir1.2-muster-0 libmuster-dev libmuster0 muster muster-doc python3-muster)
package --install deb/*.deb || { cat "$work/out"; echo "FAILED: they can't be installed"; exit 1; }
version=$(cut -d'"' -f2 <(grep 'define MUSTER_VERSION ' base/version.h))
for name in "${names[@]}"; do
  said=$(dpkg-query --admindir="$work/admin" -W -f='${Status} ${Version}' "$name")
  [[ $said == "install ok installed $version-"* ]] || fail "$name isn't installed, or as another version: $said"
  dpkg-deb -c "deb/$name.deb" | grep -v ' root/root ' && fail "files of $name aren't root's"
  (cd "$root" && dpkg-deb -I "$OLDPWD/deb/$name.deb" md5sums | md5sum -c --quiet) || fail "files of $name aren't what they were"
done
needs() { # needs PACKAGE PATTERN
  dpkg-deb -f "deb/$1.deb" Depends | grep -qE "$2" || fail "$1 doesn't need $2: $(dpkg-deb -f "deb/$1.deb" Depends)"
}
needs muster libgrpc
needs libmuster0 libgrpc
needs libmuster-dev 'libmuster0 \(= '
needs libmuster-dev 'gir1.2-muster-0 \(= '
needs gir1.2-muster-0 gir1.2-g
needs python3-muster gir1.2-muster-0

# The documentation: every link leads somewhere in what is installed, and what is common to all is there, not compressed.
html=$root/usr/share/doc/muster-doc/html
/usr/bin/python3 -B tests/docs/html_links.py "$html" >"$work/out" || { fail "the documentation has broken links"; tail "$work/out"; }
for file in index.html Muster-0/index.js Muster-0/class.Saver.html Muster-0/overview.html MusterEngine-0/index.html; do
  [ -s "$html/$file" ] || fail "no $file in the documentation"
done
[ -s "$root/usr/share/devhelp/books/Muster-0/Muster-0.devhelp2" ] || fail "devhelp doesn't find the documentation"
[ -s "$root/usr/share/doc-base/muster-doc.muster" ] || [ -s "$root/usr/share/doc-base/muster" ] || fail "the documentation isn't registered"

# The examples: all that the repository has, but not how it builds them.
for file in digits/trainer.c hook/hook.c job/job.c cluster/task.c cmake/train.cc kubernetes/job.yaml meson/meson.build python/train.py; do
  [ -s "$root/usr/share/doc/muster/examples/$file" ] || fail "no example $file"
done
[ -z "$(find "$root/usr/share/doc/muster/examples" -name BUILD)" ] || fail "the examples have build files"

# The service, which isn't started, and its user.
unit=$(find "$root" -name muster-serve.service)
grep -qx "ExecStart=/usr/bin/muster serve .*" "$unit" || fail "the service runs another command"
[ -z "$(find "$root/etc" -name muster-serve.service)" ] || fail "the service is enabled"
dpkg-deb -I deb/muster.deb postinst | grep -qF "deb-systemd-invoke try-restart 'muster-serve.service'" || fail "an upgrade doesn't restart the service"
dpkg-deb -I deb/muster.deb preinst >/dev/null 2>&1 && fail "an upgrade stops the service before it begins"
dpkg-deb -I deb/muster.deb prerm | grep -qF "deb-systemd-invoke stop" || fail "removing doesn't stop the service"
command -v systemd-sysusers >/dev/null && { grep -q '^muster:' "$root/etc/passwd" || fail "the service has no user"; }

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
export LD_LIBRARY_PATH=$lib GI_TYPELIB_PATH=$lib/girepository-1.0 PYTHONPATH=$root/usr/lib/python3/dist-packages
export PYTHONDONTWRITEBYTECODE=1
"$work/user" tests/fixtures/linreg.meta "$work/user-run" | grep -qx "saved $work/user-run/model.ckpt-3" || fail "a program doesn't run"

# Python.
/usr/bin/python3 -c 'from gi.repository import Muster; assert Muster.Tensor([1, 2]) == Muster.tensor([1, 2])' ||
  fail "Python doesn't find what the package adds"
/usr/bin/python3 examples/python/train.py --data=tests/fixtures --steps=20 --checkpoint-dir="$work/python" >"$work/out" 2>&1
grep -qF "saved $work/python/model.ckpt-20" "$work/out" || { fail "Python's example doesn't run"; cat "$work/out"; }

# A newer one, with other defaults: what was configured stays.
dpkg-deb -R deb/muster.deb "$work/newer"
sed -i 's/^Version: .*/&+newer/' "$work/newer/DEBIAN/control"
while read -r conffile; do
  echo "# configured" >>"$root$conffile"
  echo "# newer default" >>"$work/newer$conffile"
done <"$work/newer/DEBIAN/conffiles"
dpkg-deb --build "$work/newer" "$work/newer.deb" >"$work/out" || { fail "no newer package was made"; cat "$work/out"; }
package --force-confdef --install "$work/newer.deb" || { fail "it can't be upgraded"; cat "$work/out"; }
dpkg-query --admindir="$work/admin" -W -f='${Version}' muster | grep -q '+newer$' || fail "it wasn't upgraded"
while read -r conffile; do
  [ "$(tail -n 1 "$root$conffile")" = "# configured" ] || fail "the upgrade changed $conffile"
done <"$work/newer/DEBIAN/conffiles"
grep -q . "$work/newer/DEBIAN/conffiles" || fail "there is no configuration"

# Gone again, and nothing stays but the user.
package --purge "${names[@]}" || { fail "they can't be removed"; cat "$work/out"; }
left=$(find "$root" '(' -type f -o -type l ')' ! -path "$root/etc/passwd*" ! -path "$root/etc/group*" ! -path "$root/etc/shadow*" \
  ! -path "$root/etc/gshadow*" ! -name .pwd.lock)
[ -z "$left" ] || fail "files stay behind: $left"

[ "$failures" = 0 ] && echo "installed, used, upgraded and removed"
exit $((failures > 0))
