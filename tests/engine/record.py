#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what TensorFlow's kernels compute, for kernels_golden_test.c to replay: a file in goldens/ for each function
that record_*.py list, and which of its cases differ from those that it had.

Run by hand with TensorFlow 2.21:  python3 tests/engine/record.py [FUNCTION]...
"""
import os
import sys

import record_arrays
import record_complex
import record_dense
import record_kept
import record_kernels
import record_kinds
import record_odd
import record_rows
import record_samplers
import record_sparse
import record_strings
from recording import write

MODULES = [record_kernels, record_rows, record_strings, record_arrays, record_complex, record_samplers, record_dense,
           record_kept, record_kinds, record_sparse, record_odd]

if __name__ == "__main__":
    recorders = {record.__name__: record for module in MODULES for record in module.ALL}
    if len(recorders) < sum(len(module.ALL) for module in MODULES):
        sys.exit("two functions of one name would share a file")
    unknown = [name for name in sys.argv[1:] if name not in recorders]
    if unknown:
        sys.exit("no function '%s'; there are %s" % (unknown[0], ", ".join(recorders)))
    for name in sys.argv[1:] or recorders:
        write(recorders[name], os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens"))
