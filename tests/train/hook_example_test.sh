#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/hook trains until the loss is low, and not on.
set -eu
said=$(examples/hook/hook tests/fixtures/linreg.meta 0.2 2>&1)
echo "$said"
last=$(echo "$said" | tail -1 | sed 's/.*: //')
n_below=$(echo "$said" | sed -n 's/^step .*: //p' | awk '$1 <= 0.2' | wc -l)
[ "$n_below" = 1 ]
awk "BEGIN { exit !($last <= 0.2) }"
