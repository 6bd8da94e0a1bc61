#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what TensorFlow computes of sparse tensors, for kernels_golden_test.c to replay.

Run by hand with TensorFlow 2.21:  python3 tests/engine/record_sparse.py tests/engine/sparse.golden
"""
from recording import *


def crosses():
    words = np.array(["a", "bc", "", "a long word that takes more than one round", "e"])
    first = (np.array([[0, 0], [0, 1], [2, 0], [3, 0], [3, 2]], I64), words, np.array([4, 3], I64))
    second = (np.array([[0, 0], [1, 0], [3, 0], [3, 1]], I64), np.array([7, -1, 1 << 40, 3], I64), np.array([4, 2], I64))
    letters, digits = np.array([["x", "y"], ["z", ""], ["u", "v"], ["w", "ww"]]), np.arange(4).reshape(4, 1).astype(I64)

    def given(sparse, dense):
        return dict(indices=[s[0] for s in sparse], values=[s[1] for s in sparse], shapes=[s[2] for s in sparse],
                    dense_inputs=dense)

    mixed = [given([first], []), given([first, second], []), given([first, second], [letters, digits]),
             given([], [letters, digits]), given([second], [digits]),
             given([first], [np.zeros((4, 0), I64)])]
    for inputs in mixed:
        for buckets in [0, 11]:
            op("SparseCross", inputs, hashed_output=True, num_buckets=buckets, hash_key=956888297470, out_type=tf.int64,
               internal_type=tf.int64)
            # TensorFlow dies of the strong hash of a dense number.
            for strong in [False, True][:1 if any(x.dtype == I64 for x in inputs["dense_inputs"]) else 2]:
                op("SparseCrossHashed", dict(inputs, num_buckets=I64(buckets), strong_hash=np.bool_(strong),
                                             salt=np.array([3, 17], I64)))
        op("SparseCross", inputs, hashed_output=False, num_buckets=0, hash_key=1, out_type=tf.string, internal_type=tf.int64)
        op("SparseCrossV2", dict(inputs, sep=np.array("_/_")))
    words_only = dict(hashed_output=False, num_buckets=0, hash_key=1, out_type=tf.string, internal_type=tf.string)
    op("SparseCross", given([first], [letters]), **words_only)
    op("SparseCross", given([second], []), words="Input values should be of internal type string but received int64", **words_only)
    op("SparseCross", given([], [digits]), words="Dense inputs should be of internal type string but received int64", **words_only)
    # rows out of order end a column
    for rows in [[1, 0, 2], [0, 2, 1], [-1, 0, 1], [0, 1, 9]]:
        column = np.array([[row, 0] for row in rows], I64), words[:3], np.array([4, 1], I64)
        op("SparseCrossV2", dict(given([column], [letters]), sep=np.array("_")))
    op("SparseCrossV2", dict(given([first], [letters[:3]]), sep=np.array("_")),
       words="Expected batch size 4 got 3 at dense tensor 0")
    short = first[0], words[:4], first[2]
    op("SparseCrossV2", dict(given([short], []), sep=np.array("_")), words="Expected size of values to be 5 got 4 at position 0")
    op("SparseCrossHashed", dict(given([first], []), num_buckets=I64(0), strong_hash=np.bool_(True), salt=np.array([3], I64)),
       words='Input "salt" must have length 2 but has length 1')


if __name__ == "__main__":
    write([crosses])
