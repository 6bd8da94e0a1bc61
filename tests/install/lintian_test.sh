#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What lintian says of the Debian packages: no errors and no warnings.
set -u
command -v lintian >/dev/null || { echo "SKIPPED: needs lintian"; exit 0; }
export HOME=$TEST_TMPDIR TMPDIR=$TEST_TMPDIR LC_ALL=C.UTF-8
out=$(lintian --allow-root --fail-on=error,warning --profile=debian deb/*.deb 2>&1)
code=$?
echo "$out"
[ "$code" = 0 ] || exit 1
