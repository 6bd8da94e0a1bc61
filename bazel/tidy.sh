#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bazel run //:tidy    runs clang-tidy with the checks of .clang-tidy over the folders below; fails on a finding
set -eu
folders="base graph checkpoint rpc master ready saver session train callbacks jobs engine server tensorflow cli"

cd "${BUILD_WORKSPACE_DIRECTORY:?run this with bazel run //:tidy}"
for tool in clang-tidy git; do
  command -v $tool >/dev/null || { echo "$tool is not installed: run bazel/setup --tests" >&2; exit 1; }
done
# shellcheck disable=SC2086
targets=$(printf '//%s/... ' $folders)
# The headers that are generated have to be there.
# shellcheck disable=SC2086
${BAZEL:-bazel} build --color=no --curses=no --noshow_progress --noshow_loading_progress $targets
python3 bazel/compdb.py
# A file is compiled in Bazel's own folder, from where clang-tidy doesn't find .clang-tidy.
# shellcheck disable=SC2086
git ls-files -z --cached --others --exclude-standard $folders | grep -z '\.c$' |
  xargs -0r -P "$(nproc)" -n 8 clang-tidy -p . --config-file="$PWD/.clang-tidy" --quiet 2>/dev/null
