#!/bin/sh
# bazel run //:format            formats every tracked C and C++ file
# bazel run //:format -- --check reports what is not formatted, and fails
set -eu
cd "${BUILD_WORKSPACE_DIRECTORY:?run this with bazel run //:format}"
if [ "${1:-}" = --check ]; then set -- --dry-run --Werror; else set -- -i; fi
git ls-files -z --cached --others --exclude-standard '*.c' '*.h' '*.cc' | xargs -0r clang-format --style=file "$@"
