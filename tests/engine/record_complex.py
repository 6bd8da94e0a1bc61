# SPDX-License-Identifier: Apache-2.0
"""Complex numbers: their arithmetic, functions, reductions and products."""
from recording import *

C64, C128 = np.complex64, np.complex128
COMPLEX = [C64, C128]


def values(dtype, *shape):
    """In all four quadrants, none zero."""
    n = int(np.prod(shape)) if shape else 1
    angle = np.arange(n) * 2.4 + .3
    return ((.5 + np.arange(n) % 5 * .3) * np.exp(1j * angle)).astype(dtype).reshape(shape)


def complex_parts():
    for dtype, part in [(C64, F32), (C128, F64)]:
        t = tf.as_dtype(part)
        for name in ["Real", "Imag", "Angle"]:
            op(name, dict(input=values(dtype, 2, 3)), Tout=t)
        op("Angle", dict(input=np.array([-1, 1j, 0, -1 - 0j], dtype)), Tout=t)
        op("ComplexAbs", dict(x=values(dtype, 2, 3)), Tout=t)
        op("Conj", dict(input=values(dtype, 2, 3)))
        for a, b in [((2, 3), (2, 3)), ((2, 3), ()), ((), (3,)), ((2, 1), (1, 3)), ((0,), (1,))]:
            op("Complex", dict(real=numbers(part, *a), imag=positive(part, *b)), Tout=tf.as_dtype(dtype))
        op("Complex", dict(real=numbers(part, 2), imag=numbers(part, 3)), Tout=tf.as_dtype(dtype),
           words="Incompatible shapes: [2] vs. [3]")
        for to in FLOATS + [I32, I64, np.uint8, np.bool_] + COMPLEX:
            op("Cast", dict(x=values(dtype, 7) * 3), DstT=tf.as_dtype(to))
        for of in FLOATS + [I32, I64, np.int8, np.uint16, np.bool_]:
            x = np.array([True, False]) if of is np.bool_ else positive(of, 6)
            op("Cast", dict(x=x), DstT=tf.as_dtype(dtype))
        op("Cast", dict(x=values(dtype, 300)), DstT=tf.complex64)


def complex_binary():
    for dtype in COMPLEX:
        for name in ["Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "DivNoNan", "MulNoNan", "SquaredDifference",
                     "Pow", "Xlogy", "Xdivy"]:
            op(name, dict(x=values(dtype, 2, 3), y=values(dtype, 3, 2).T))
            for a, b in [((2, 3), ()), ((), (2, 3)), ((2, 1, 3), (4, 1)), ((0, 3), (1, 3))]:
                op(name, dict(x=values(dtype, *a), y=1 / values(dtype, *b)))
        for name in ["DivNoNan", "MulNoNan"]:
            op(name, dict(x=np.array([1 + 1j, 0, 2j], dtype), y=np.array([0, 2j, 4], dtype)))
        for name in ["Xlogy", "Xdivy"]:
            op(name, dict(x=np.array([0, 1j, 0], dtype), y=np.array([0, 2j, 4], dtype)))
        op("Mul", dict(x=values(dtype, 2), y=values(dtype, 3)), words="Incompatible shapes: [2] vs. [3]")
        for name in ["Equal", "NotEqual"]:
            op(name, dict(x=values(dtype, 2, 3), y=np.where(np.arange(3) == 1, 0, values(dtype, 2, 3))))
            op(name, dict(x=np.array([1, 1j, 1 + 1j], dtype), y=np.array(1, dtype)))
            op(name, dict(x=values(dtype, 2), y=values(dtype, 3)), incompatible_shape_error=False)
        for name in ["TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"]:
            op(name, dict(y=values(dtype, 5), dy=values(dtype, 5)[::-1]))
        op("AddN", dict(inputs=[values(dtype, 2, 3), values(dtype, 2, 3) ** 2, values(dtype, 2, 3)]))


def complex_unary():
    for dtype in COMPLEX:
        for name in ["Neg", "Square", "Sign", "Sqrt", "Rsqrt", "Reciprocal", "Inv", "Exp", "Expm1", "Log", "Log1p",
                     "Tanh", "Sigmoid", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh",
                     "Atanh", "OnesLike", "ZerosLike"]:
            op(name, dict(x=values(dtype, 3, 4)))
        op("Sign", dict(x=np.array([0, 3 + 4j], dtype)))
        op("Square", dict(x=np.zeros((0, 2), dtype)))


def complex_reductions():
    for dtype in COMPLEX:
        for name in ["Sum", "Mean", "Prod", "EuclideanNorm"]:
            for axes in [[], [0], [1], [2], [0, 2], [0, 1, 2], [-1]]:
                for keep in [False, True]:
                    op(name, dict(input=values(dtype, 2, 3, 4), axis=np.array(axes, I32)), keep_dims=keep)
            op(name, dict(input=np.zeros((0, 3), dtype), axis=np.array([0], I32)))
        op("Sum", dict(input=np.full(5000, .1 + .1j, dtype), axis=np.array([0], I32)))
        for ta in [False, True]:
            for tb in [False, True]:
                a = values(dtype, *((3, 2) if ta else (2, 3)))
                b = values(dtype, *((4, 3) if tb else (3, 4)))
                op("MatMul", dict(a=a, b=b), transpose_a=ta, transpose_b=tb)
                for name in ["BatchMatMul", "BatchMatMulV2"]:
                    op(name, dict(x=np.stack([a, -a]), y=np.stack([b, b * 1j])), adj_x=ta, adj_y=tb)
        op("MatMul", dict(a=np.zeros((2, 0), dtype), b=np.zeros((0, 3), dtype)))
        op("MatMul", dict(a=values(dtype, 20, 30), b=values(dtype, 30, 10)))
        op("ScatterNd", dict(indices=np.array([[1], [3], [1]], I32), updates=values(dtype, 3, 2),
                             shape=np.array([4, 2], I32)))
        op("TensorScatterAdd", dict(tensor=values(dtype, 4), indices=np.array([[1], [3], [1]], I32),
                                    updates=values(dtype, 3)))


def complex_variables():
    for dtype in COMPLEX:
        for kind in ["ref", "resource"]:
            case = Case("complex/" + kind)
            with case.graph.as_default():
                v, assign, _ = variable(kind, "v", values(dtype, 3, 2))
                change = tf.constant(values(dtype, 3, 2))
                row = dict(indices=tf.constant([2, 0, 2]), updates=change)
                if kind == "ref":
                    steps = [raw.AssignAdd(ref=v, value=change).op, raw.AssignSub(ref=v, value=change * 2j).op,
                             raw.ScatterAdd(ref=v, **row).op]
                else:
                    steps = [raw.AssignAddVariableOp(resource=v, value=change),
                             raw.AssignSubVariableOp(resource=v, value=change * 2j),
                             raw.ResourceScatterAdd(resource=v, **row)]
                get = read(kind, v, dtype)
            case.start().step(targets=[assign])
            for do in steps:
                case.step(targets=[do]).step([get])
            case.end()


def complex_gradients():
    for dtype in COMPLEX:
        case = Case("complex/gradients")
        with case.graph.as_default():
            x = tf1.placeholder(tf.as_dtype(dtype), [2, 2])
            y = tf.reduce_sum(tf.matmul(tf.exp(x) * x, tf.math.conj(x)) / (x + 3))
            loss = tf.math.real(y) ** 2 + tf.abs(y) + tf.math.imag(tf.reduce_mean(tf.sqrt(x)))
            out = [y, loss] + tf1.gradients(loss, [x])
        case.start().step(out, {x: values(dtype, 2, 2)})
        case.end()


def complex_rows():
    ids, mixed = np.array([0, 0, 2, 2, 2], I32), np.array([2, -1, 0, 2, 2], I32)
    for dtype in COMPLEX:
        x = values(dtype, 5, 3)
        for name in ["SegmentSum", "SegmentMean", "SegmentProd"]:
            op(name, dict(data=x, segment_ids=ids))
        for name in ["UnsortedSegmentSum", "UnsortedSegmentProd"]:
            op(name, dict(data=x, segment_ids=mixed, num_segments=np.array(4, I32)))
        for name in ["Cumsum", "Cumprod"]:
            for axis in [0, 1]:
                for exclusive in [False, True]:
                    for reverse in [False, True]:
                        op(name, dict(x=x, axis=np.array(axis, I32)), exclusive=exclusive, reverse=reverse)
        op("BiasAdd", dict(value=x, bias=values(dtype, 3)))
        op("BiasAdd", dict(value=values(dtype, 2, 3, 2, 2), bias=values(dtype, 3)), data_format="NCHW")
        op("BiasAddGrad", dict(out_backprop=x))
        op("MirrorPadGrad", dict(input=x, paddings=np.array([[1, 1], [1, 0]], I32)), mode="REFLECT")
        for perm in [[0, 1], [1, 0]]:
            op("ConjugateTranspose", dict(x=x, perm=np.array(perm, I32)))
    op("ConjugateTranspose", dict(x=numbers(F32, 2, 3), perm=np.array([1, 0], I32)))


def complex_logarithms():
    for dtype in COMPLEX:
        for a, b in [((2, 3), (2, 3)), ((2, 3), ()), ((), (3,))]:
            op("Xlog1py", dict(x=values(dtype, *a), y=values(dtype, *b)))
        op("Xlog1py", dict(x=np.array([0, 1j, 2, 0], dtype), y=np.array([3j, 1e-3, -1e-3j, -1], dtype)))


def complex_sparse_products():
    places = np.array([[0, 1], [1, 0], [1, 2], [0, 1]], I64)
    for dtype in COMPLEX:
        for adjoint_a in [False, True]:
            for adjoint_b in [False, True]:
                b = values(dtype, 2 if adjoint_a else 3, 4)
                op("SparseTensorDenseMatMul", dict(a_indices=places, a_values=values(dtype, 4), a_shape=np.array([2, 3], I64),
                                                   b=b.T if adjoint_b else b), adjoint_a=adjoint_a, adjoint_b=adjoint_b)


ALL = [complex_parts, complex_binary, complex_unary, complex_reductions, complex_rows, complex_variables,
       complex_gradients, complex_logarithms, complex_sparse_products]
