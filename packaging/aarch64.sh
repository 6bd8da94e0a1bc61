#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# packaging/aarch64.sh FOLDER: makes muster's wheel for aarch64 on x86_64, for Debian 12's Python, in FOLDER.
#
# What is no program is as in the wheel of this machine. The rest is compiled by Debian's cross compiler against an arm64 Debian in
# FOLDER/root, which is only unpacked; FOLDER/bazel has Bazel's outputs. Both are used again. It takes minutes and half a gigabyte.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 1 ] || { echo "usage: packaging/aarch64.sh FOLDER" >&2; exit 2; }
for tool in aarch64-linux-gnu-gcc aarch64-linux-gnu-strip mmdebstrap; do
  command -v "$tool" >/dev/null || { echo "aarch64.sh: $tool is not installed: apt install gcc-aarch64-linux-gnu mmdebstrap" >&2; exit 1; }
done
mkdir -p "$1"
folder=$(cd "$1" && pwd)
root=$folder/root
include=libglib2.0-dev,libjson-glib-dev,libgrpc-dev,libssl-dev,libcurl4-openssl-dev,libprotobuf-c-dev,libisal-dev,libsnappy-dev
include+=,libmicrohttpd-dev,libstdc++-12-dev,python3-gi,python3-venv

if [ ! -d "$root" ]; then
  mmdebstrap --quiet --architectures=arm64 --variant=extract --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include="$include" bookworm "$root.new"
  find "$root.new" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do ln -snf "$root$(readlink "$link")" "$link"; done
  mv "$root.new" "$root"
fi
cat >"$folder/cc" <<END
#!/bin/sh
exec $(command -v aarch64-linux-gnu-gcc) --sysroot=$root "\$@" -L$root/usr/lib/gcc/aarch64-linux-gnu/12
END
chmod +x "$folder/cc"

bazel --output_base="$folder/bazel" build --symlink_prefix="$folder/bazel-" --platform_suffix=aarch64 \
  --repo_env=CC="$folder/cc" --repo_env=AR="$(command -v aarch64-linux-gnu-ar)" --repo_env=PKG_CONFIG_SYSROOT_DIR="$root" \
  --repo_env=PKG_CONFIG_SYSTEM_INCLUDE_PATH="$root/usr/include:$root/usr/include/aarch64-linux-gnu" \
  --repo_env=PKG_CONFIG_LIBDIR="$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig" \
  //:inside/libmuster.so.0 //:inside/muster "//:libmuster-engine.so.$(sed -n 's/^VERSION = "\(.*\)"/\1/p' bazel/library.bzl)" //tensorflow:muster-tensorflow
bazel --output_base="$folder/bazel" shutdown
bazel run //:wheel -- --output="$folder" --root="$root" --built="$folder/bazel-bin"
