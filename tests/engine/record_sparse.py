# SPDX-License-Identifier: Apache-2.0
"""Records what TensorFlow computes of sparse tensors."""
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
    op("SparseCross", given([second], []), words=True, **words_only)
    op("SparseCross", given([], [digits]), words=True, **words_only)
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


def sparse(values, shape=(3, 4)):
    """Its indices, values and shape, in order."""
    rows = np.array([[0, 1], [0, 3], [1, 0], [2, 2], [2, 3]], I64)[:len(values)]
    return rows, values, np.array(shape, I64)


def three(prefix, s, suffix=("indices", "values", "shape")):
    return {prefix + name: part for name, part in zip(suffix, s)}


def cuts():
    words = np.array(["a", "b", "c", "d", "e"])
    for values in [numbers(F32, 5), words]:
        a, b = sparse(values), sparse(values[:3], (3, 5))
        for axis in [1, -1]:
            op("SparseConcat", dict(indices=[a[0], b[0], a[0]], values=[a[1], b[1], a[1]], shapes=[a[2], b[2], a[2]]), concat_dim=axis)
        c = sparse(values[:4], (7, 4))
        op("SparseConcat", dict(indices=[c[0], a[0]], values=[c[1], a[1]], shapes=[c[2], a[2]]), concat_dim=0)
        op("SparseConcat", dict(indices=[a[0][::-1].copy(), a[0]], values=[a[1]] * 2, shapes=[a[2]] * 2), concat_dim=0)
        for start, size in [([0, 1], [2, 3]), ([1, 0], [9, 9]), ([2, 3], [1, 1]), ([5, 0], [1, 4]), ([0, 0], [0, 4])]:
            op("SparseSlice", dict(three("", a), start=np.array(start, I64), size=np.array(size, I64)))
        for axis, n in [(0, 1), (0, 2), (0, 3), (1, 3), (1, 4)]:
            op("SparseSplit", dict(three("", a), split_dim=I64(axis)), num_split=n)
    a, b = sparse(numbers(F32, 5)), sparse(numbers(F32, 3), (2, 5))
    op("SparseConcat", dict(indices=[a[0], b[0]], values=[a[1], b[1]], shapes=[a[2], b[2]]), concat_dim=1,
       words="Input shapes must match: expected 3 for dimension 0 but got 2 at position 1")
    op("SparseConcat", dict(indices=[a[0]] * 2, values=[a[1]] * 2, shapes=[a[2]] * 2), concat_dim=2, words=True)
    op("SparseSlice", dict(three("", a), start=np.array([0], I64), size=np.array([1, 1], I64)),
       words="Expected start to be a vector of length 2 but got length 1")
    op("SparseSplit", dict(three("", a), split_dim=I64(1)), num_split=5, words=True)
    op("SparseSplit", dict(three("", a), split_dim=I64(2)), num_split=1, words=True)
    for dtype in [F32, I64, np.complex64]:
        op("SparseSliceGrad", dict(backprop_val_grad=numbers(F32, 2).astype(dtype), input_indices=a[0],
                                   input_start=np.array([0, 2], I64), output_indices=np.array([[0, 1], [2, 1]], I64)))
    op("SparseSliceGrad", dict(backprop_val_grad=numbers(F32, 2), input_indices=a[0], input_start=np.array([0, 2], I64),
                               output_indices=np.array([[0, 1], [2, 2]], I64)), words=True)


def pairs():
    others = np.array([[0, 0], [0, 3], [2, 0], [2, 3]], I64)
    for dtype in [F32, F64, I32, I64, np.int16, np.int8, np.complex64, np.complex128]:
        a = sparse(numbers(F64, 5).astype(dtype))
        b = others, numbers(F64, 4).astype(dtype), a[2]
        real = np.zeros(1, dtype).real.dtype.type
        for limit in [0, 3]:
            op("SparseAdd", dict(three("a_", a), **three("b_", b), thresh=real(limit)))
        op("SparseAddGrad", dict(backprop_val_grad=numbers(F64, 7).astype(dtype), a_indices=a[0], b_indices=b[0],
                                 sum_indices=np.array([[0, 0], [0, 1], [0, 3], [1, 0], [2, 0], [2, 2], [2, 3]], I64)))
    for dtype in REALS:
        a, b = sparse(numbers(dtype, 5)), (others, numbers(dtype, 4), np.array([3, 4], I64))
        for name in ["SparseSparseMaximum", "SparseSparseMinimum"]:
            op(name, dict(three("a_", a), **three("b_", b)))
        for name in ["SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"]:
            for shape in [(3, 4), (4,), (3, 1), (1, 4), (1,), ()]:
                op(name, dict(three("sp_", a), dense=positive(dtype, *shape)))
        for index in [I32, I64]:
            op("SparseTensorDenseAdd", dict(a_indices=a[0].astype(index), a_values=a[1], a_shape=a[2].astype(index),
                                            b=positive(dtype, 3, 4)))
    a, b = sparse(numbers(F32, 5)), (others, numbers(F32, 4), np.array([3, 5], I64))
    op("SparseAdd", dict(three("a_", a), **three("b_", b), thresh=F32(0)),
       words="Operands' shapes do not match: got 4 and 5 for dimension 1")
    op("SparseSparseMaximum", dict(three("a_", a), **three("b_", b)), words=True)
    op("SparseDenseCwiseMul", dict(three("sp_", a), dense=numbers(F32, 4, 4)), words=True)
    op("SparseDenseCwiseMul", dict(three("sp_", a), dense=numbers(F32, 2, 3, 4)), words=True)
    op("SparseDenseCwiseMul", dict(three("sp_", sparse(numbers(F32, 5), (2, 4))), dense=numbers(F32, 4)), words=True)
    op("SparseTensorDenseAdd", dict(three("a_", a), b=numbers(F32, 3, 5)), words=True)
    op("SparseTensorDenseAdd", dict(three("a_", a), b=numbers(F32, 12)), words=True)
    op("SparseTensorDenseAdd", dict(three("a_", sparse(numbers(F32, 5), (2, 4))), b=numbers(F32, 2, 4)), words=True)


def sparse_reductions():
    deep = (np.array([[0, 1, 0], [0, 1, 2], [1, 0, 2], [1, 1, 0], [1, 1, 1]], I64), None, np.array([2, 2, 3], I64))
    for name in ["SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"]:
        for dtype in REALS + ([np.complex64, np.complex128] if "Sum" in name else []):
            for axes in [0, [1], [-1], [0, 1], [0, 2], [0, 1, 2], [], [1, 1]]:
                op(name, dict(three("input_", (deep[0], numbers(F64, 5).astype(dtype), deep[2])),
                              reduction_axes=np.array(axes, I32)), keep_dims=axes in (0, [0, 2]))
        op(name, dict(three("input_", (deep[0][::-1].copy(), numbers(F32, 5), deep[2])), reduction_axes=np.array([1], I32)))
        op(name, dict(three("input_", (deep[0], numbers(F32, 5), deep[2])), reduction_axes=np.array([3], I32)),
           words="Invalid reduction dimension 3, for input with 3 dimensions.")
        op(name, dict(three("input_", (np.zeros((0, 2), I64), np.zeros(0, F32), np.array([2, 3], I64))),
                      reduction_axes=np.array([1], I32)))
    for dtype in [F32, F64, F16]:
        op("SparseSoftmax", dict(three("sp_", sparse(numbers(dtype, 5)))))
        op("SparseSoftmax", dict(three("sp_", (deep[0], numbers(dtype, 5), deep[2]))))
    op("SparseSoftmax", dict(three("sp_", (np.array([[1]], I64), numbers(F32, 1), np.array([3], I64)))), words=True)


ALL = [crosses, cuts, pairs, sparse_reductions]
