# SPDX-License-Identifier: Apache-2.0
"""Cases for order, diagonals, rearranged and sparse tensors, bits, and more functions."""
from recording import *


def orders():
    x = np.array([[3, 1, 3, 2, 9, -1], [0, 0, 0, 1, 1, -5]])
    for dtype in REALS:
        op("TopKV2", dict(input=np.abs(x).astype(dtype), k=I32(3)))
    for n in [0, 1, 6]:
        op("TopKV2", dict(input=x.astype(F32), k=I32(n)))
    op("TopKV2", dict(input=np.sin(np.arange(500)).astype(F32), k=I32(5)))
    op("TopKV2", dict(input=np.sin(np.arange(500)).astype(F32), k=I32(500)))
    op("TopKV2", dict(input=x.astype(F32), k=I32(7)), words=True)
    op("TopKV2", dict(input=x.astype(F32), k=I32(-1)), words=True)
    op("TopKV2", dict(input=F32(1), k=I32(1)), words=True)
    for dtype in [F32, F64, I32, I64]:
        op("Bucketize", dict(input=numbers(dtype, 2, 5)), boundaries=[-2., 0., 3.])
        sorted_rows = np.sort(numbers(dtype, 2, 6))
        for name in ["LowerBound", "UpperBound"]:
            op(name, dict(sorted_inputs=sorted_rows, values=numbers(dtype, 2, 4)), out_type=tf.int64)
        op("HistogramFixedWidth", dict(values=numbers(dtype, 3, 5), value_range=np.array([-2, 3], dtype), nbins=I32(4)))
        for size in [0, 3, 9]:
            op("Bincount", dict(arr=np.array([1, 3, 1, 5], I32), size=I32(size), weights=positive(dtype, 4)))
            op("DenseBincount", dict(input=np.array([[1, 3, 1], [5, 0, 0]], I64), size=I64(size), weights=positive(dtype, 2, 3)))
        op("DenseBincount", dict(input=np.array([1, 3, 1], I32), size=I32(4), weights=np.array([], dtype)))
        op("DenseBincount", dict(input=np.array([1, 3, 1], I32), size=I32(4), weights=np.array([], dtype)), binary_output=True)
    op("LowerBound", dict(sorted_inputs=numbers(F32, 2, 3), values=numbers(F32, 1, 3)), words=True)
    op("DenseBincount", dict(input=np.array([1, -3, 1], I32), size=I32(4), weights=np.array([], F32)), words=True)
    op("HistogramFixedWidth", dict(values=numbers(F32, 3), value_range=np.array([3, 3], F32), nbins=I32(4)), words=True)
    op("HistogramFixedWidth", dict(values=numbers(F32, 3), value_range=np.array([3, 4], F32), nbins=I32(0)), words=True)


def diagonals():
    for dtype in [F32, I64]:
        op("Diag", dict(diagonal=numbers(dtype, 3)))
        op("Diag", dict(diagonal=numbers(dtype, 2, 2)))
        op("DiagPart", dict(input=numbers(dtype, 3, 3)))
        op("DiagPart", dict(input=numbers(dtype, 2, 3, 2, 3)))
        op("MatrixDiag", dict(diagonal=numbers(dtype, 2, 3)))
        op("MatrixDiagPart", dict(input=numbers(dtype, 2, 3, 4)))
        op("MatrixSetDiag", dict(input=numbers(dtype, 2, 3, 4), diagonal=positive(dtype, 2, 3)))
    op("DiagPart", dict(input=numbers(F32, 3, 2)), words=True)
    op("Diag", dict(diagonal=F32(1)), words=True)
    op("MatrixDiagPart", dict(input=numbers(F32, 3)), words=True)
    op("MatrixSetDiag", dict(input=numbers(F32, 3, 4), diagonal=numbers(F32, 4)), words=True)
    pad = F32(7)
    for align in ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"]:
        for k, diagonal in [([0], (2, 3)), ([1], (2, 3)), ([-2], (3,)), ([-1, 1], (2, 3, 3)), ([-2, -1], (2, 3)), ([0, 2], (3, 4))]:
            for size in [(-1, -1)] + ([(5, -1)] if k == [-2] else [(4, -1)] if k == [0] else []):
                op("MatrixDiagV3", dict(diagonal=numbers(F32, *diagonal), k=np.array(k, I32), num_rows=I32(size[0]),
                                        num_cols=I32(size[1]), padding_value=pad), align=align)
        for k in [[0], [1], [-2], [-1, 1], [-2, -1], [0, 3], [-2, 3]]:
            op("MatrixDiagPartV3", dict(input=numbers(F32, 2, 3, 4), k=np.array(k, I32), padding_value=pad), align=align)
            n = k[-1] - k[0] + 1
            longest = min(3 + min(k[-1], 0), 4 - max(k[0], 0))
            shape = (2, n, longest) if n > 1 else (2, longest)
            op("MatrixSetDiagV3", dict(input=numbers(F32, 2, 3, 4), diagonal=positive(F32, *shape), k=np.array(k, I32)),
               align=align)
    for k in [[0], [-1, 1]]:
        op("MatrixDiagPartV2", dict(input=numbers(F32, 2, 3, 4), k=np.array(k, I32), padding_value=pad))
    op("MatrixDiagV2", dict(diagonal=numbers(F32, 2, 3), k=np.array([0, 1], I32), num_rows=I32(-1), num_cols=I32(-1),
                            padding_value=pad))
    op("MatrixDiagPartV3", dict(input=numbers(F32, 2, 3), k=np.array([5], I32), padding_value=pad), words=True)
    op("MatrixDiagPartV3", dict(input=numbers(F32, 2, 3), k=np.array([1, 0], I32), padding_value=pad), words=True)
    for lower, upper in [(0, 0), (1, -1), (-1, 1), (2, 1), (0, 3)]:
        op("MatrixBandPart", dict(input=numbers(F32, 2, 3, 4), num_lower=I64(lower), num_upper=I64(upper)))
    op("MatrixBandPart", dict(input=numbers(F32, 3, 4), num_lower=I64(5), num_upper=I64(0)), words=True)


def rearranged():
    x = numbers(F32, 3, 4, 2)
    for shift, axis in [(1, 0), (-1, 1), ([1, 2], [0, 1]), ([1, 1], [2, 2]), (7, -1)]:
        op("Roll", dict(input=x, shift=np.array(shift, I32), axis=np.array(axis, I32)))
    op("Roll", dict(input=np.array(["a", "b", "c"]), shift=I64(1), axis=I64(0)))
    op("Roll", dict(input=x, shift=I32(1), axis=I32(3)), words=True)
    op("Roll", dict(input=x, shift=np.array([1, 2], I32), axis=I32(1)), words=True)
    op("ReverseSequence", dict(input=x, seq_lengths=np.array([2, 0, 4], I64)), seq_dim=1, batch_dim=0)
    op("ReverseSequence", dict(input=x, seq_lengths=np.array([2, 1], I32)), seq_dim=0, batch_dim=2)
    op("ReverseSequence", dict(input=x, seq_lengths=np.array([2, 0, 5], I64)), seq_dim=1, batch_dim=0, words=True)
    op("ReverseSequence", dict(input=x, seq_lengths=np.array([2, 0], I64)), seq_dim=1, batch_dim=0, words=True)
    for mode in ["REFLECT", "SYMMETRIC"]:
        for dtype in [F32, I32, F16]:
            op("MirrorPad", dict(input=numbers(dtype, 3, 4), paddings=np.array([[1, 2], [0, 3]], I32)), mode=mode)
        op("MirrorPadGrad", dict(input=numbers(F32, 6, 7), paddings=np.array([[1, 2], [0, 3]], I32)), mode=mode)
        op("MirrorPad", dict(input=numbers(F32, 3), paddings=np.array([[1, 4]], I32)), mode=mode, words=True)
    op("Bitcast", dict(input=numbers(F32, 2, 3)), type=tf.int32)
    op("Bitcast", dict(input=numbers(F32, 2, 3)), type=tf.uint8)
    op("Bitcast", dict(input=numbers(I32, 3, 2)), type=tf.float64)
    op("Bitcast", dict(input=numbers(I32, 2, 3)), type=tf.float64, words=True)
    op("UnravelIndex", dict(indices=np.array([5, 2, 0], I32), dims=np.array([2, 3], I32)))
    op("UnravelIndex", dict(indices=I64(5), dims=np.array([2, 3], I64)))
    op("UnravelIndex", dict(indices=np.array([6], I32), dims=np.array([2, 3], I32)), words=True)
    for n in [1, 2, 7]:
        for dtype in [F32, F64]:
            op("LinSpace", dict(start=dtype(-1), stop=dtype(2.5), num=I32(n)))
    op("LinSpace", dict(start=F32(-1), stop=F32(2.5), num=I32(0)), words=True)
    for kind in ["ref", "resource"]:
        case = Case("StridedSliceAssign/" + kind)
        with case.graph.as_default():
            v, init, _ = variable(kind, "v", numbers(F32, 4, 3))
            value = tf1.placeholder(tf.float32)
            bounds = dict(begin=tf.constant([1, 0]), end=tf.constant([3, 3]), strides=tf.constant([1, 2]))
            if kind == "ref":
                do = raw.StridedSliceAssign(ref=v, value=value, **bounds).op
            else:
                do = raw.ResourceStridedSliceAssign(ref=v, value=value, **bounds)
            get = read(kind, v, F32)
        case.start().step(targets=[do], feeds={value: positive(F32, 2, 2)}, words=True).step(targets=[init])
        case.step(targets=[do], feeds={value: positive(F32, 2, 2)}).step([get])
        case.step(targets=[do], feeds={value: positive(F32, 3, 2)}, words=True).end()
    op("TensorStridedSliceUpdate", dict(input=numbers(F32, 4, 3), begin=np.array([1, 0], I32), end=np.array([3, 3], I32),
                                        strides=np.array([1, 2], I32), value=positive(F32, 2, 2)))
    op("IdentityN", dict(input=[numbers(F32, 2), np.array("a")]))


def sparses():
    op("SparseToDense", dict(sparse_indices=np.array([[0, 1], [2, 0]], I32), output_shape=np.array([3, 2], I32),
                             sparse_values=numbers(F32, 2), default_value=F32(9)))
    op("SparseToDense", dict(sparse_indices=np.array([1, 3], I64), output_shape=np.array([5], I64),
                             sparse_values=np.array("x"), default_value=np.array("-")))
    op("SparseToDense", dict(sparse_indices=I32(2), output_shape=np.array([5], I32), sparse_values=I32(1), default_value=I32(0)))
    for bad in [[3, 1], [1, 1], [1, 5], [-1, 1]]:
        op("SparseToDense", dict(sparse_indices=np.array(bad, I64), output_shape=np.array([5], I64),
                                 sparse_values=F32(1), default_value=F32(0)), words=True)
    op("SparseToDense", dict(sparse_indices=np.array([3, 1], I64), output_shape=np.array([5], I64),
                             sparse_values=F32(1), default_value=F32(0)), validate_indices=False)
    indices = np.array([[0, 1], [2, 0], [2, 3]], I64)
    shape = np.array([4, 6], I64)
    for to in [[-1], [2, 12], [3, -1, 2], [24], [4, 6]]:
        op("SparseReshape", dict(input_indices=indices, input_shape=shape, new_shape=np.array(to, I64)))
    for to in [[-1, -1], [5, -1], [23], [0, -1]]:
        op("SparseReshape", dict(input_indices=indices, input_shape=shape, new_shape=np.array(to, I64)), words=True)
    for values, default in [(numbers(F32, 3), F32(7)), (np.array(["a", "b", "c"]), np.array("d")), (numbers(I64, 3), I64(7))]:
        op("SparseFillEmptyRows", dict(indices=indices, values=values, dense_shape=shape, default_value=default))
        op("SparseReorder", dict(input_indices=indices[::-1].copy(), input_values=values, input_shape=shape))
    op("SparseFillEmptyRows", dict(indices=np.zeros((0, 2), I64), values=np.zeros(0, F32), dense_shape=np.array([2, 3], I64),
                                   default_value=F32(1)))
    op("SparseFillEmptyRows", dict(indices=np.array([[5, 0]], I64), values=np.zeros(1, F32),
                                   dense_shape=np.array([2, 3], I64), default_value=F32(1)), words=True)
    op("SparseFillEmptyRowsGrad", dict(reverse_index_map=np.array([0, 2, 3], I64), grad_values=numbers(F32, 5)))
    op("SparseFillEmptyRowsGrad", dict(reverse_index_map=np.array([0, 5], I64), grad_values=numbers(F32, 5)), words=True)


def integers_and_functions():
    for dtype in [np.int8, np.int16, I32, I64, np.uint8, np.uint16, np.uint32, np.uint64]:
        a, b = numbers(dtype, 2, 3), positive(dtype, 3)
        for name in ["BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"]:
            op(name, dict(x=a, y=b))
        op("Invert", dict(x=a))
        op("PopulationCount", dict(x=a))
    for dtype in FLOATS:
        for name in ["Asinh", "Atanh", "Acosh"]:
            op(name, dict(x=numbers(F64, 5).astype(dtype) / 5 if name != "Acosh" else positive(dtype, 5)))
        op("SeluGrad", dict(gradients=numbers(dtype, 7), outputs=(numbers(F64, 7)[::-1] / 4).astype(dtype)))
        op("Xlog1py", dict(x=np.array([0, 1, 2], dtype), y=np.array([-1, 2, 4], dtype)))
        op("MulNoNan", dict(x=np.array([1, np.nan, np.inf], dtype), y=np.array([2, 0, 0], dtype)))
    for dtype in [F32, F64]:
        op("NextAfter", dict(x1=numbers(dtype, 3), x2=np.array([0, 9, 1], dtype)))


def norms_and_clips():
    for dtype in FLOATS + [I32, I64]:
        op("EuclideanNorm", dict(input=numbers(dtype, 2, 3), axis=np.array([1], I32)))
        op("ClipByValue", dict(t=numbers(dtype, 2, 3), clip_value_min=dtype(-1), clip_value_max=dtype(2)))
    op("EuclideanNorm", dict(input=numbers(F32, 2, 3), axis=np.array([0, 1], I32)), keep_dims=True)
    op("ClipByValue", dict(t=numbers(F32, 2, 3), clip_value_min=numbers(F32, 2, 3), clip_value_max=numbers(F32, 2, 3) + 1))
    op("ClipByValue", dict(t=numbers(F32, 2, 3), clip_value_min=numbers(F32, 3), clip_value_max=F32(1)), words=True)


def sets():
    a = np.array([[[3, 1, 3], [0, 2, 2]], [[5, 5, 5], [9, 8, 7]]])
    b = np.array([[[3, 4], [2, 2]], [[6, 7], [7, 8]]])
    indices = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 2]], I64)
    shape = np.array([2, 2, 3], I64)
    for operation in ["a-b", "b-a", "intersection", "union"]:
        for dtype in [I32, I64, np.uint8, np.int16]:
            op("DenseToDenseSetOperation", dict(set1=a.astype(dtype), set2=b.astype(dtype)), set_operation=operation)
        op("DenseToDenseSetOperation", dict(set1=a.astype(str), set2=b.astype(str)), set_operation=operation)
        op("DenseToSparseSetOperation", dict(set1=a.astype(I64), set2_indices=indices, set2_values=np.array([1, 3, 5, 8, 8], I64),
                                             set2_shape=shape), set_operation=operation)
        op("SparseToSparseSetOperation", dict(set1_indices=indices, set1_values=np.array([1, 3, 5, 8, 8], I64), set1_shape=shape,
                                              set2_indices=indices[1:], set2_values=np.array([1, 5, 8, 7], I64),
                                              set2_shape=shape), set_operation=operation)
    op("SetSize", dict(set_indices=indices, set_values=np.array([1, 1, 5, 8, 7], I32), set_shape=shape))
    op("SetSize", dict(set_indices=indices, set_values=np.array(["a", "a", "c", "d", "e"]), set_shape=shape))
    op("DenseToDenseSetOperation", dict(set1=a.astype(I32), set2=b[:1].astype(I32)), set_operation="union", words=True)
    op("DenseToDenseSetOperation", dict(set1=a[0, 0].astype(I32), set2=b[0, 0].astype(I32)), set_operation="union", words=True)
    op("DenseToDenseSetOperation", dict(set1=a.astype(I32), set2=b.astype(I32)), set_operation="other", words=True)


def sparse_products():
    indices = np.array([[0, 1], [2, 0], [2, 3]], I64)
    for dtype in FLOATS + [I32]:
        for adjoint_a in [False, True]:
            for adjoint_b in [False, True]:
                rows = 3 if adjoint_a else 4
                b = numbers(dtype, *((5, rows) if adjoint_b else (rows, 5)))
                op("SparseTensorDenseMatMul", dict(a_indices=indices, a_values=positive(dtype, 3),
                                                   a_shape=np.array([3, 4], I64), b=b),
                   adjoint_a=adjoint_a, adjoint_b=adjoint_b)
    op("SparseTensorDenseMatMul", dict(a_indices=indices, a_values=positive(F32, 3), a_shape=np.array([3, 4], I64),
                                       b=numbers(F32, 3, 5)), words=True)
    op("SparseTensorDenseMatMul", dict(a_indices=indices, a_values=positive(F32, 3), a_shape=np.array([3, 3], I64),
                                       b=numbers(F32, 3, 5)), words=True)


ALL = [norms_and_clips, sets, sparse_products, orders, diagonals, rearranged, sparses, integers_and_functions]
