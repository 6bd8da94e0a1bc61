# SPDX-License-Identifier: Apache-2.0
"""Records what TensorFlow does with odd inputs: what can't be compared, is empty, is there twice, isn't a number, or has
another rank than it should."""
from recording import *

NAN, INF = np.nan, np.inf


def f32(*values):
    return np.array(values, F32)


def not_a_number():
    for dtype in [F32, F64, F16, bf16]:
        x, y = np.array([NAN, 1, NAN, 2], dtype), np.array([1, NAN, NAN, 3], dtype)
        for name in ["Minimum", "Maximum"]:
            op(name, dict(x=x, y=y))
            op(name, dict(x=x, y=np.array(NAN, dtype)))
            op(name, dict(x=np.array(1, dtype), y=y))
        op("ReluGrad", dict(gradients=np.array([2, NAN, -INF, INF, 1], dtype), features=np.array([NAN, -1, -1, 1, 0], dtype)))
        op("Relu6Grad", dict(gradients=np.array([2, NAN, -INF, INF, 1], dtype), features=np.array([NAN, -1, 7, 1, 6], dtype)))
        data = np.array([[v, v] for v in [NAN, 1, 2, 3, NAN, 5, NAN, NAN]], dtype)
        ids = np.array([0, 0, 1, 1, 1, 2, 2, 3], I32)
        for name in ["Min", "Max"]:
            op("Segment" + name, dict(data=data, segment_ids=ids))
            op("UnsortedSegment" + name, dict(data=data, segment_ids=ids, num_segments=np.int32(5)))
            op(name, dict(input=data, axis=np.array([0], I32)))
            op(name, dict(input=data, axis=np.array([1], I32)))
            if dtype is not bf16:
                op("TensorScatter" + name, dict(tensor=np.array([NAN, 1, 1, NAN], dtype),
                                                indices=np.array([[0], [1], [2], [2], [3]], I32),
                                                updates=np.array([1, NAN, NAN, 3, NAN], dtype)))
    places = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [3, 0], [3, 1], [3, 2]], I64)
    op("SparseReduceMax", dict(input_indices=places, input_values=f32(NAN, 1, 2, NAN, NAN, 1, NAN, 3),
                               input_shape=np.array([4, 3], I64), reduction_axes=np.array([1], I32)))
    line = np.array([[0], [1], [2], [3]], I64)
    for name in ["SparseSparseMaximum", "SparseSparseMinimum"]:
        op(name, dict(a_indices=line, a_values=f32(NAN, 1, NAN, 5), a_shape=np.array([5], I64),
                      b_indices=line + 1, b_values=f32(1, NAN, NAN, NAN), b_shape=np.array([5], I64)))
    for low, high in [(1.5, 2.5), (NAN, 2.5), (1.5, NAN), (5, 1)]:
        op("ClipByValue", dict(t=f32(NAN, 1, 2, 3), clip_value_min=np.float32(low), clip_value_max=np.float32(high)))
    for matrix in [[[INF, 0], [0, 1]], [[NAN, 0], [0, 1]], [[-INF, 0], [0, 1]], [[0, 0], [0, 1]], [[1, 0], [0, INF]]]:
        op("LogMatrixDeterminant", dict(input=np.array(matrix, F64)))
    for kind in ["ref", "resource"]:
        for name in ["Min", "Max"]:
            case = Case("Scatter%s of NaN, %s" % (name, kind))
            with case.graph.as_default():
                v, init, _ = variable(kind, "v", f32(NAN, 1, 1, NAN))
                arguments = dict(indices=np.array([0, 1, 2, 2, 3]), updates=f32(1, NAN, NAN, 3, NAN))
                with tf.control_dependencies([init]):
                    done = raw.ScatterMin(ref=v, **arguments).op if (kind, name) == ("ref", "Min") else \
                        raw.ScatterMax(ref=v, **arguments).op if kind == "ref" else \
                        getattr(raw, "ResourceScatter" + name)(resource=v, **arguments)
                with tf.control_dependencies([done]):
                    value = read(kind, v, F32)
            case.start().step([value]).end()


def divisions():
    for dtype in [F32, F64, F16, bf16]:
        op("TruncateDiv", dict(x=np.array([15, -15, 7.5, INF, NAN], dtype), y=np.array([4, 4, -2, 2, 1], dtype)))
    for name in ["Div", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod", "Mod"]:
        for dtype in [I32, I64]:
            op(name, dict(x=np.zeros([0], dtype), y=np.array(0, dtype)))
            op(name, dict(x=np.zeros([0, 3], dtype), y=np.array([1, 0, 2], dtype)))
    op("Pow", dict(x=np.zeros([0, 3], I32), y=np.array([1, -1, 0], I32)))
    op("ReluGrad", dict(gradients=np.array([1, 2, 3], I32), features=np.array([-1, 0, 2], I32)))
    op("Relu6Grad", dict(gradients=np.array([1, 2, 3], np.int8), features=np.array([-1, 7, 2], np.int8)))


def repeated():
    twice = np.array([[0], [0], [2]], I32)
    op("ScatterNd", dict(indices=twice, updates=np.array([True, True, False]), shape=np.array([3], I32)))
    op("ScatterNd", dict(indices=twice, updates=np.array(["a", "bc", ""]), shape=np.array([3], I32)))
    op("ScatterNd", dict(indices=np.array([[1, 0], [1, 0], [0, 1]], I64), updates=np.array(["x", "y", "z"]),
                         shape=np.array([2, 2], I64)))
    op("ScatterNd", dict(indices=np.array([[0], [1], [0]], I32), updates=np.array([["a", "b"], ["c", "d"], ["e", ""]]),
                         shape=np.array([2, 2], I32)))
    op("ScatterNd", dict(indices=np.zeros([0, 1], I32), updates=np.array([], object), shape=np.array([2], I32)))
    op("DecodeRaw", dict(bytes=np.array([b"\x00\x01\x02\xff"])), out_type=tf.bool)
    op("TensorScatterUpdate", dict(tensor=np.array(["a", "b"]), indices=np.array([[1], [1]], I32), updates=np.array(["x", "y"])))


def policies():
    outside = np.array([[0], [5], [-1], [1]], I32)
    for policy in ["", "DEFAULT", "ERROR", "IGNORE"]:
        words = None if policy == "IGNORE" else "does not index into"
        op("GatherNd", dict(params=f32(1, 2), indices=outside), words=words, bad_indices_policy=policy)
        op("ScatterNd", dict(indices=outside, updates=f32(1, 2, 3, 4), shape=np.array([3], I32)), words=words,
           bad_indices_policy=policy)
        op("ScatterNd", dict(indices=outside, updates=np.array(["a", "b", "c", "d"]), shape=np.array([3], I32)), words=words,
           bad_indices_policy=policy)
        for name in ["Update", "Add", "Max"]:
            op("TensorScatter" + name, dict(tensor=f32(1, 2), indices=outside, updates=f32(7, 8, 9, 10)), words=words,
               bad_indices_policy=policy)
    op("ScatterNd", dict(indices=outside, updates=f32(1, 2, 3, 4), shape=np.array([3], I32)),
       words="Unknown bad indices handling attribute: FOO", bad_indices_policy="FOO")


def gathered_by_batch():
    for kind, dims, shape in [(F32, 1, (2, 2)), (F32, 1, (2,)), (np.int32, 0, (2, 3))]:
        case = Case("ResourceGather, batch_dims %d of %s" % (dims, shape))
        with case.graph.as_default():
            v, init, _ = variable("resource", "v", numbers(kind, 2, 3))
            with tf.control_dependencies([init]):
                out = raw.ResourceGather(resource=v, indices=np.arange(np.prod(shape), dtype=I32).reshape(shape) % 2,
                                         dtype=tf.as_dtype(kind), batch_dims=dims)
        case.start().step([out]).end()


def texts_as_values():
    for a, b in [((2, 2), (2, 2)), ((2, 1), (3,)), ((), (2,)), ((0,), (1,))]:
        x = np.array(["a%d" % i for i in range(int(np.prod(a)))], object).reshape(a)
        y = np.array(["é", "", "z", "w"][:int(np.prod(b))], object).reshape(b)
        op("Add", dict(x=x, y=y))
    op("Add", dict(x=np.array(["a", "b"]), y=np.array(["a", "b", "c"])), words="Incompatible shapes: [2] vs. [3]")
    op("Relu", dict(features=f32(NAN, -1)))
    case = Case("StringJoin of nothing")
    with case.graph.as_default():
        out = raw.StringJoin(inputs=[])
    case.start().step([out]).end()
    for value in [np.array(["a", "b", "c"]), np.array([True, False, True])]:
        for kind in ["ref", "resource"]:
            case = Case("ScatterUpdate of %s, %s" % (value.dtype, kind))
            with case.graph.as_default():
                t = tf.string if value.dtype.kind == "U" else tf.bool
                if kind == "ref":
                    v = raw.VariableV2(shape=[3], dtype=t, name="v", container="", shared_name="")
                    init = raw.Assign(ref=v, value=tf.constant(value)).op
                else:
                    v = raw.VarHandleOp(shape=[3], dtype=t, name="v", container="", shared_name="v")
                    init = raw.AssignVariableOp(resource=v, value=tf.constant(value))
                update = tf.constant(value[[1, 0]])
                with tf.control_dependencies([init]):
                    done = raw.ScatterUpdate(ref=v, indices=[0, 2], updates=update).op if kind == "ref" else \
                        raw.ResourceScatterUpdate(resource=v, indices=[0, 2], updates=update)
                with tf.control_dependencies([done]):
                    out = tf.identity(v) if kind == "ref" else raw.ReadVariableOp(resource=v, dtype=t)
            case.start().step([out]).end()
    for value, shape in [(np.array(["x"]), [0]), (np.array(["x", "y"]), []), (f32(1, 2, 3), [2]), (np.array([1, 2], I64), [0]),
                         (np.array([True, False, True]), [1])]:
        case = Case("Const with spare values, %s of %s" % (value.dtype, shape))
        with case.graph.as_default():
            proto = tf.make_tensor_proto(value)
            if value.dtype.kind != "U":
                proto.tensor_content = b""
                getattr(proto, {"f": "float_val", "i": "int64_val", "b": "bool_val"}[value.dtype.kind]).extend(value.tolist())
            proto.tensor_shape.CopyFrom(tf.TensorShape(shape).as_proto())
            attr = tf1.AttrValue(tensor=proto)
            node = case.graph.create_op("Const", [], [tf.as_dtype(proto.dtype)], attrs={
                "value": attr, "dtype": tf1.AttrValue(type=proto.dtype)}, name="c")
            out = tf.identity(node.outputs[0])
        case.start().step([out]).end()


def cut_sparsely():
    indices, values = np.array([[0, 0], [1, 1], [2, 1]], I64), f32(1, 2, 4)
    for axis in [-2, -1, 0, 1]:
        op("SparseSplit", dict(split_dim=np.int64(axis), indices=indices, values=values, shape=np.array([3, 2], I64)), num_split=2)
    for bad in [-3, 2]:
        op("SparseSplit", dict(split_dim=np.int64(bad), indices=indices, values=values, shape=np.array([3, 2], I64)), words=True,
           num_split=2)
    for outside in [[0, 9], [5, 1], [-1, 0]]:
        op("SparseSplit", dict(split_dim=np.int64(0), indices=np.array([[0, 0], outside], I64), values=f32(1, 2),
                               shape=np.array([3, 2], I64)), words="out of bounds", num_split=2)


def wrong_ranks():
    x = numbers(F32, 2, 3)
    one = np.array([1], I32)
    op("ConcatOffset", dict(concat_dim=np.int32(0), shape=[np.array([[2, 3]], I32), np.array([[4, 3]], I32)]), words=True)
    op("Slice", dict(input=numbers(F32, 3), begin=np.int32(0), size=np.int32(1)), words=True)
    op("Tile", dict(input=numbers(F32, 3), multiples=np.int32(2)), words=True)
    op("Transpose", dict(x=numbers(F32, 3), perm=np.int32(0)), words=True)
    op("BroadcastArgs", dict(s0=np.array([2], I32), s1=np.int32(2)), words=True)
    op("BroadcastGradientArgs", dict(s0=np.array([2], I32), s1=np.int32(2)), words=True)
    for name in ["UnsortedSegmentSum", "UnsortedSegmentMax"]:
        op(name, dict(data=x, segment_ids=np.array([0, 1], I32), num_segments=np.array([2], I32)), words=True)
    op("GatherV2", dict(params=x, indices=one, axis=np.array([0], I32)), words=True)
    op("OneHot", dict(indices=one, depth=np.array([3], I32), on_value=np.float32(1), off_value=np.float32(0)), words=True)
    op("OneHot", dict(indices=one, depth=np.int32(3), on_value=f32(1), off_value=np.float32(0)), words=True)
    op("ArgMax", dict(input=x, dimension=np.array([0], I32)), words=True)
    op("Split", dict(axis=np.array([0], I32), value=x), words=True, num_split=2)
    op("LinSpace", dict(start=np.float32(0), stop=np.float32(1), num=np.array([3], I32)), words=True)
    op("MatrixBandPart", dict(input=x, num_lower=np.array([0], I64), num_upper=np.int64(0)), words=True)
    op("TopKV2", dict(input=x, k=np.array([2], I32)), words=True)
    op("RegexReplace", dict(input=np.array(["a"]), pattern=np.array(["a"]), rewrite=np.array("b")), words=True)
    op("StridedSlice", dict(input=numbers(F32, 3), begin=one, end=np.int32(3), strides=one), words=True)
    op("BroadcastTo", dict(input=one, shape=np.int32(2)), words=True)
    op("SplitV", dict(value=x, size_splits=np.array([[1, 1]], I32), axis=np.int32(0)), words=True, num_split=2)
    op("ReverseV2", dict(tensor=x, axis=np.int32(0)), words=True)
    op("SparseToDense", dict(sparse_indices=one, output_shape=np.array([3], I32), sparse_values=np.float32(1),
                             default_value=f32(0)), words=True)
    op("Range", dict(start=np.array([0], I32), limit=np.array([3], I32), delta=np.array([1], I32)))
    op("ConcatV2", dict(values=[x, x], axis=np.array([0], I32)))
    op("SplitV", dict(value=x, size_splits=np.array([1, 1], I32), axis=np.array([0], I32)), num_split=2)
    op("ExpandDims", dict(input=x, axis=np.array([0], I32)))


def by_number_of_elements():
    """What TensorFlow compares by the number of elements alone, or as one flat row."""
    for name in ["TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"]:
        for dtype in [F32, bf16, np.complex64]:
            op(name, dict(y=positive(dtype, 1, 4), dy=numbers(dtype, 4)))
        op(name, dict(y=positive(F32, 4), dy=numbers(F32, 2, 2)))
        op(name, dict(y=np.zeros([0, 3], F32), dy=np.zeros([0], F32)))
        op(name, dict(y=f32(1), dy=f32(1, 2)), words=True)
    for arr, weights in [([1, 3, 1, 2], [[6, 5, 2, 3]]), ([[1, 3], [1, 2]], []), ([[1, 3], [1, 2]], [6, 5, 2, 3]), ([1, 3], [6, 5, 2])]:
        op("Bincount", dict(arr=np.array(arr, I32), size=np.int32(3), weights=np.array(weights, I64)), words=len(weights) == 3)
    for shape, labels in [((3,), (3, 3)), ((), (2, 3)), ((2, 3), (1,)), ((1, 3), ()), ((3,), (3,)), ((1, 2, 3), (2, 3))]:
        op("SoftmaxCrossEntropyWithLogits", dict(features=numbers(F32, *shape), labels=positive(F32, *labels)),
           words=(shape, labels) in [((3,), (3,)), ((1, 2, 3), (2, 3))])
    x = numbers(np.complex128, 1, 2, 3)
    for y in [(1, 2, 4, 3), (2, 3, 2), (3, 2)]:
        op("BatchMatMul", dict(x=x, y=numbers(np.complex128, *y)), words=True)
        op("BatchMatMulV2", dict(x=numbers(F32, 1, 2, 3), y=numbers(F32, *y)), words=y == (1, 2, 4, 3))
    for name in ["num_buckets", "strong_hash"]:
        inputs = dict(indices=[np.array([[0, 0], [1, 0]], I64)], values=[np.array(["a", "b"])], shapes=[np.array([2, 1], I64)],
                      dense_inputs=[], num_buckets=np.int64(11), strong_hash=np.bool_(False), salt=np.array([3, 17], I64))
        for shape in [[1], [1, 1]]:
            op("SparseCrossHashed", {**inputs, name: np.reshape(inputs[name], shape)})
    for shape, layout in [((2, 3, 2, 4), "NCDHW"), ((2, 2, 3, 2, 3), "NCHW"), ((2, 2, 3, 2, 3), "NHWC")]:
        three = dict(scale=f32(6, 5, 2), offset=f32(1, -4, 2), mean=f32(), variance=f32())
        op("FusedBatchNormV3", dict(x=numbers(F32, *shape), **three), data_format=layout, epsilon=.01)


def not_finite():
    for dtype in [F32, F64]:
        rows = np.array([[-4, NAN, 2.5, 3, 4, -1], [-2, -1, NAN, INF, INF, INF], [NAN] * 6], dtype)
        values = np.array([[3, 5, NAN, -3], [-INF, INF, NAN, 0], [NAN, 1, -INF, INF]], dtype)
        op("UpperBound", dict(sorted_inputs=rows, values=values))
        op("LowerBound", dict(sorted_inputs=rows, values=values))
        for row in [[NAN, 2, 3], [NAN, NAN, NAN], [NAN, -INF, 5, NAN], [INF, INF, -INF], [-INF, -INF, -3e38], [1, NAN, 0]]:
            op("ArgMax", dict(input=np.array(row, dtype), dimension=np.int32(0)))
            op("ArgMin", dict(input=np.array(row, dtype), dimension=np.int32(0)))
        for row in [[INF, INF, INF], [1, -INF, 2], [NAN, 1, 2], [-INF, -INF, -INF], [INF, 1, 2]]:
            for labels in [[0, 0, 0], [.5, 0, .5]]:
                op("SoftmaxCrossEntropyWithLogits", dict(features=np.array([row], dtype), labels=np.array([labels], dtype)))
        for matrix in [[[0, 0], [NAN, 1]], [[NAN, 0], [0, 0]], [[0, NAN], [0, 1]], [[0, 0], [0, NAN]], [[1, 2], [NAN, 0]]]:
            op("LogMatrixDeterminant", dict(input=np.array(matrix, dtype)))
        for row in [[NAN, 1, 2], [1, NAN, 2], [1, 2, NAN]]:
            for exclusive, reverse in [(False, False), (True, False), (False, True), (True, True)]:
                op("CumulativeLogsumexp", dict(x=np.array(row, dtype), axis=np.int32(0)), exclusive=exclusive, reverse=reverse)
        for start, stop, n in [(-1, INF, 2), (-1, -INF, 4), (-INF, INF, 3), (INF, 1, 1), (1, NAN, 1)]:
            op("LinSpace", dict(start=dtype(start), stop=dtype(stop), num=np.int32(n)))
    x = numbers(F32, 2, 2, 3, 3)
    for scale in [f32(0, -INF, 2), f32(INF, 5, NAN)]:
        op("FusedBatchNormV3", dict(x=x, scale=scale, offset=f32(5, -4, 0), mean=f32(), variance=f32()), epsilon=.01)
    x[0, 0, 0] = [1e30, 1, -1e25]
    op("FusedBatchNormV3", dict(x=x, scale=f32(6, 5, 2), offset=f32(5, -4, 1), mean=f32(), variance=f32()), epsilon=.01)
    for dtype in [np.uint8, np.uint16, np.uint32, np.int16]:
        top = np.iinfo(dtype).max
        op("EuclideanNorm", dict(input=np.array([[3, 5, top - 3], [top - 1, 0, top]], dtype), axis=np.array([1], I32)))


def denormals():
    """TensorFlow's threads take them as zero, and return zero for them. (Functions of the C library, as log (), look at the bits and
    don't; what TensorFlow's do differs by type.)"""
    for dtype, tiny, huge in [(F32, 1e-40, 1e38), (F64, 1e-310, 1e300)]:
        small = np.array([tiny, -tiny, 0, 1, 3e-38 if dtype == F32 else 3e-308], dtype)
        for name in ["Mul", "Div", "RealDiv", "DivNoNan", "Xdivy", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Equal", "NotEqual", "Less"]:
            op(name, dict(x=small, y=np.array([huge, tiny, tiny, tiny, tiny], dtype)))
            op(name, dict(x=small, y=np.zeros(5, dtype)))
        for name in ["Sign", "Reciprocal", "Inv", "Sqrt", "Rsqrt", "Log1p", "Lgamma", "Digamma", "Exp", "Rint", "Abs", "Neg", "Floor", "Ceil", "IsFinite"]:
            op(name, dict(x=small))
        op("Cast", dict(x=small), DstT=tf.bool)
        op("Where", dict(condition=small))
        op("ArgMax", dict(input=np.array([0, tiny, -tiny], dtype), dimension=np.int32(0)))
        op("MatMul", dict(a=small[None], b=np.full((5, 1), huge / 1e3, dtype)))
        case = Case("MadeDenormal")
        with case.graph.as_default():
            x = tf1.placeholder(dtype)
            made = raw.Mul(x=x, y=tf.constant(dtype(1e-5)))
            back = raw.Mul(x=made, y=tf.constant(dtype(huge)))
        case.start().step([back], {x: small})
        case.end()


def sparse_bounds():
    """What TensorFlow checks of sparse indices and shapes, and what it doesn't."""
    outside = [[[0, 1], [1, -7]], [[0, 1], [2**62, 3]], [[-1, 0], [0, 0]]]
    two, inside, shape = f32(1, 2), np.array([[0, 0], [0, 3]], I64), np.array([3, 4], I64)
    for rows in outside:
        rows = np.array(rows, I64)
        for name in ["SparseSparseMaximum", "SparseSparseMinimum"]:
            op(name, dict(a_indices=rows, a_values=two, a_shape=shape, b_indices=inside, b_values=two, b_shape=shape), words=True)
            op(name, dict(a_indices=inside, a_values=two, a_shape=shape, b_indices=rows, b_values=two, b_shape=shape), words=True)
        op("SparseReshape", dict(input_indices=rows, input_shape=shape, new_shape=np.array([-1, 4], I64)))
        op("SparseReshape", dict(input_indices=rows, input_shape=shape, new_shape=np.array([2, 6], I64)))
        op("SparseReorder", dict(input_indices=rows[::-1], input_values=two, input_shape=shape))
    op("SparseReshape", dict(input_indices=inside, input_shape=np.array([0, 4], I64), new_shape=np.array([4, 0], I64)), words=True)
    for sizes in [[4, 2**62], [-2, 3], [0, 3]]:
        op("SparseReorder", dict(input_indices=inside[::-1], input_values=two, input_shape=np.array(sizes, I64)))
    for start, size in [([-2, 0], [9, 9]), ([-2**63, 1], [1, 3]), ([-2**63, 1], [9, 3]), ([5, 0], [-1, 4]), ([0, 0], [9, 20]), ([0, 3], [3, 1]), ([0, 5], [3, -7])]:
        op("SparseSlice", dict(indices=np.array([[0, 1], [2, 3]], I64), values=two, shape=shape, start=np.array(start, I64),
                               size=np.array(size, I64)), words=size[1] < 0)
    op("SparseSlice", dict(indices=np.array([[0, 1], [2, 9]], I64), values=two, shape=shape, start=np.array([0, 5], I64),
                           size=np.array([3, 9], I64)))
    op("SparseSlice", dict(indices=inside, values=two, shape=shape, start=np.array([1, 0], I64), size=np.array([-1, 4], I64)), words=True)
    op("SparseSlice", dict(indices=inside, values=two, shape=np.array([2**62, 4], I64), start=np.array([0, 0], I64),
                           size=np.array([3, 4], I64)), words=True)
    for set_shape in [[2, 2, 2**62]]:
        op("SetSize", dict(set_indices=np.array([[0, 0, 1]], I64), set_values=np.array([1], I64), set_shape=np.array(set_shape, I64)),
           words=True)
    for rows in [1, 2, 3]:
        op("SparseSliceGrad", dict(backprop_val_grad=f32(1, 2), input_indices=inside, input_start=np.array([0, 0], I64),
                                   output_indices=np.array([[0, 0], [0, 3], [1, 1]], I64)[:rows]), words=rows != 2)
    for sizes in [[-2, 5], [3, -1], [3, 2**62]]:
        op("SparseConcat", dict(indices=[inside, inside], values=[two, two], shapes=[shape, np.array(sizes, I64)]), words=True, concat_dim=1)
    for name in ["SparseReduceSum", "SparseReduceMax"]:
        for axis in [0, 1]:
            op(name, dict(input_indices=np.array([[0, 1], [-2, -9]], I64), input_values=two, input_shape=shape,
                          reduction_axes=np.array([axis], I32)), words=True)
    for dense, place in [([1, 2, 0], 1), ([1, 2, 0], 2), ([1, 2, -0.], 2)]:
        for dtype in [F32, np.complex64, I32]:
            op("SparseDenseCwiseDiv", dict(sp_indices=np.array([[0, place]], I64), sp_values=np.array([1], dtype),
                                           sp_shape=np.array([1, 3], I64), dense=np.array(dense, dtype)), words=place == 2)
    for adjoint in [False, True]:
        op("SparseTensorDenseMatMul", dict(a_indices=np.array([[0, -9], [2, 0]], I64), a_values=two, a_shape=np.array([3, 0], I64),
                                           b=np.zeros([3 if adjoint else 0, 5], F32)), adjoint_a=adjoint)
    for rows in [[[0, 0, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 1]]]:
        op("SparseToSparseSetOperation", dict(
            set1_indices=np.array(rows, I64), set1_values=np.array([1, 3], I64), set1_shape=np.array([2, 2, 3], I64),
            set2_indices=np.array([[0, 0, 1]], I64), set2_values=np.array([1], I64), set2_shape=np.array([2, 2, 3], I64)),
           words=rows[1] <= rows[0], set_operation="union")


def loose_checks():
    """What else TensorFlow accepts, or refuses, that one might not expect."""
    x, one = numbers(F32, 2, 3), np.array([[-1]], I32)
    op("Reshape", dict(tensor=np.array("a"), shape=one), words=True)
    op("Fill", dict(dims=np.array([[2, 3]], I32), value=np.float32(1)), words=True)
    op("HistogramFixedWidth", dict(values=f32(1, NAN), value_range=f32(0, 2), nbins=np.int32(4)), words=True)
    for dtype in [np.int8, np.uint8, np.int16, np.uint16, np.uint32, I32, I64, F16]:
        for name in ["Min", "Max", "Sum", "Prod"]:
            op(name, dict(input=np.zeros([0, 2], dtype), axis=np.array([0], I32)))
    for name in ["UniqueV2", "UniqueWithCountsV2"]:
        for axis in [np.array([], I32), np.int32(0), np.array([[0]], I32), np.zeros([0, 1], I32)]:
            op(name, dict(x=np.array([4, 1, 4], I32), axis=axis), words=axis.ndim != 1)
    for padding in [np.float32(7), f32(7)]:
        op("MatrixDiagV3", dict(diagonal=x, k=np.array([0], I32), num_rows=np.int32(-1), num_cols=np.int32(-1), padding_value=padding),
           words=padding.ndim == 1)
        op("MatrixDiagPartV3", dict(input=x, k=np.array([-1, 0], I32), padding_value=padding))
    for rows, columns in [([4], -1), (4, [-1])]:
        op("MatrixDiagV3", dict(diagonal=x, k=np.array([0], I32), num_rows=np.array(rows, I32), num_cols=np.array(columns, I32),
                                padding_value=np.float32(0)), words=True)
    op("ReverseV2", dict(tensor=np.float32(3), axis=np.int32(0)))
    op("ReverseV2", dict(tensor=np.zeros([0, 2], F32), axis=np.array([9], I32)))
    for name in ["Div", "RealDiv", "FloorDiv", "TruncateDiv", "Mod", "FloorMod", "TruncateMod"]:
        op(name, dict(x=np.array([1, 2], I32), y=np.array([0, 1], I32)), words=True)
    for indices in [-7, [-7, 2, 5], [6], []]:
        op("UnravelIndex", dict(indices=np.array(indices, I32), dims=np.array([2, 3], I32)), words=indices in ([6], []))
    for shift, axis in [(1, -2**63), (2**63 - 1, 0), (-2**63, 0), (2**31, 0), (2**32 + 1, 0), (-5, 0)]:
        op("Roll", dict(input=np.array(["a", "b", "c"]), shift=np.int64(shift), axis=np.int64(axis)))
    for encoding in ["", "utf-8", "latin-1"]:
        for name in ["StringUpper", "StringLower"]:
            op(name, dict(input=np.array(["\u00e9", "aB"])), words=encoding == "latin-1", encoding=encoding)
    for style in [dict(precision=3), dict(scientific=True), dict(shortest=True), dict(width=5, fill="-"), dict(width=5, precision=1),
                  dict(width=5, precision=2, fill="-"), dict(width=0, precision=1)]:
        op("AsString", dict(input=np.array(["3.2", ""])), **style)
    for unit in ["BYTE", "UTF8_CHAR"]:
        for size in [-1, -2**31]:
            op("Substr", dict(input=np.array(["Hello", "abc"]), pos=np.int32(2), len=np.int32(size)), unit=unit)
    for indices in [np.array([[0, 3]], I32), np.zeros([0, 2], I32)]:
        op("GatherNd", dict(params=np.zeros([1, 4, 0], F32), indices=indices), words=len(indices) > 0)
    op("TensorStridedSliceUpdate", dict(input=x, begin=np.array([1, 0], I32), end=np.array([2, 3], I32),
                                        strides=np.array([1, -2**31], I32), value=numbers(F32, 2, 2)))
    for name in ["Sum", "Mean", "SqrtN"]:
        for version, size in [("Grad", "output_dim0"), ("GradV2", "dense_output_dim0")]:
            for ids, n in [([0, 0, 3, 2, 3], 5), ([0, 0, 1, 2, 3], 0), ([0, 0, -1, 2, 3], 5), ([0, 0, 1, 2, 4], 5), ([0, 0, 1, 2, 3], 2)]:
                op("SparseSegment%s%s" % (name, version), {
                    "grad": numbers(F32, 4, 3), "indices": np.array([3, 0, 0, 2, 1], I32), "segment_ids": np.array(ids, I32),
                    size: np.int32(n)}, words=n > 0 and (min(ids) < 0 or max(ids) > 3 or n == 2))
    for name, first in [("ScatterNd", dict(shape=np.array([2, 3], I32))), ("TensorScatterAdd", dict(tensor=x)),
                        ("TensorScatterUpdate", dict(tensor=x)), ("ScatterNdNonAliasingAdd", dict(input=x))]:
        op(name, dict(indices=np.array([1], I32), updates=f32(1, 2, 3), **first), words=True)
    op("TensorScatterAdd", dict(tensor=np.zeros([0, 2], F32), indices=np.array([], I32), updates=np.zeros([0, 2], F32)))
    op("SplitV", dict(value=x, size_splits=np.array([-1, 1], I64), axis=np.array([[0]], I32)), num_split=2)
    op("SparseSegmentMean", dict(data=x, indices=np.array([0, 1], I32), segment_ids=np.array([0, 2**31 - 1], I32)), words=True)
    op("MatrixBandPart", dict(input=numbers(F32, 3, 4), num_lower=np.int64(-2**63), num_upper=np.int64(0)))
    op("Bucketize", dict(input=f32(NAN, 1, 5, -INF)), boundaries=[0., 2.])
    for axis, shape in [(0, [3, 0, 2]), (0, [0, 2]), (1, [3, 0, 2])]:
        op("GatherV2", dict(params=np.zeros(shape, F32), indices=np.array([9, -1], I32), axis=np.int32(axis)), words=shape == [0, 2] or axis == 1)
    op("UnravelIndex", dict(indices=np.int32(-7), dims=np.array([-2, 3], I32)), words=True)
    op("HistogramFixedWidth", dict(values=f32(1, NAN), value_range=f32(0, 2), nbins=np.int32(1)))
    op("SparseSegmentSumGradV2", dict(grad=numbers(F32, 4, 3), indices=np.array([3, 0], I32), segment_ids=np.array([0, 0, 1], I32),
                                      dense_output_dim0=np.int32(0)), words=True)
    op("FusedBatchNormV3", dict(x=numbers(F32, 2, 2, 2, 3), scale=f32(6, 5, 2), offset=f32(1, -4, 2), mean=f32(),
                                variance=np.zeros([1, 0], F32)), words=True)
    op("SparseConcat", dict(indices=[np.zeros([1, 1, 2], I64), np.zeros([1, 2], I64)], values=[f32(1)] * 2, shapes=[np.array([1, 1], I64), np.array([3, 2**62], I64)]),
       words=True, concat_dim=1)
    op("SparseConcat", dict(indices=[np.zeros([1, 2], I64)] * 2, values=[f32(1)] * 2, shapes=[np.array([], I64), np.array([3, 2**62], I64)]),
       words=True, concat_dim=1)
    for matrix in [[[NAN, 0], [0, 1]], [[1, 0], [NAN, 1]], [[1, 2], [4, NAN]], [[1, NAN], [0, 1]]]:
        op("MatrixInverse", dict(input=np.array(matrix, F64)), words=np.isnan(matrix[0][0]))
        op("MatrixSolve", dict(matrix=np.array(matrix, F64), rhs=np.ones([2, 1])), words=np.isnan(matrix[0][0]))
    dy = numbers(F32, 2, 3, 2, 2)
    op("FusedBatchNormGradV3", dict(y_backprop=dy, x=dy, scale=f32(1, 2, 3), reserve_space_1=f32(1, 2, 3), reserve_space_2=f32(1, 2, 3),
                                    reserve_space_3=f32()), words=True, data_format="NCHW", is_training=False)
    for dtype in [np.float32, np.int64]:
        op("Fill", dict(dims=np.array([2**62], I64), value=dtype(1)), words=True)
    for matrix in [[[0, 0], [0, 0]], [[1, 1], [1, 1]], [[NAN, 0], [0, 1]]]:
        for dtype in [F32, np.complex64]:
            op("MatrixSolve", dict(matrix=np.array(matrix, dtype), rhs=np.zeros([2, 0], dtype)))
    for unit in ["BYTE", "UTF8_CHAR"]:
        for pos, size in [(-2, -1), (-2, 0), (-2, 9), (2, -1), (0, -1), (-6, -1)]:
            op("Substr", dict(input=np.array(["h\u00e9llo"]), pos=np.int32(pos), len=np.int32(size)),
               words=pos == -2 and size == -1 and unit == "UTF8_CHAR" or pos == -6 and unit == "UTF8_CHAR", unit=unit)
    two, inside, shape = f32(1, 2), np.array([[0, 0], [0, 3]], I64), np.array([3, 4], I64)
    for values in [np.float32(1), np.ones([2, 1], F32)]:
        op("SparseConcat", dict(indices=[inside] * 2, values=[two, values], shapes=[shape, np.array([3, 2**62], I64)]),
           words="Input values should be a vector", concat_dim=1)
    for sizes in [[shape, np.int64(-2)], [shape, shape[:, None]], [np.array([3, 2**62], I64), np.int64(-2)]]:
        op("SparseConcat", dict(indices=[inside] * 2, values=[two] * 2, shapes=sizes), words=True, concat_dim=1)
    for prefix in ["/usr", ["/usr"], [["/usr"]]]:
        op("RestoreV2", dict(prefix=np.array(prefix), tensor_names=np.array(["a"]), shape_and_slices=np.array([""])),
           words="Unable to open table file /usr", dtypes=[tf.float32])
    op("RestoreV2", dict(prefix=np.array(["a", "b"]), tensor_names=np.array(["a"]), shape_and_slices=np.array([""])),
       words="Input prefix should have a single element, got 2", dtypes=[tf.float32])
    for indices, updates in [([[1]], f32(1, 2)), ([[1]], f32(1)), ([[1, 0]], f32(1)), ([[-1]], f32(1))]:
        op("ScatterNd", dict(indices=np.array(indices, I64), updates=updates, shape=np.array([2**50], I64)), words=True)
    for name in ["DynamicStitch", "ParallelDynamicStitch"]:
        for index, data in [(2**31 - 1, np.ones([1, 2], F64)), (2**31 - 1, np.ones([2, 2])), (2**31 - 1, np.ones([1, 0])), (-1, np.ones([1, 0]))]:
            op(name, dict(indices=[np.array([index], I32)], data=[data]), words=True)
    for name in ["ArgMin", "ArgMax"]:
        for axis in [2**63 - 1, -2**63, 2**32 + 1, 2**31]:
            op(name, dict(input=x, dimension=np.int64(axis)), words=axis == 2**31)
    case = Case("DestroyTemporaryVariable without a name")
    with case.graph.as_default():
        a = raw.TemporaryVariable(shape=[1], dtype=tf.float32, var_name="t")
        out = raw.DestroyTemporaryVariable(ref=raw.Assign(ref=a, value=[1.]), var_name="")
    case.start().step([out], words=True).end()


def assigned_slices():
    """A slice's value is broadcast to it."""
    values = [np.float32(3), f32(1, 2), f32(5), numbers(F32, 2, 1), numbers(F32, 1, 2), numbers(F32, 1, 1, 2), numbers(F32, 1, 2, 2),
              numbers(F32, 3, 2), np.ones([0], F32), np.ones([0, 2], F32)]
    slices = [(np.s_[:2, :2], dict()), (np.s_[0, :2], dict(shrink_axis_mask=1)), (np.s_[:2, 0], dict(shrink_axis_mask=2)),
              (np.s_[0, 0, ...], dict(shrink_axis_mask=3)), (np.s_[None, :2], dict(new_axis_mask=1)), (np.s_[..., :2], dict(ellipsis_mask=1)),
              (np.s_[:, :2], dict(end_mask=1)), (np.s_[0, None], dict(new_axis_mask=2, shrink_axis_mask=1))]

    def fails(index, value):
        try:
            np.zeros([3, 3])[index] = value
        except ValueError:
            return True
        return False

    for index, masks in slices:
        case = Case("Assigned slices, %s" % masks)
        with case.graph.as_default():
            value = tf1.placeholder(tf.float32)
            ref, init_ref, _ = variable("ref", "v", numbers(F32, 3, 3))
            var, init_var, _ = variable("resource", "w", numbers(F32, 3, 3))
            at = dict(begin=[0, 0], end=[2, 2], strides=[1, 1], value=value, **masks)
            copied = raw.TensorStridedSliceUpdate(input=numbers(F32, 3, 3), **at)
            with tf.control_dependencies([init_ref]):
                given = tf.identity(raw.StridedSliceAssign(ref=ref, **at))
            with tf.control_dependencies([init_var]):
                put = raw.ResourceStridedSliceAssign(ref=var, **at)
            with tf.control_dependencies([put]):
                updated = read("resource", var, F32)
        case.start()
        for v in values:
            for out in [copied, given, updated]:
                case.step([out], {value: v}, words=fails(index, v))
        case.end()


def handles():
    case = Case("IdentityN of handles")
    with case.graph.as_default():
        v = raw.VarHandleOp(shape=[], dtype=tf.float32, name="v", container="", shared_name="v")
        passed = raw.IdentityN(input=[v, tf.constant(2.)])
        init = raw.AssignVariableOp(resource=passed[0], value=passed[1])
        with tf.control_dependencies([init]):
            out = raw.ReadVariableOp(resource=v, dtype=tf.float32)
    case.start().step([out]).end()
    case = Case("Two temporary variables of one name")
    with case.graph.as_default():
        a = raw.TemporaryVariable(shape=[1], dtype=tf.float32, var_name="t")
        b = raw.TemporaryVariable(shape=[1], dtype=tf.float32, var_name="t")
        sum = tf.identity(raw.Assign(ref=a, value=[1.])) + tf.identity(raw.Assign(ref=b, value=[2.]))
    case.start().step([sum], words=True).end()


ALL = [not_a_number, divisions, repeated, policies, gathered_by_batch, texts_as_values, cut_sparsely, wrong_ranks,
       by_number_of_elements, not_finite, denormals, sparse_bounds, loose_checks, assigned_slices, handles]
