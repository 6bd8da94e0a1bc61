#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh INSTALL VERSION LICENSE DEB: builds a Debian package of the files that INSTALL installs, with dependencies on the
# Debian packages of the libraries. Installing it starts no service; `systemctl enable --now muster-serve` does.
set -eu
install=$1 version=$2 license=$3 deb=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$PWD
root=$work/muster
arch=$(dpkg --print-architecture)
libdir=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
export SOURCE_DATE_EPOCH=1577836800

"$install" --prefix=/usr --libdir="$libdir" --destdir="$root" >/dev/null
strip --strip-unneeded "$root/usr/bin/muster" "$root"/usr/libexec/muster/* "$root$libdir"/lib*.so.*.*
gzip -9n "$root"/usr/share/man/man1/*
mkdir -p "$root/usr/share/doc/muster" "$root/DEBIAN" "$work/debian"
install -m 644 "$license" "$root/usr/share/doc/muster/copyright"

# What the programs are linked with; each other's libraries are in this very package.
cd "$work"
printf 'Source: muster\n\nPackage: muster\nArchitecture: any\n' >debian/control
printf 'libmuster 0 muster\n' >debian/shlibs.local
needs=$(dpkg-shlibdeps -O -xmuster -l"$root$libdir" "$root/usr/bin/muster" "$root"/usr/libexec/muster/* "$root$libdir"/lib*.so.*.*)
cd "$root"
needs=${needs#shlibs:Depends=}

# OpenBLAS is looked for at run time, as the engine can do without; so is TensorFlow, which isn't Debian's.
cat >DEBIAN/control <<CONTROL
Package: muster
Version: $version
Architecture: $arch
Maintainer: The muster authors <muster@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN . | cut -f1)
Depends: $needs
Recommends: libopenblas0-pthread | libopenblas0, gir1.2-glib-2.0
Suggests: libglib2.0-dev, pkg-config, python3-gi
Section: science
Priority: optional
Description: starts and resumes TensorFlow 1-style training jobs
 muster prepares, restores and coordinates the sessions of a training job. A
 chief restores a model from its latest checkpoint on a master, or initialises
 it; workers wait until it is ready; after a crash, all tasks resume from the
 last durable checkpoint. Compatible with TensorFlow's protocol and checkpoints.
 .
 This package contains the command, its service, the libraries, their headers,
 GObject introspection data and an example model in /usr/share/muster/examples.
CONTROL
echo /etc/default/muster >DEBIAN/conffiles
echo 'activate-noawait ldconfig' >DEBIAN/triggers
find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | sort -z | xargs -0r md5sum >DEBIAN/md5sums
chmod -R u=rwX,go=rX .

dpkg-deb --root-owner-group --build "$root" "$work/muster.deb" >/dev/null
cp "$work/muster.deb" "$top/$deb"
