#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/hook trains until the loss is low, and not on.
set -eu
cp tests/fixtures/digits.meta "$TEST_TMPDIR/"
cp tests/fixtures/digits_x.npy "$TEST_TMPDIR/images.npy"
cp tests/fixtures/digits_y.npy "$TEST_TMPDIR/labels.npy"
said=$(examples/hook/hook "$TEST_TMPDIR/digits.meta" 1.5 2>&1)
echo "$said"
last=$(echo "$said" | tail -1 | sed 's/.*: //')
n_below=$(echo "$said" | sed -n 's/^step .*: //p' | awk '$1 <= 1.5' | wc -l)
[ "$n_below" = 1 ]
awk "BEGIN { exit !($last <= 1.5) }"
