#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh INSTALL DOCS VERSION FOLDER FILE…: builds the Debian packages of what INSTALL installs and of the folder DOCS, by
# debhelper with the FILEs of packaging/debian and of examples, and puts them into FOLDER. Their version names the Debian release that they are for, this machine's.
set -eu
install=$PWD/$1 docs=$PWD/$2 version=$3 folder=$4
shift 4
command -v dh >/dev/null || { echo "debhelper is not installed: run bazel/setup" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$PWD
umask 022

for file; do
  mkdir -p "$work/muster/$(dirname "${file#*packaging/}")"
  cp -L "$file" "$work/muster/${file#*packaging/}"
done
cd "$work/muster"
chmod 755 debian/rules
head -n 1 debian/changelog | grep -qF "($version-" || { echo "packaging/debian/changelog has another version than $version" >&2; exit 1; }
# shellcheck source=/dev/null
release=$(. /etc/os-release && echo "$VERSION_ID")
sed -i "1s/)/~deb$release)/" debian/changelog

export MUSTER_INSTALL="$install" MUSTER_DOCS="$docs" HOME="$work" LC_ALL=C.UTF-8
debian/rules binary >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
for deb in "$work"/*.deb; do
  name=${deb##*/}
  cp "$deb" "$top/$folder/${name%%_*}.deb"
done
