# SPDX-License-Identifier: Apache-2.0
"""Records what TensorFlow's kernels compute."""
from recording import *


def binary():
    for name in ["Add", "AddV2", "Sub", "Mul", "Minimum", "Maximum", "SquaredDifference"]:
        for dtype in REALS:
            if (name, dtype) in [("Add", np.uint16), ("SquaredDifference", np.int8)] or \
                    (name == "SquaredDifference" and dtype in (np.uint8, np.int16, np.uint16)):
                continue
            op(name, dict(x=numbers(dtype, 2, 3), y=positive(dtype, 2, 3)))
        for a, b in [((2, 3), ()), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((3,), (2, 3)), ((0, 3), (1, 3)),
                     ((2, 1), (1, 3)), ((5, 1, 2, 3), (4, 1, 3)), ((300,), (300,)), ((2, 300), (300,))]:
            op(name, dict(x=numbers(F32, *a), y=numbers(F32, *b)))
        op(name, dict(x=numbers(F16, 2, 300), y=numbers(F16, 300)))
        op(name, dict(x=numbers(F16, 2, 300), y=numbers(F16)))
    op("Add", dict(x=numbers(F32, 2), y=numbers(F32, 3)), words="Incompatible shapes: [2] vs. [3]")
    op("AddV2", dict(x=np.array([2**31 - 1], I32), y=np.array([1], I32)))
    op("Mul", dict(x=np.array([2**31 - 1, 2**30], I32), y=np.array([3, 4], I32)))
    for name in ["RealDiv", "FloorDiv", "FloorMod"]:
        for dtype in [F32, F64, F16]:
            op(name, dict(x=numbers(dtype, 3, 3), y=np.array([2, -3, 1.5], dtype)))
    for name in ["Div", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod"]:
        for dtype in [I32, I64]:
            op(name, dict(x=numbers(dtype, 3, 3), y=np.array([2, -3, 4], dtype)))
        if name in ("Div", "FloorDiv", "FloorMod"):
            op(name, dict(x=numbers(I32, 3), y=np.array([2, 0, 1], I32)), words="Integer division by zero")
    op("FloorMod", dict(x=numbers(np.uint8, 3), y=np.array([2, 3, 4], np.uint8)))
    op("Mod", dict(x=numbers(F32, 3, 3), y=np.array([2, -3, 1.5], F32)))
    op("DivNoNan", dict(x=numbers(F32, 3), y=np.array([2, 0, 4], F32)))
    for dtype in [F32, F64, F16]:
        op("Pow", dict(x=positive(dtype, 2, 3), y=np.array([2, .5, -1], dtype)))
    for dtype in [I32, I64]:
        op("Pow", dict(x=numbers(dtype, 2, 3), y=np.array([2, 0, 5], dtype)))
    op("Pow", dict(x=numbers(I32, 2), y=np.array([2, -1], I32)),
       words="Integers to negative integer powers are not allowed")
    for name in ["Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"]:
        for dtype in [F32, F64, F16, bf16, I32, I64, np.uint8]:
            op(name, dict(x=numbers(dtype, 2, 3), y=numbers(dtype, 3)))
        op(name, dict(x=numbers(F16, 700), y=numbers(F16, 700)))
    for name in ["Equal", "NotEqual"]:
        op(name, dict(x=np.array([True, False]), y=np.array([[True], [False]])))
        op(name, dict(x=np.array(["a", "bc", ""]), y=np.array([["a"], ["bc"]])))
        op(name, dict(x=np.array(["a", "bc", ""]), y=np.array("bc")))
        op(name, dict(x=numbers(F32, 2), y=numbers(F32, 3)), incompatible_shape_error=False)
        op(name, dict(x=numbers(F32, 2), y=numbers(F32, 3)), words="Incompatible shapes: [2] vs. [3]")
    for name in ["LogicalAnd", "LogicalOr"]:
        op(name, dict(x=np.array([[True], [False]]), y=np.array([True, False])))
    op("LogicalAnd", dict(x=np.array([True, False] * 300), y=np.array([True] * 600)))
    for name in ["TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"]:
        for dtype in FLOATS:
            op(name, dict(y=positive(dtype, 5), dy=numbers(dtype, 5)))
    for name in ["ReluGrad", "Relu6Grad", "SoftplusGrad", "SoftsignGrad", "LeakyReluGrad"]:
        for dtype in FLOATS:
            op(name, dict(gradients=numbers(dtype, 7), features=numbers(dtype, 7, high=8)[::-1]))
    op("LeakyReluGrad", dict(gradients=numbers(F32, 7), features=numbers(F32, 7)[::-1]), alpha=.5)
    op("EluGrad", dict(gradients=numbers(F32, 7), outputs=numbers(F32, 7)[::-1]))
    for dtype in REALS:
        if dtype not in (np.uint16,):
            op("AddN", dict(inputs=[numbers(dtype, 2, 3), positive(dtype, 2, 3), numbers(dtype, 2, 3)]))
    op("AddN", dict(inputs=[numbers(F32, 3)]))
    op("AddN", dict(inputs=[numbers(F32, 3), numbers(F32, 2)]), words=True)
    op("Xdivy", dict(x=np.array([0, 1, 2], F32), y=np.array([0, 2, 4], F32)))
    op("Atan2", dict(y=numbers(F32, 4), x=positive(F32, 4)))


def unary():
    for name in ["Neg", "Abs", "Sign", "Square"]:
        for dtype in FLOATS + [I32, I64]:
            op(name, dict(x=numbers(dtype, 3, 3)))
    for name in ["Sqrt", "Rsqrt", "Reciprocal", "Inv", "Log", "Log1p", "Lgamma"]:
        for dtype in FLOATS if name != "Lgamma" else [F32, F64, F16]:
            op(name, dict(x=positive(dtype, 7)))
    for dtype in [F32, F64, F16]:
        op("Digamma", dict(x=numbers(dtype, 13)))
        op("Digamma", dict(x=np.array([.25, 1e-3, 12, 1e4, 0, np.inf, -np.inf, np.nan], dtype)))
    for name in ["Exp", "Expm1", "Tanh", "Sigmoid", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh", "Erf",
                 "Erfc", "Floor", "Ceil", "Rint", "Round"]:
        for dtype in [F32, F64, F16] if name != "Rint" else [F32, F64]:
            op(name, dict(x=numbers(dtype, 3, 3)))
    for name in ["Asin", "Acos"]:
        op(name, dict(x=numbers(F32, 5) / 5))
    op("Round", dict(x=np.array([.5, 1.5, 2.5, -.5, -1.5], F32)))
    for name in ["IsNan", "IsInf", "IsFinite"]:
        for dtype in [F32, F64, F16]:
            op(name, dict(x=np.array([1, np.nan, np.inf, -np.inf], dtype)))
    op("LogicalNot", dict(x=np.array([True, False])))
    for name in ["Relu", "Relu6"]:
        for dtype in FLOATS + [I32, I64, np.uint8]:
            op(name, dict(features=numbers(dtype, 3, 4, high=9)))
    for name in ["Elu", "Selu", "Softplus", "Softsign", "LeakyRelu"]:
        for dtype in [F32, F64, F16]:
            op(name, dict(features=numbers(dtype, 3, 4)))
    op("LeakyRelu", dict(features=numbers(F32, 3, 4)), alpha=.5)
    for a in REALS + [np.bool_]:
        for b in [F32, F64, F16, bf16, I32, I64, np.uint8, np.int16, np.bool_]:
            x = np.array([True, False, True]) if a is np.bool_ else positive(a, 6)
            op("Cast", dict(x=x), DstT=tf.as_dtype(b))
    op("Cast", dict(x=np.array([-3, 300, 70000], I32)), DstT=tf.int8)
    op("Cast", dict(x=np.array([1.9, -1.9, 0], F32)), DstT=tf.int64)
    op("Cast", dict(x=np.arange(600, dtype=I32)), DstT=tf.half)


def reductions():
    for name in ["Sum", "Mean", "Prod", "Max", "Min"]:
        for dtype in FLOATS + [I32, I64]:
            op(name, dict(input=numbers(dtype, 2, 3, 2, high=3), axis=np.array([1], I32)))
        x = numbers(F32, 2, 3, 4, 5)
        for axes in [[], [0], [3], [0, 1], [2, 3], [0, 2], [1, 3], [0, 1, 2, 3], [-1], [-2, 0]]:
            for keep in [False, True]:
                op(name, dict(input=x, axis=np.array(axes, I32)), keep_dims=keep)
        op(name, dict(input=x, axis=np.array(1, I64)))
        op(name, dict(input=np.float32(3), axis=np.array([], I32)))
        op(name, dict(input=numbers(F32, 0, 3), axis=np.array([0], I32)))
        op(name, dict(input=numbers(F32, 3, 0), axis=np.array([0], I32)))
        op(name, dict(input=x, axis=np.array([4], I32)), words="Invalid reduction dimension")
        op(name, dict(input=x, axis=np.array([1, -3], I32)), words="Invalid reduction arguments")
    op("Sum", dict(input=np.full(5000, .1, F32), axis=np.array([0], I32)))
    for name in ["All", "Any"]:
        for axes in [[0], [1], [0, 1]]:
            op(name, dict(input=np.array([[True, False, True], [True, True, False]]),
                          axis=np.array(axes, I32)))
        op(name, dict(input=np.zeros((0, 2), bool), axis=np.array([0], I32)))
    for name in ["ArgMax", "ArgMin"]:
        for dtype in [F32, F64, F16, I32, I64, np.uint8]:
            for axis in [0, 1, -1]:
                op(name, dict(input=numbers(dtype, 3, 4, 2), dimension=np.array(axis, I32)))
        op(name, dict(input=numbers(F32, 3, 4), dimension=np.array(1, I64)), output_type=tf.int32)
        op(name, dict(input=np.array([1, 2, 2, 1, 1], F32), dimension=np.array(0, I32)))
        op(name, dict(input=numbers(F32, 3, 0), dimension=np.array(1, I32)), words=True)
        op(name, dict(input=numbers(F32, 3, 2), dimension=np.array(2, I32)), words=True)


def products():
    for dtype in FLOATS + [I32, I64]:
        for ta in [False, True]:
            for tb in [False, True]:
                for m, k, n in [(2, 3, 4), (1, 5, 1), (17, 9, 13)]:
                    op("MatMul", dict(a=numbers(dtype, *((k, m) if ta else (m, k))),
                                      b=numbers(dtype, *((n, k) if tb else (k, n)))),
                       transpose_a=ta, transpose_b=tb)
    op("MatMul", dict(a=numbers(F32, 2, 0), b=numbers(F32, 0, 3)))
    op("MatMul", dict(a=numbers(F32, 0, 2), b=numbers(F32, 2, 3)))
    op("MatMul", dict(a=numbers(F32, 2, 3), b=numbers(F32, 2, 3)),
       words="Matrix size-incompatible: In[0]: [2,3], In[1]: [2,3]")
    op("MatMul", dict(a=numbers(F32, 2), b=numbers(F32, 2, 3)), words=True)
    for dtype in [F32, F64, I32]:
        for x, y in [((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)), ((3, 1, 2, 4), (2, 4, 5))]:
            op("BatchMatMulV2", dict(x=numbers(dtype, *x), y=numbers(dtype, *y)))
    op("BatchMatMulV2", dict(x=numbers(F32, 2, 4, 3), y=numbers(F32, 2, 5, 4)), adj_x=True, adj_y=True)


def arrays():
    anything = [numbers(F32, 2, 3), numbers(F16, 3), np.array(["a", "bc", ""]), np.array([True, False]),
                numbers(I64), np.zeros((0, 2), F32), np.array([1 + 2j], np.complex64)]
    for x in anything:
        for t in [tf.int32, tf.int64]:
            op("Shape", dict(input=x), out_type=t)
            op("Size", dict(input=x), out_type=t)
        op("Rank", dict(input=x))
        op("Reshape", dict(tensor=x, shape=np.array([-1 if x.size else 0], I32)))
        op("ExpandDims", dict(input=x, axis=np.array(-1, I32)))
        op("ExpandDims", dict(input=x, axis=np.array(0, I64)))
        op("ZerosLike", dict(x=x))
        op("Tile", dict(input=x, multiples=np.array([2] * x.ndim, I32)))
        op("Pack", dict(values=[x, x]))
        op("Pack", dict(values=[x, x]), axis=-1)
        op("BroadcastTo", dict(input=x, shape=np.array((2,) + x.shape, I32)))
        op("Transpose", dict(x=x, perm=np.arange(x.ndim)[::-1].astype(I32)))
        for o in ["StopGradient", "PreventGradient", "Snapshot"]:
            if o != "Snapshot" or x.dtype.kind != "U":
                op(o, dict(input=x))
        if x.ndim:
            op("ConcatV2", dict(values=[x, x], axis=np.array(0, I32)))
            op("Concat", dict(concat_dim=np.array(-1, I32), values=[x, x, x]))
            op("Slice", dict(input=x, begin=np.array([0] * x.ndim, I32), size=np.array([-1] * x.ndim, I32)))
            op("ReverseV2", dict(tensor=x, axis=np.array([0], I32)))
            if x.shape[0] > 1:
                op("GatherV2", dict(params=x, indices=np.array([[1], [0]], I32), axis=np.array(0, I32)))
                op("Unpack", dict(value=x), num=x.shape[0])
                op("SplitV", dict(value=x, size_splits=np.array([-1, 1], I64), axis=np.array(0, I32)),
                   num_split=2)
        if x.dtype.kind not in "UO":
            op("Pad", dict(input=x, paddings=np.array([[1, 2]] * x.ndim, I32).reshape(x.ndim, 2)))
        if x.dtype.kind not in "UOc":
            op("OnesLike", dict(x=x))
    op("ShapeN", dict(input=[numbers(F32, 2), numbers(F32, 3, 4)]))
    x = numbers(F32, 2, 3, 4)
    for shape in [[4, -1], [24], [2, 2, 6], [1, -1, 1]]:
        op("Reshape", dict(tensor=x, shape=np.array(shape, I64)))
    op("Reshape", dict(tensor=x, shape=np.array([5, 5], I32)),
       words="Input to reshape is a tensor with 24 values, but the requested shape has 25")
    op("Reshape", dict(tensor=x, shape=np.array([5, -1], I32)),
       words="Input to reshape is a tensor with 24 values, but the requested shape requires a multiple of 5")
    op("Reshape", dict(tensor=x, shape=np.array([-1, -1], I32)), words=True)
    op("Reshape", dict(tensor=x, shape=np.array([-2, 12], I32)), words=True)
    for shape, to in [((0,), [0, -1]), ((0, 3), [0, -1]), ((0, 3), [-1, 0]), ((0, 3), [3, -1]), ((0, 3), [0, 2, -1])]:
        op("Reshape", dict(tensor=numbers(F32, *shape), shape=np.array(to, I32)))
    op("Reshape", dict(tensor=x, shape=np.array([0, -1], I32)), words=True)
    op("ExpandDims", dict(input=x, axis=np.array(4, I32)), words=True)
    op("Squeeze", dict(input=numbers(F32, 1, 3, 1)))
    op("Squeeze", dict(input=numbers(F32, 1, 3, 1)), axis=[-1])
    op("Squeeze", dict(input=numbers(F32, 1, 3, 1)), axis=[1],
       words="Can not squeeze dim[1], expected a dimension of 1, got 3")
    for value in [np.float32(2.5), np.array("x"), np.int64(7), np.array(True), F16(1.5)]:
        op("Fill", dict(dims=np.array([2, 3], I32), value=value))
    op("Fill", dict(dims=np.array([], I32), value=np.float32(1)))
    op("Fill", dict(dims=np.array([-1], I32), value=np.float32(1)), words=True)
    op("Fill", dict(dims=np.array([2], I32), value=numbers(F32, 2)), words=True)
    for a, b, c in [(0, 5, 1), (5, 0, -2), (3, 3, 1), (0, 7, 3)]:
        for dtype in [F32, F64, I32, I64]:
            op("Range", dict(start=dtype(a), limit=dtype(b), delta=dtype(c)))
    op("Range", dict(start=F32(0), limit=F32(1), delta=F32(.3)))
    op("Range", dict(start=I32(0), limit=I32(5), delta=I32(0)), words=True)
    op("Range", dict(start=I32(5), limit=I32(0), delta=I32(1)), words=True)
    op("BroadcastTo", dict(input=numbers(F32, 2, 1), shape=np.array([3, 2, 4], I64)))
    op("BroadcastTo", dict(input=numbers(F32, 2), shape=np.array([3], I64)), words=True)
    for a, b in [([2, 3], [3]), ([], [4]), ([2, 1, 5], [1, 3, 1]), ([2, 3], [2, 3]), ([1, 1], [1, 1]),
                 ([1], [1, 1]), ([0, 2], [1, 2]), ([1, 2], [2, 1, 1])]:
        op("BroadcastArgs", dict(s0=np.array(a, I32), s1=np.array(b, I32)))
        op("BroadcastGradientArgs", dict(s0=np.array(a, I32), s1=np.array(b, I32)))
    op("BroadcastGradientArgs", dict(s0=np.array([2], I32), s1=np.array([3], I32)), words=True)
    op("ConcatOffset", dict(concat_dim=I32(1), shape=[np.array([2, 3], I32), np.array([2, 4], I32)]))
    op("ConcatOffset", dict(concat_dim=I32(1), shape=[np.array([2, 3], I32), np.array([3, 4], I32)]), words=True)


def layouts():
    x = numbers(F32, 2, 3, 4)
    for perm in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]:
        op("Transpose", dict(x=x, perm=np.array(perm, I32)))
    op("Transpose", dict(x=x, perm=np.array([0, 1], I32)), words=True)
    op("Transpose", dict(x=x, perm=np.array([0, 0, 1], I32)), words=True)
    op("Transpose", dict(x=x, perm=np.array([0, 1, 3], I32)), words=True)
    for axis in [0, 1, 2, -1, -3]:
        op("ConcatV2", dict(values=[x, x + 1, x + 2], axis=np.array(axis, I32)))
        op("Pack", dict(values=[x, x + 1]), axis=axis)
        op("Unpack", dict(value=x), num=x.shape[axis], axis=axis)
        op("Split", dict(axis=np.array(axis, I32), value=x), num_split=x.shape[axis])
    op("ConcatV2", dict(values=[x, numbers(F32, 2, 1, 4)], axis=np.array(1, I64)))
    op("ConcatV2", dict(values=[x, x], axis=np.array(3, I32)), words=True)
    op("ConcatV2", dict(values=[x, numbers(F32, 2, 1, 3)], axis=np.array(1, I32)), words=True)
    op("ConcatV2", dict(values=[x, numbers(F32, 2)], axis=np.array(1, I32)), words=True)
    op("Pack", dict(values=[x, numbers(F32, 2)]), words=True)
    op("Unpack", dict(value=x), num=3, words=True)
    op("Split", dict(axis=I32(1), value=x), num_split=2, words=True)
    op("SplitV", dict(value=x, size_splits=np.array([1, 3], I32), axis=I32(2)), num_split=2)
    op("SplitV", dict(value=x, size_splits=np.array([1, 5], I32), axis=I32(2)), num_split=2, words=True)
    op("Slice", dict(input=x, begin=np.array([1, 0, 2], I32), size=np.array([1, 2, -1], I32)))
    op("Slice", dict(input=x, begin=np.array([1, 0, 2], I32), size=np.array([2, 2, -1], I32)), words=True)
    op("Slice", dict(input=x, begin=np.array([0, 0, 5], I32), size=np.array([2, 2, -1], I32)), words=True)
    op("Slice", dict(input=x, begin=np.array([0], I32), size=np.array([2], I32)), words=True)
    for times in [[1, 2, 3], [0, 1, 1], [2, 1, 1], [1, 1, 2]]:
        op("Tile", dict(input=x, multiples=np.array(times, I32)))
    op("Tile", dict(input=x, multiples=np.array([1, -1, 1], I32)), words=True)
    op("Tile", dict(input=x, multiples=np.array([1, 1], I32)), words=True)
    op("Pad", dict(input=x, paddings=np.array([[0, 1], [2, 0], [1, 1]], I64)))
    op("PadV2", dict(input=x, paddings=np.array([[0, 1], [2, 0], [1, 1]], I64), constant_values=F32(7)))
    op("Pad", dict(input=x, paddings=np.array([[0, 1], [2, -1], [1, 1]], I64)), words=True)
    op("ReverseV2", dict(tensor=x, axis=np.array([0, -1], I32)))

    def strided(begin, end, strides, words=None, **masks):
        op("StridedSlice", dict(input=x, begin=np.array(begin, I32), end=np.array(end, I32),
                                strides=np.array(strides, I32)), words=words, **masks)

    strided([0], [1], [1])
    strided([1], [2], [1], shrink_axis_mask=1)
    strided([-1], [0], [1], shrink_axis_mask=1)
    strided([0, 1], [2, 3], [1, 2], begin_mask=1)
    strided([0, 2, 3], [0, 0, -5], [1, -1, -2], end_mask=1)
    strided([0, 1], [0, 3], [1, 1], ellipsis_mask=1)
    strided([0, 0], [0, 2], [1, 1], new_axis_mask=1)
    strided([0, 0, 1], [0, 0, 2], [1, 1, 1], ellipsis_mask=1, new_axis_mask=2, shrink_axis_mask=4)
    strided([1, 0, 0], [2, 0, 0], [1, 1, 1], shrink_axis_mask=1, ellipsis_mask=2, new_axis_mask=4)
    strided([], [], [])
    strided([0, 5], [2, 9], [1, 1])
    strided([-9, -2], [9, -9], [1, -1])
    strided([2], [3], [1], words="slice index 2 of dimension 0 out of bounds", shrink_axis_mask=1)
    strided([0], [3], [0], words="strides[0] must be non-zero")
    strided([0] * 4, [1] * 4, [1] * 4, words="Index out of range using input dim 3; input has only 3 dims")
    strided([0, 0], [0, 0], [1, 1], words="Multiple ellipses", ellipsis_mask=3)
    op("StridedSlice", dict(input=np.array(["a", "b", "c"]), begin=np.array([2], I32),
                            end=np.array([0], I32), strides=np.array([-1], I32)))
    op("StridedSliceGrad", dict(shape=np.array([3, 4], I32), begin=np.array([0, 1], I32),
                                end=np.array([3, 4], I32), strides=np.array([2, 2], I32),
                                dy=numbers(F32, 2, 2)))
    op("StridedSliceGrad", dict(shape=np.array([3, 4], I32), begin=np.array([1], I32),
                                end=np.array([2], I32), strides=np.array([1], I32),
                                dy=numbers(F32, 4)), shrink_axis_mask=1)
    op("StridedSliceGrad", dict(shape=np.array([3, 4], I32), begin=np.array([1], I32),
                                end=np.array([2], I32), strides=np.array([1], I32),
                                dy=numbers(F32, 3)), shrink_axis_mask=1, words=True)


def gathers():
    x = numbers(F32, 3, 4, 2)
    for axis in [0, 1, 2, -1]:
        op("GatherV2", dict(params=x, indices=np.array([[1, 0], [1, 1]], I64), axis=np.array(axis, I32)))
    op("GatherV2", dict(params=x, indices=np.array([[3, 0], [1, 1], [2, 3]], I32), axis=I32(1)), batch_dims=1)
    op("GatherV2", dict(params=x, indices=I32(2), axis=I32(0)))
    op("GatherV2", dict(params=x, indices=np.array([0, 3], I32), axis=I32(0)),
       words="indices[1] = 3 is not in [0, 3)")
    op("GatherV2", dict(params=x, indices=np.array([[0], [-1]], I32), axis=I32(0)),
       words="indices[1,0] = -1 is not in [0, 3)")
    op("Gather", dict(params=x, indices=np.array([2, 0], I32)))
    for axis in [-1, 0, 1]:
        op("OneHot", dict(indices=np.array([0, 2, -1, 5], I64), depth=I32(3), on_value=F32(2),
                          off_value=F32(-1)), axis=axis)
    op("OneHot", dict(indices=np.array([[0, 2]], np.uint8), depth=I32(3), on_value=I64(1), off_value=I64(0)))
    op("OneHot", dict(indices=np.array([0], I64), depth=I32(-1), on_value=F32(2), off_value=F32(0)), words=True)
    for c in [np.array([[True, False], [True, True]]), numbers(F32, 5), np.zeros((0, 3), bool),
              numbers(I32, 2, 3, 2)]:
        op("Where", dict(condition=c))
    op("Where", dict(condition=np.array(True)), words="Unhandled input dimensions: 0")
    for t, e in [(numbers(F32, 2, 3), positive(F32, 2, 3)),
                 (np.array([["a", "b", "c"]] * 2), np.array([["x", "y", "z"]] * 2))]:
        for c in [np.array([[True, False, True], [False, True, False]]), np.array(True), np.array([True, False])]:
            op("Select", dict(condition=c, x=t, y=e))
        for c in [np.array([[True, False, True], [False, True, False]]), np.array(True),
                  np.array([True, False, True]), np.array([[True], [False]])]:
            op("SelectV2", dict(condition=c, t=t, e=e))
        op("SelectV2", dict(condition=np.array([[[True]], [[False]]]), t=t, e=e[0, 0]))
    op("Select", dict(condition=np.array([True]), x=numbers(F32, 2), y=numbers(F32, 3)), words=True)
    op("Select", dict(condition=np.array([True]), x=numbers(F32, 2), y=numbers(F32, 2)), words=True)
    for name in ["DynamicStitch", "ParallelDynamicStitch"]:
        op(name, dict(indices=[np.array([0, 3], I32), np.array([[1], [2]], I32)],
                      data=[numbers(F32, 2, 2), numbers(F32, 2, 1, 2)]))
        op(name, dict(indices=[np.array([0, -3], I32)], data=[numbers(F32, 2, 2)]), words=True)
        op(name, dict(indices=[np.array([0, 1], I32)], data=[numbers(F32, 3, 2)]), words=True)
    for dtype in [F32, F16, I32]:
        op("UnsortedSegmentSum", dict(data=numbers(dtype, 4, 2), segment_ids=np.array([1, 0, 1, -1], I32),
                                      num_segments=I32(3)))
    op("UnsortedSegmentSum", dict(data=numbers(F32, 4), segment_ids=np.array([1, 0, 1, 3], I32),
                                  num_segments=I32(3)), words="is out of range [0, 3)")
    op("InvertPermutation", dict(x=np.array([2, 0, 1], I32)))
    op("InvertPermutation", dict(x=np.array([2, 0, 2], I32)), words=True)
    op("InvertPermutation", dict(x=np.array([3, 0, 2], I32)), words=True)


def networks():
    for name in ["Softmax", "LogSoftmax"]:
        for dtype in FLOATS:
            op(name, dict(logits=numbers(dtype, 3, 4)))
        op(name, dict(logits=numbers(F32, 2, 2, 3)))
        op(name, dict(logits=np.array([[1000, -1000, 999]], F32)))
    for dtype in FLOATS:
        labels = np.array([[0, 1, 0, 0], [.25, .25, .25, .25], [0, 0, .5, .5]], dtype)
        op("SoftmaxCrossEntropyWithLogits", dict(features=numbers(dtype, 3, 4), labels=labels))
        op("SparseSoftmaxCrossEntropyWithLogits", dict(features=numbers(dtype, 3, 4),
                                                       labels=np.array([0, 3, 2], I64)))
    op("SoftmaxCrossEntropyWithLogits", dict(features=numbers(F32, 3, 4), labels=labels[1:2].astype(F32)))
    op("SoftmaxCrossEntropyWithLogits", dict(features=numbers(F32, 3, 4), labels=numbers(F32, 3, 3)), words=True)
    op("SparseSoftmaxCrossEntropyWithLogits", dict(features=numbers(F64, 3, 4), labels=np.array([0, 3, 2], I32)))
    op("SparseSoftmaxCrossEntropyWithLogits", dict(features=numbers(F32, 3, 4), labels=np.array([0, 4, 2], I32)),
       words="Received a label value of 4 which is outside the valid range of [0, 4).")
    op("SparseSoftmaxCrossEntropyWithLogits", dict(features=numbers(F32, 3, 4), labels=np.array([0, 1], I32)),
       words="logits and labels must have the same first dimension, got logits shape [3,4] and labels shape [2]")
    for dtype in FLOATS + [I32]:
        op("BiasAdd", dict(value=numbers(dtype, 2, 3), bias=numbers(dtype, 3)))
        op("BiasAddGrad", dict(out_backprop=numbers(dtype, 2, 3)))
    op("BiasAdd", dict(value=numbers(F32, 2, 3, 4), bias=numbers(F32, 3)), data_format="NCHW")
    op("BiasAddGrad", dict(out_backprop=numbers(F32, 2, 3, 4)), data_format="NCHW")
    op("BiasAdd", dict(value=numbers(F32, 2, 3), bias=numbers(F32, 2)), words=True)
    for dtype in FLOATS:
        op("L2Loss", dict(t=numbers(dtype, 3, 4)))
    op("InTopK", dict(predictions=numbers(F32, 3, 4), targets=np.array([0, 1, 3], I32)), k=2)
    op("InTopKV2", dict(predictions=np.array([[1, 1, 0]], F32), targets=np.array([1], I64), k=I64(1)))
    for dtype in [F32, I64]:
        op("ScalarSummary", dict(tags=np.array("loss"), values=dtype(3)))
    op("ScalarSummary", dict(tags=np.array(["a", "b"]), values=numbers(F32, 2)))
    op("ScalarSummary", dict(tags=np.array(["a", "b"]), values=numbers(F32, 3)), words=True)
    parts = [tf1.Summary(value=[tf1.Summary.Value(tag=t, simple_value=v)]).SerializeToString()
             for t, v in [("a", 1.5), ("b", 2.5)]]
    op("MergeSummary", dict(inputs=[np.array(p) for p in parts]))
    op("MergeSummary", dict(inputs=[np.array(parts[0])] * 2), words="Duplicate tag a found in summary inputs")
    op("CheckNumerics", dict(tensor=numbers(F32, 3)), message="here")
    op("CheckNumerics", dict(tensor=np.array([1, np.nan], F32)), message="here", words="here : Tensor had NaN")
    op("EnsureShape", dict(input=numbers(F32, 2, 3)), shape=[None, 3])
    op("EnsureShape", dict(input=numbers(F32, 2, 3)), shape=[3, 3], words=True)
    op("Assert", dict(condition=np.array(True), data=[np.array("x")]))
    op("Assert", dict(condition=np.array(False), data=[np.array("x is"), numbers(I32, 5)]),
       words="assertion failed: [x is] [")
    op("Assert", dict(condition=np.array(False), data=[np.array([7, 8, 9, 10], I32)]),
       words="assertion failed: [7 8 9...]")
    op("StringJoin", dict(inputs=[np.array("a"), np.array(["b", "c"])]), separator="/")
    op("StringJoin", dict(inputs=[np.array(["a"]), np.array(["b", "c"])]), words=True)
    op("StaticRegexFullMatch", dict(input=np.array(["s3://x/y", "/tmp/x", ""])), pattern="^s3://.*")
    op("ShardedFilename", dict(basename=np.array("/a/b"), shard=I32(3), num_shards=I32(12)))


def randoms():
    for seeds in [(7, 11), (0, 3)]:
        for dtype in [tf.float32, tf.float64, tf.half, tf.bfloat16]:
            for name in ["RandomUniform", "RandomStandardNormal", "TruncatedNormal"]:
                case = Case(name)
                with case.graph.as_default():
                    out = getattr(raw, name)(shape=tf.constant([5, 3]), dtype=dtype, seed=seeds[0], seed2=seeds[1])
                case.start().step([out]).step([out]).end()
        for t in [tf.int32, tf.int64]:
            case = Case("RandomUniformInt")
            with case.graph.as_default():
                out = raw.RandomUniformInt(shape=tf.constant([5, 3]), minval=tf.constant(-5, t),
                                           maxval=tf.constant(1000, t), seed=seeds[0], seed2=seeds[1])
            case.start().step([out]).step([out]).end()
    case = Case("RandomUniformInt")
    with case.graph.as_default():
        out = raw.RandomUniformInt(shape=tf.constant([5]), minval=tf.constant(5), maxval=tf.constant(5), seed=1)
    case.start().step([out], words=True).end()


def shuffles():
    for x in [np.arange(13, dtype=I32), numbers(F32, 5, 2), np.array(["a", "b", "c"]), numbers(F32, 1, 3), F32(1)]:
        case = Case("RandomShuffle")
        with case.graph.as_default():
            out = raw.RandomShuffle(value=tf.constant(x), seed=7, seed2=11)
        case.start().step([out]).step([out]).step([out]).end()


def states():
    for kind in ["ref", "resource"]:
        for dtype in [F32, F64, F16, bf16, I32, I64]:
            case = Case("variable/" + kind)
            with case.graph.as_default():
                v, init, _ = variable(kind, "v", numbers(dtype, 3, 2))
                value = tf1.placeholder(tf.as_dtype(dtype))
                get = read(kind, v, dtype)
                if kind == "ref":
                    ready = raw.IsVariableInitialized(ref=v)
                    add = raw.AssignAdd(ref=v, value=value).op
                    sub = raw.AssignSub(ref=v, value=value).op
                    put = raw.Assign(ref=v, value=value).op
                else:
                    ready = raw.VarIsInitializedOp(resource=v)
                    add = raw.AssignAddVariableOp(resource=v, value=value)
                    sub = raw.AssignSubVariableOp(resource=v, value=value)
                    put = raw.AssignVariableOp(resource=v, value=value)
            x = positive(dtype, 3, 2)
            case.start().step([ready]).step([get], words=True)
            if kind == "ref":
                case.step(targets=[put], feeds={value: numbers(dtype, 4)},
                          words="Assign requires shapes of both tensors to match. lhs shape= [3,2] rhs shape= [4]")
            case.step(targets=[add], feeds={value: x}, words=True)
            case.step(targets=[init]).step([ready]).step([get])
            case.step(targets=[add], feeds={value: x}).step([get])
            case.step(targets=[sub], feeds={value: x + x}).step([get])
            case.step(targets=[add], feeds={value: numbers(dtype, 2)}, words=True)
            case.step(targets=[put], feeds={value: x}).step([get]).end()
        for name in ["Add", "Sub", "Mul", "Min", "Max", "Update"]:
            for dtype in [F32, F16, I32]:
                if name in ("Mul", "Min", "Max") and dtype == F16 and kind == "ref":
                    continue
                case = Case("Scatter" + name)
                with case.graph.as_default():
                    v, init, _ = variable(kind, "v", numbers(dtype, 4, 2))
                    indices, updates = tf1.placeholder(tf.int32), tf1.placeholder(tf.as_dtype(dtype))
                    if kind == "ref":
                        do = getattr(raw, "Scatter" + name)(ref=v, indices=indices, updates=updates).op
                    else:
                        do = getattr(raw, "ResourceScatter" + name)(resource=v, indices=indices, updates=updates)
                    get = read(kind, v, dtype)
                rows = {indices: np.array([3, 0, 3], I32), updates: positive(dtype, 3, 2)}
                case.start().step(targets=[do], feeds=rows, words=True).step(targets=[init])
                case.step(targets=[do], feeds=rows)
                case.step([get])
                case.step(targets=[do], feeds={indices: np.array([1], I32), updates: np.array(2, dtype)}).step([get])
                case.step(targets=[do], feeds={indices: np.array([4], I32), updates: positive(dtype, 1, 2)},
                          words="indices[0] = 4 is not in [0, 4)")
                case.step(targets=[do], feeds={indices: np.array([1], I32), updates: positive(dtype, 2, 2)}, words=True)
                case.end()
        case = Case("CountUpTo/" + kind)
        with case.graph.as_default():
            v, init, _ = variable(kind, "v", np.array(1, I64))
            count = raw.CountUpTo(ref=v, limit=3) if kind == "ref" else \
                raw.ResourceCountUpTo(resource=v, limit=3, T=tf.int64)
        case.start().step([count], words=True).step(targets=[init]).step([count]).step([count]).step([count], words="Reached limit of 3").end()
    case = Case("resource reads")
    with case.graph.as_default():
        v, init, _ = variable("resource", "v", numbers(F32, 3, 2))
        indices = tf1.placeholder(tf.int32)
        gather = raw.ResourceGather(resource=v, indices=indices, dtype=tf.float32)
        shape = raw.VariableShape(input=v, out_type=tf.int64)
        destroy = raw.DestroyResourceOp(resource=v, ignore_lookup_error=False)
        ready = raw.VarIsInitializedOp(resource=v)
        get = read("resource", v, F32)
    case.start().step([get], words=True).step([shape], words=True)
    case.step([gather], {indices: np.array([[2], [0]], I32)}, words=True).step(targets=[init]).step([shape])
    case.step([gather], {indices: np.array([[2], [0]], I32)})
    case.step([gather], {indices: np.array([3], I32)}, words="indices[0] = 3 is not in [0, 3)")
    case.step(targets=[destroy]).step([ready]).step(targets=[destroy], words=True).end()


# op: its slots, then its other inputs with a value each ("grad": fed), then attributes to try
APPLY = {
    "GradientDescent": (["var"], dict(alpha=.1, delta="grad"), [{}]),
    "Momentum": (["var", "accum"], dict(lr=.1, grad="grad", momentum=.9), [{}, dict(use_nesterov=True)]),
    "KerasMomentum": (["var", "accum"], dict(lr=.1, grad="grad", momentum=.9), [{}, dict(use_nesterov=True)]),
    "Adagrad": (["var", "accum"], dict(lr=.1, grad="grad"), [{}, dict(update_slots=False)]),
    "AdagradV2": (["var", "accum"], dict(lr=.1, epsilon=1e-3, grad="grad"), [{}, dict(update_slots=False)]),
    "Adadelta": (["var", "accum", "accum_update"], dict(lr=.1, rho=.9, epsilon=1e-3, grad="grad"), [{}]),
    "Adam": (["var", "m", "v"], dict(beta1_power=.9, beta2_power=.99, lr=.1, beta1=.9, beta2=.99, epsilon=1e-3,
                                     grad="grad"), [{}, dict(use_nesterov=True)]),
    "AdamWithAmsgrad": (["var", "m", "v", "vhat"], dict(beta1_power=.9, beta2_power=.99, lr=.1, beta1=.9, beta2=.99,
                                                        epsilon=1e-3, grad="grad"), [{}]),
    "AdagradDA": (["var", "gradient_accumulator", "gradient_squared_accumulator"],
                  dict(grad="grad", lr=.1, l1=.01, l2=.02, global_step=I64(3)), [{}]),
    "ProximalGradientDescent": (["var"], dict(alpha=.1, l1=.2, l2=.03, delta="grad"), [{}]),
    "ProximalAdagrad": (["var", "accum"], dict(lr=.1, l1=.2, l2=.03, grad="grad"), [{}]),
    "AddSign": (["var", "m"], dict(lr=.1, alpha=.2, sign_decay=.3, beta=.9, grad="grad"), [{}]),
    "PowerSign": (["var", "m"], dict(lr=.1, logbase=.2, sign_decay=.3, beta=.9, grad="grad"), [{}]),
    "AdaMax": (["var", "m", "v"], dict(beta1_power=.9, lr=.1, beta1=.9, beta2=.99, epsilon=1e-3, grad="grad"), [{}]),
    "RMSProp": (["var", "ms", "mom"], dict(lr=.1, rho=.9, momentum=.5, epsilon=1e-3, grad="grad"), [{}]),
    "CenteredRMSProp": (["var", "mg", "ms", "mom"], dict(lr=.1, rho=.9, momentum=.5, epsilon=2., grad="grad"), [{}]),
    "Ftrl": (["var", "accum", "linear"], dict(grad="grad", lr=.1, l1=.01, l2=.02, lr_power=-.5),
             [{}, dict(multiply_linear_by_lr=True)]),
    "FtrlV2": (["var", "accum", "linear"], dict(grad="grad", lr=.1, l1=.01, l2=.02, l2_shrinkage=.03, lr_power=-.6),
               [{}, dict(multiply_linear_by_lr=True)]),
}


def optimizers():
    for kind in ["ref", "resource"]:
        for name, (slots, inputs, variants) in APPLY.items():
            for dtype in [F32, F64, F16]:
                for attrs in variants:
                    full = ("Apply" if kind == "ref" else "ResourceApply") + name
                    if not hasattr(raw, full):
                        continue
                    case = Case(full)
                    with case.graph.as_default():
                        variables = [variable(kind, s, numbers(dtype, 5) if s == "var" else positive(dtype, 5))
                                     for s in slots]
                        grad = tf1.placeholder(tf.as_dtype(dtype))
                        arguments = {s: v[0] for s, v in zip(slots, variables)}
                        for k, v in inputs.items():
                            arguments[k] = grad if isinstance(v, str) else \
                                tf.constant(v) if isinstance(v, I64) else tf.constant(v, tf.as_dtype(dtype))
                        out = getattr(raw, full)(**arguments, **attrs)
                        do = out.op if kind == "ref" else out
                        gets = [read(kind, v[0], dtype) for v in variables]
                    case.start()
                    case.step(targets=[do], feeds={grad: numbers(dtype, 5)},
                              words=True if kind == "ref" else "Invalid variable reference.")
                    case.step(targets=[v[1] for v in variables])
                    for i in range(3):
                        case.step(targets=[do], feeds={grad: numbers(dtype, 5)[::-1] * dtype(i + 1)}).step(gets)
                    case.step(targets=[do], feeds={grad: numbers(dtype, 4)}, words=True)
                    case.end()


def trainings():
    """Whole programs: five steps of a small perceptron with each optimizer, then its weights."""
    train = tf1.train
    kinds = {
        "sgd": lambda: train.GradientDescentOptimizer(.1),
        "momentum": lambda: train.MomentumOptimizer(.1, .9),
        "nesterov": lambda: train.MomentumOptimizer(.1, .9, use_nesterov=True),
        "adam": lambda: train.AdamOptimizer(.01),
        "adagrad": lambda: train.AdagradOptimizer(.1),
        "adadelta": lambda: train.AdadeltaOptimizer(1.),
        "rms": lambda: train.RMSPropOptimizer(.01),
        "centered_rms": lambda: train.RMSPropOptimizer(.01, centered=True),
        "ftrl": lambda: train.FtrlOptimizer(.1, l1_regularization_strength=.01),
    }
    rng = np.random.RandomState(3)
    xs, ys = rng.rand(16, 8).astype(F32), rng.randint(0, 3, 16).astype(I64)
    for resource in [False, True]:
        for name, make in kinds.items():
            case = Case("train/%s/%s" % (name, "resource" if resource else "ref"))
            with case.graph.as_default():
                tf1.set_random_seed(5)
                with tf1.variable_scope("", use_resource=resource):
                    x = tf1.placeholder(tf.float32, [None, 8])
                    y = tf1.placeholder(tf.int64, [None])
                    step = train.get_or_create_global_step()
                    w1 = tf1.get_variable("w1", [8, 6], initializer=tf1.glorot_uniform_initializer())
                    b1 = tf1.get_variable("b1", [6], initializer=tf1.zeros_initializer())
                    w2 = tf1.get_variable("w2", [6, 3], initializer=tf1.truncated_normal_initializer(stddev=.1))
                    h = tf.nn.relu(tf.matmul(x, w1) + b1)
                    logits = tf.matmul(h, w2)
                    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
                    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
                    train_op = make().minimize(loss, global_step=step)
                    names = tf1.report_uninitialized_variables()
                    init = tf1.global_variables_initializer()
            with case.graph.as_default():
                weights = [tf.identity(v) for v in tf1.global_variables()]
            feeds = {x: xs, y: ys}
            case.start().step([names]).step([loss], feeds, words=True).step(targets=[init]).step([names])
            for _ in range(5):
                case.step([loss, accuracy], feeds, [train_op])
            case.step(weights).end()


ALL = [binary, unary, reductions, products, arrays, layouts, gathers, networks, randoms, shuffles, states, optimizers, trainings]
