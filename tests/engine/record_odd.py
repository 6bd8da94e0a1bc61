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


ALL = [not_a_number, divisions, repeated, policies, gathered_by_batch, texts_as_values, cut_sparsely, wrong_ranks, handles]
