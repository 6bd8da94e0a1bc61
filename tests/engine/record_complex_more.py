#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Complex numbers where they are rare.

Run by hand with TensorFlow 2.21:  python3 tests/engine/record_complex_more.py tests/engine/complex_more.golden
"""
from recording import *
from record_complex import COMPLEX, values


def logarithms():
    for dtype in COMPLEX:
        for a, b in [((2, 3), (2, 3)), ((2, 3), ()), ((), (3,))]:
            op("Xlog1py", dict(x=values(dtype, *a), y=values(dtype, *b)))
        op("Xlog1py", dict(x=np.array([0, 1j, 2, 0], dtype), y=np.array([3j, 1e-3, -1e-3j, -1], dtype)))


def sparse_products():
    places = np.array([[0, 1], [1, 0], [1, 2], [0, 1]], I64)
    for dtype in COMPLEX:
        for adjoint_a in [False, True]:
            for adjoint_b in [False, True]:
                b = values(dtype, 2 if adjoint_a else 3, 4)
                op("SparseTensorDenseMatMul", dict(a_indices=places, a_values=values(dtype, 4), a_shape=np.array([2, 3], I64),
                                                   b=b.T if adjoint_b else b), adjoint_a=adjoint_a, adjoint_b=adjoint_b)


if __name__ == "__main__":
    write([logarithms, sparse_products])
