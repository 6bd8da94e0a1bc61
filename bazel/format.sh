#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bazel run //:format            formats every C and C++ file
# bazel run //:format -- --check reports what is not formatted, and fails
set -eu
cd "${BUILD_WORKSPACE_DIRECTORY:?run this with bazel run //:format}"
command -v clang-format >/dev/null || { echo "clang-format is not installed: run bazel/setup --tests" >&2; exit 1; }
if [ "${1:-}" = --check ]; then set -- --dry-run --Werror; else set -- -i; fi
command -v git >/dev/null || { echo "git is not installed: it tells which files there are" >&2; exit 1; }
git ls-files -z --cached --others --exclude-standard '*.c' '*.h' '*.cc' | xargs -0r clang-format --style=file "$@"
