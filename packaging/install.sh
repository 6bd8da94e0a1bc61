#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bazel run //:install -- [--prefix=/usr/local] [--libdir=PREFIX/lib] [--destdir=DIR]
# Installs the command, the libraries, and what it takes to build against them. What is installed says that it lies
# below the prefix; with --destdir it is put below that folder for the time being.
set -eu
from=${BUILD_WORKING_DIRECTORY:-$PWD}
version=unknown
prefix=/usr/local libdir='' destdir=''

absolute() {
  case $1 in
    '' | /*) echo "$1" ;;
    *) echo "$from/$1" ;;
  esac
}

for word; do
  case $word in
    --prefix=?*) prefix=$(absolute "${word#*=}") ;;
    --libdir=?*) libdir=$(absolute "${word#*=}") ;;
    --destdir=?*) destdir=$(absolute "${word#*=}") ;;
    *)
      echo "install: unknown argument '$word'; usage: install [--prefix=DIR] [--libdir=DIR] [--destdir=DIR]" >&2
      exit 2
      ;;
  esac
done
libdir=${libdir:-$prefix/lib}
case $prefix in
  /usr) sysconfdir=/etc ;;
  *) sysconfdir=$prefix/etc ;;
esac
if [ -d "$0.runfiles/muster" ]; then cd "$0.runfiles/muster"; fi

to=$destdir$prefix lib=$destdir$libdir include=$destdir$prefix/include/muster-0

# command -p: the system's, whatever else is called `install` where this runs
folder() { command -p install -d -m 755 "$@"; }
put() { command -p install -m 644 "$@"; }
put_program() { command -p install -m 755 "$@"; }
fill_in() { # fill_in FILE TO: with the folders' names in their places
  sed "s|@prefix@|$prefix|g; s|@libdir@|$libdir|g; s|@sysconfdir@|$sysconfdir|g; s|@version@|$version|g" "$1" >"$2"
  chmod 644 "$2"
}

folder "$to/bin" "$to/libexec/muster" "$lib/pkgconfig" "$lib/girepository-1.0" "$to/share/gir-1.0"
put_program cli/muster "$to/bin/muster"
put_program tensorflow/muster-tensorflow "$to/libexec/muster/muster-tensorflow"
for name in muster muster-engine; do
  put "lib$name.so.$version" "$lib/"
  ln -sf "lib$name.so.$version" "$lib/lib$name.so.0"
  ln -sf "lib$name.so.0" "$lib/lib$name.so"
  fill_in "packaging/$name.pc.in" "$lib/pkgconfig/$name.pc"
done
for name in Muster-0 MusterEngine-0; do
  put "$name.gir" "$to/share/gir-1.0/"
  put "$name.typelib" "$lib/girepository-1.0/"
done
# For any Python: a virtual environment names the folder in a path file; Debian's finds it from dist-packages.
find python '(' -name '*.py*' -o -name py.typed ')' | sort | while read -r file; do
  folder "$to/share/muster/${file%/*}"
  put "$file" "$to/share/muster/$file"
done
folder "$to/lib/python3/dist-packages/gi/overrides"
ln -sfn ../../../share/muster/python/muster "$to/lib/python3/dist-packages/muster"
ln -sfn ../../../share/muster/python/stubs/gi "$to/lib/python3/dist-packages/gi-stubs"
for name in Muster MusterEngine; do
  ln -sf "../../../../../share/muster/python/gi/overrides/$name.py" "$to/lib/python3/dist-packages/gi/overrides/$name.py"
done
folder "$to/share/man/man1" "$to/lib/systemd/system" "$to/lib/sysusers.d" "$destdir$sysconfdir/default" "$destdir$sysconfdir/muster"
fill_in packaging/muster.1 "$to/share/man/man1/muster.1"
fill_in packaging/muster-serve.service.in "$to/lib/systemd/system/muster-serve.service"
put packaging/muster.sysusers "$to/lib/sysusers.d/muster.conf"
folder "$to/share/bash-completion/completions" "$to/share/zsh/site-functions" "$to/share/fish/vendor_completions.d"
put packaging/muster.bash "$to/share/bash-completion/completions/muster"
put packaging/_muster "$to/share/zsh/site-functions/_muster"
put packaging/muster.fish "$to/share/fish/vendor_completions.d/muster.fish"
# What was changed there is its owner's.
[ -e "$destdir$sysconfdir/default/muster" ] || put packaging/muster.default "$destdir$sysconfdir/default/muster"
[ -e "$destdir$sysconfdir/muster/muster.conf" ] || put packaging/muster.conf "$destdir$sysconfdir/muster/muster.conf"
folder "$to/share/muster/examples"
put packaging/examples.README "$to/share/muster/examples/README"
put tests/fixtures/digits.meta "$to/share/muster/examples/digits.meta"
put tests/fixtures/digits_ps.meta "$to/share/muster/examples/digits_ps.meta"
put tests/fixtures/digits_x.npy "$to/share/muster/examples/images.npy"
put tests/fixtures/digits_y.npy "$to/share/muster/examples/labels.npy"
folder "$to/share/muster/monitoring"
put packaging/grafana/muster.json "$to/share/muster/monitoring/grafana.json"
put packaging/prometheus/muster.rules.yml "$to/share/muster/monitoring/prometheus.rules.yml"
find . -name '*.h' | sed 's|^\./||' | sort | while read -r header; do
  folder "$include/${header%/*}"
  put "$header" "$include/$header"
done
mv "$include/include/muster.h" "$include/muster.h"
rmdir "$include/include"

echo "installed muster $version below $to"
