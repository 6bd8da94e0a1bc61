# SPDX-License-Identifier: Apache-2.0
"""Records what TensorFlow computes of normalised batches, sums of products and matrices."""
from recording import *


def norm(name, x, channels, fetches=5, words=None, moments=None, **attrs):
    """Fused batch normalisation; what it keeps for its gradient is told only in training."""
    case = Case(name)
    moments = channels if moments is None else moments
    with case.graph.as_default():
        fed = tf1.placeholder(tf.as_dtype(x.dtype))
        scale, offset = tf.constant(positive(F32, channels)), tf.constant(numbers(F32, channels))
        mean, variance = tf.constant(numbers(F32, moments) / 3), tf.constant(positive(F32, moments))
        out = getattr(raw, name)(x=fed, scale=scale, offset=offset, mean=mean, variance=variance, **attrs)
    case.start().step(list(out)[:fetches], {fed: x}, words=words).end()


def norms():
    for version in ["", "V2", "V3"]:
        for dtype in [F32] if version == "" else [F32, F16, bf16]:
            x = numbers(dtype, 2, 3, 2, 4)
            for layout in ["NHWC", "NCHW"]:
                channels = 4 if layout == "NHWC" else 3
                for part in [1.0, 0.25]:
                    norm("FusedBatchNorm" + version, x, channels, data_format=layout, exponential_avg_factor=part, epsilon=0.01)
                norm("FusedBatchNorm" + version, x, channels, fetches=3, data_format=layout, is_training=False)
                for training in [True, False][:2 if layout == "NHWC" else 1]:
                    more = dict(reserve_space_3=F32(0)) if version == "V3" else {}
                    op("FusedBatchNormGrad" + version,
                       dict(y_backprop=positive(dtype, *x.shape), x=x, scale=positive(F32, channels), reserve_space_1=numbers(F32, channels) / 3,
                            reserve_space_2=positive(F32, channels), **more), data_format=layout, is_training=training)
    norm("FusedBatchNormV3", numbers(F32, 2, 2, 3, 2, 4), 4, data_format="NDHWC")
    norm("FusedBatchNormV3", numbers(F32, 2, 4, 3, 2, 2), 4, data_format="NCDHW")
    norm("FusedBatchNormV3", numbers(F32, 1, 1, 1, 4), 4)
    norm("FusedBatchNormV3", numbers(F32, 0, 2, 1, 4), 4, fetches=3)
    norm("FusedBatchNormV3", numbers(F32, 2, 4), 4, words=True)
    norm("FusedBatchNormV3", numbers(F32, 2, 3, 2, 4), 3, words=True)
    norm("FusedBatchNormV3", numbers(F32, 2, 3, 2, 4), 4, moments=0)


def einsums():
    def einsum(equation, *shapes, dtype=F32, words=None):
        op("Einsum", dict(inputs=[np.roll(numbers(F64, *shape), i).astype(dtype) for i, shape in enumerate(shapes)]),
           equation=equation, words=words)

    for dtype in FLOATS + [I32, I64, np.complex64, np.complex128]:
        einsum("ab,bc->ac", (2, 3), (3, 4), dtype=dtype)
        einsum("abc->ca", (2, 3, 4), dtype=dtype)
    for equation, *shapes in [
            ("ij->ji", (2, 3)), ("ii->i", (3, 3)), ("ii->", (3, 3)), ("i->ii", (3,)), ("ijk->", (2, 3, 2)), ("->", ()),
            ("ij,ij->ij", (2, 3), (2, 3)), ("i,j->ij", (2,), (3,)), ("i,i->", (3,), (3,)), (",->", (), ()), (",i->i", (), (3,)),
            ("bij,bjk->bik", (2, 3, 4), (2, 4, 2)), ("bij,bkj->bki", (2, 3, 4), (2, 2, 4)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
            ("abc,cd->abd", (2, 3, 4), (4, 5)), ("abc,acd->bd", (2, 3, 4), (2, 4, 3)), ("abc,d->ad", (2, 3, 4), (3,)),
            ("iij,jk->ik", (2, 2, 3), (3, 4)), ("ij,jk->kii", (2, 3), (3, 4)), ("aB,Bc->ca", (2, 3), (3, 4)),
            ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 2)), ("...ij,jk->...ik", (2, 2, 3, 4), (4, 2)),
            ("...ij,...jk->...ik", (1, 3, 4), (5, 4, 2)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
            ("i...,i...->...", (3, 2), (3, 2)), ("...i->...", (2, 3)), ("...->...", (2, 3)), ("b...->...b", (2, 3, 1)),
            ("ij,jk->ik", (0, 3), (3, 4)), ("ij,jk->ik", (2, 0), (0, 4)), ("ij->", (0, 3))]:
        einsum(equation, *shapes)
    for equation, *shapes in [("ij,jk->ik", (2, 3), (4, 2)), ("ij->j", (2, 3, 4)), ("ii->i", (2, 3)),
                              ("...ij,...jk->...ik", (2, 3, 4), (3, 4, 2))]:
        einsum(equation, *shapes, words=True)


def matrices():
    def some(dtype, *shape):
        """Far from singular."""
        n = int(np.prod(shape))
        values = np.sin(np.arange(n) * 1.7) + (1j * np.cos(np.arange(n) * 2.3) if np.dtype(dtype).kind == "c" else 0)
        return (values.reshape(shape) + 2 * np.eye(shape[-2], shape[-1])).astype(dtype)

    for dtype in [F32, F64, np.complex64, np.complex128]:
        a, b = some(dtype, 2, 4, 4), some(dtype, 2, 4, 3)
        for adjoint in [False, True]:
            op("MatrixInverse", dict(input=a), adjoint=adjoint)
            op("MatrixSolve", dict(matrix=a, rhs=b), adjoint=adjoint)
            for lower in [False, True]:
                op("MatrixTriangularSolve", dict(matrix=a, rhs=b), adjoint=adjoint, lower=lower)
        op("MatrixTriangularSolve", dict(matrix=a[:1], rhs=b))
        op("MatrixTriangularSolve", dict(matrix=a, rhs=b[0]))
        op("Cholesky", dict(input=(a @ np.conj(np.swapaxes(a, 1, 2))).astype(dtype)))
        op("MatrixDeterminant", dict(input=a))
        op("LogMatrixDeterminant", dict(input=-a[:, :3, :3]))
        for shape in [(4, 4), (5, 3), (3, 5), (2, 4, 2), (1, 1)]:
            for full in [False, True]:
                op("Qr", dict(input=some(dtype, *shape)), full_matrices=full)
    zero = np.zeros((2, 2), F32)
    op("MatrixInverse", dict(input=some(F32, 0, 0)))
    op("MatrixDeterminant", dict(input=some(F32, 0, 0)))
    op("MatrixDeterminant", dict(input=zero))
    op("LogMatrixDeterminant", dict(input=zero))
    op("Qr", dict(input=zero))
    op("MatrixInverse", dict(input=zero), words="Input is not invertible.")
    op("MatrixSolve", dict(matrix=zero, rhs=zero), words="Input matrix is not invertible.")
    op("MatrixTriangularSolve", dict(matrix=zero, rhs=zero + 1))
    for bad in [-some(F32, 3, 3), np.array([[4, 2], [2, 1]], F32)]:
        case = Case("Cholesky/of what has none")
        with case.graph.as_default():
            lower = tf.linalg.band_part(raw.Cholesky(input=tf.constant(bad)), -1, 0)
        case.start().step([lower]).end()
    op("MatrixInverse", dict(input=some(F32, 2, 3)), words=True)
    op("MatrixInverse", dict(input=numbers(F32, 3)), words=True)
    op("MatrixSolve", dict(matrix=some(F32, 3, 3), rhs=some(F32, 2, 3)), words=True)
    op("MatrixTriangularSolve", dict(matrix=some(F32, 3, 3), rhs=some(F32, 2, 3)), words=True)
    for shape in [(6, 4), (4, 6)]:
        case = Case("orthogonal_initializer")
        with case.graph.as_default():
            tf1.set_random_seed(4)
            v = tf1.get_variable("v", shape, initializer=tf1.orthogonal_initializer())
            loss = tf.reduce_sum(tf.linalg.slogdet(tf.matmul(v, v, transpose_a=shape[0] > shape[1], transpose_b=shape[0] < shape[1])
                                                   + tf.eye(4))[1])
            init, gradient = v.initializer, tf.gradients(loss, v)[0]
        case.start().step(targets=[init]).step([gradient]).end()


def media():
    """Sounds, and images that are refused: those that are taken differ in how they are compressed."""
    sound = np.array([[0, .5, -.25, 2], [1, -1, -3, .0001], [.1, .2, .3, .4]], F32)
    for most in [1, 2, 5]:
        op("AudioSummaryV2", dict(tag=np.array("a"), tensor=sound, sample_rate=F32(8000)), max_outputs=most)
        op("AudioSummaryV2", dict(tag=np.array("a"), tensor=sound.reshape(3, 2, 2), sample_rate=F32(44100)), max_outputs=most)
    op("AudioSummaryV2", dict(tag=np.array("a"), tensor=sound[0], sample_rate=F32(1)), words=True)
    op("AudioSummaryV2", dict(tag=np.array("a"), tensor=sound, sample_rate=F32(0)), words=True)
    op("ImageSummary", dict(tag=np.array("a"), tensor=numbers(F32, 2, 3, 4)), words=True)
    op("ImageSummary", dict(tag=np.array("a"), tensor=numbers(F32, 1, 3, 4, 2)), words="Tensor must be 4-D with last dim 1, 3, or 4")
    op("ImageSummary", dict(tag=np.array("a"), tensor=numbers(F32, 0, 3, 4, 3)))
    op("ImageSummary", dict(tag=np.array("a"), tensor=numbers(F32, 1, 0, 4, 3)), words=True)


ALL = [norms, einsums, matrices, media]
