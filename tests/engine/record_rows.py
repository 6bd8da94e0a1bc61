# SPDX-License-Identifier: Apache-2.0
"""Cases for ops over rows: segments, slices named by coordinates, unique values, running sums, and
optimizers whose gradient is for some rows."""
from recording import *


def segments():
    ids = np.array([0, 0, 2, 2, 3], I32)
    for name in ["SegmentSum", "SegmentMean", "SegmentProd", "SegmentMin", "SegmentMax"]:
        for dtype in [F32, F64, F16, I32, I64]:
            op(name, dict(data=numbers(dtype, 5, 3), segment_ids=ids))
        op(name, dict(data=numbers(F32, 5), segment_ids=ids.astype(I64)))
        op(name, dict(data=numbers(F32, 0, 2), segment_ids=np.array([], I32)))
        op(name, dict(data=numbers(F32, 3), segment_ids=np.array([0, 2, 1], I32)),
           words="segment ids are not increasing")
        op(name, dict(data=numbers(F32, 3), segment_ids=np.array([0, 1], I32)),
           words="segment_ids should be the same size as dimension 0 of input.")
    for name in ["UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMin", "UnsortedSegmentMax"]:
        for dtype in [F32, F64, F16, bf16, I32, I64, np.uint8, np.int16]:
            op(name, dict(data=numbers(dtype, 4, 2), segment_ids=np.array([1, 0, 1, -1], I32),
                          num_segments=I32(4)))
        op(name, dict(data=numbers(F32, 2, 2, 3), segment_ids=np.array([[1, 0], [1, 2]], I64),
                      num_segments=I32(3)))
        op(name, dict(data=numbers(F32, 4), segment_ids=np.array([1, 0, 1, 3], I32),
                      num_segments=I32(3)), words="is out of range [0, 3)")
        op(name, dict(data=numbers(F32, 4), segment_ids=np.array([1, 0], I32), num_segments=I32(3)), words=True)
    picks = np.array([3, 0, 0, 2, 1], I32)
    for name in ["SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"]:
        for dtype in FLOATS + ([I32, I64] if name == "SparseSegmentSum" else []):
            op(name, dict(data=numbers(dtype, 4, 3), indices=picks, segment_ids=ids))
        op(name, dict(data=numbers(F32, 4, 3), indices=picks.astype(I64), segment_ids=ids.astype(I64)))
        op(name, dict(data=numbers(F32, 4, 2, 2), indices=picks, segment_ids=ids))
        op(name, dict(data=numbers(F32, 4, 2), indices=np.array([], I32), segment_ids=np.array([], I32)))
        op(name + "WithNumSegments", dict(data=numbers(F32, 4, 3), indices=picks, segment_ids=ids,
                                          num_segments=I32(6)))
        op(name + "WithNumSegments", dict(data=numbers(F32, 4, 3), indices=picks, segment_ids=ids,
                                          num_segments=I32(2)), words=True)
        op(name, dict(data=numbers(F32, 4, 3), indices=np.array([4], I32), segment_ids=np.array([0], I32)),
           words="indices[0] == 4 out of range [0, 4)")
        op(name, dict(data=numbers(F32, 4, 3), indices=picks, segment_ids=ids[::-1].copy()),
           words="segment ids are not increasing")
        op(name, dict(data=numbers(F32, 4, 3), indices=picks, segment_ids=ids[:3]), words=True)
        for dtype in FLOATS:
            op(name + "Grad", dict(grad=numbers(dtype, 4, 3), indices=picks, segment_ids=ids,
                                   output_dim0=I32(5)))
        op(name + "GradV2", dict(grad=numbers(F32, 4, 3), indices=picks, segment_ids=ids,
                                 dense_output_dim0=I32(5)))
        op(name + "Grad", dict(grad=numbers(F32, 4, 3), indices=picks, segment_ids=ids, output_dim0=I32(2)),
           words=True)
        op(name + "Grad", dict(grad=numbers(F32, 2, 3), indices=picks, segment_ids=ids, output_dim0=I32(5)),
           words=True)


def uniques():
    for x in [np.array([4, 1, 4, -2, 1, 4], I32), np.array([4, 1, 4, -2, 1, 4], I64), np.array([.5, 0, -0., .5], F32),
              np.array([2, 1, 2, 1], F64), np.array(["b", "a", "b", "", "abcdefghijklm"]),
              np.array([True, True, False]), np.array([3, 1, 3], np.uint8), np.array([], I64),
              np.array([1, 2, 1], F16), np.array([1, 2, 1], np.int16)]:
        for t in [tf.int32, tf.int64]:
            op("Unique", dict(x=x), out_idx=t)
        op("UniqueWithCounts", dict(x=x))
        op("UniqueV2", dict(x=x, axis=np.array([], I64)))
        op("UniqueWithCountsV2", dict(x=x, axis=np.array([0], I32)))
        if x.dtype.kind != "b":
            op("ListDiff", dict(x=x, y=x[1:2]))
            op("ListDiff", dict(x=x, y=x[:0]), out_idx=tf.int64)
    x = np.array([[1, 0, 1], [2, 0, 2], [1, 0, 1]], I32)
    for axis in [0, 1, -1]:
        op("UniqueV2", dict(x=x, axis=np.array([axis], I32)))
    op("UniqueWithCountsV2", dict(x=x, axis=np.array([1], I64)))
    op("Unique", dict(x=x), words="unique expects a 1D vector.")
    op("Unique", dict(x=np.arange(2000) % 701 * 1000003))
    for x in [numbers(F32, 5, 2), np.array(["a", "b", "c", "d", "e"]), numbers(I64, 5)]:
        op("DynamicPartition", dict(data=x, partitions=np.array([1, 0, 1, 3, 0], I32)), num_partitions=4)
    op("DynamicPartition", dict(data=numbers(F32, 2, 2, 3), partitions=np.array([[1, 0], [1, 1]], I32)),
       num_partitions=2)
    op("DynamicPartition", dict(data=numbers(F32, 3), partitions=np.array([1, 0, 2], I32)), num_partitions=2,
       words="partitions[2] = 2 is not in [0, 2)")
    op("DynamicPartition", dict(data=numbers(F32, 3), partitions=np.array([1, 0], I32)), num_partitions=2, words=True)


def coordinates():
    x = numbers(F32, 3, 4, 2)
    for indices in [[[0, 1], [2, 3]], [[2]], [[0, 1, 1]], [[[1, 0]], [[2, 2]]], [1, 2]]:
        op("GatherNd", dict(params=x, indices=np.array(indices, I32)))
    op("GatherNd", dict(params=np.array(["a", "b"]), indices=np.array([[1], [0], [1]], I64)))
    op("GatherNd", dict(params=x, indices=np.zeros((2, 0), I32)))
    op("GatherNd", dict(params=x, indices=np.zeros((0, 2), I32)))
    op("GatherNd", dict(params=x, indices=np.array([[0, 1], [3, 0]], I32)),
       words="indices[1] = [3, 0] does not index into param shape [3,4,2]")
    op("GatherNd", dict(params=x, indices=np.array([[[0, 1], [0, -1]]], I32)),
       words="indices[0,1] = [0, -1] does not index into param shape [3,4,2]")
    op("GatherNd", dict(params=x, indices=np.array([[0, 1, 0, 0]], I32)), words=True)
    for dtype in [F32, F64, F16, I32, I64, np.uint8]:
        op("ScatterNd", dict(indices=np.array([[1], [3], [1]], I32), updates=positive(dtype, 3, 2),
                             shape=np.array([4, 2], I32)))
        for name in ["Update", "Add", "Sub", "Min", "Max"]:
            op("TensorScatter" + name, dict(tensor=numbers(dtype, 4, 2), indices=np.array([[1], [3], [1]], I32),
                                            updates=positive(dtype, 3, 2)))
    op("ScatterNd", dict(indices=np.array([[[0, 1]], [[2, 0]]], I64), updates=numbers(F32, 2, 1, 3),
                         shape=np.array([3, 2, 3], I64)))
    op("TensorScatterUpdate", dict(tensor=np.array(["a", "b"]), indices=np.array([[1]], I32), updates=np.array(["c"])))
    op("ScatterNd", dict(indices=np.array([[4]], I32), updates=numbers(F32, 1), shape=np.array([4], I32)),
       words="indices[0] = [4] does not index into shape [4]")
    op("ScatterNd", dict(indices=np.array([[1]], I32), updates=numbers(F32, 2), shape=np.array([4], I32)), words=True)
    op("ScatterNd", dict(indices=np.array([[1]], I32), updates=numbers(F32, 1), shape=np.array([0], I32)), words=True)
    op("ScatterNd", dict(indices=np.array([[1]], I32), updates=numbers(F32, 1), shape=np.array([-1], I32)), words=True)
    for kind in ["ref", "resource"]:
        for name in ["Update", "Add", "Sub", "Min", "Max"]:
            full = ("ScatterNd" if kind == "ref" else "ResourceScatterNd") + name
            for dtype in [F32, F64, I32]:
                case = Case(full)
                with case.graph.as_default():
                    v, init, _ = variable(kind, "v", numbers(dtype, 4, 2))
                    indices, updates = tf1.placeholder(tf.int32), tf1.placeholder(tf.as_dtype(dtype))
                    do = getattr(raw, full)(ref=v, indices=indices, updates=updates)
                    do = do.op if kind == "ref" else do
                    get = read(kind, v, dtype)
                rows = {indices: np.array([[3], [0], [3]], I32), updates: positive(dtype, 3, 2)}
                case.start().step(targets=[do], feeds=rows, words=True).step(targets=[init])
                case.step(targets=[do], feeds=rows).step([get])
                case.step(targets=[do], feeds={indices: np.array([[3, 1]], I32),
                                               updates: positive(dtype, 1)}).step([get])
                case.step(targets=[do], feeds={indices: np.array([[4]], I32), updates: positive(dtype, 1, 2)},
                          words="indices[0] = [4] does not index into shape [4,2]").end()
        for dtype in [F32, I32]:
            case = Case("ScatterDiv/" + kind)
            with case.graph.as_default():
                v, init, _ = variable(kind, "v", positive(dtype, 4, 2))
                if kind == "ref":
                    do = raw.ScatterDiv(ref=v, indices=tf.constant([3, 0, 3]),
                                        updates=tf.constant(positive(dtype, 3, 2))).op
                else:
                    do = raw.ResourceScatterDiv(resource=v, indices=tf.constant([3, 0, 3]),
                                                updates=tf.constant(positive(dtype, 3, 2)))
                get = read(kind, v, dtype)
            case.start().step(targets=[init]).step(targets=[do]).step([get]).end()
    case = Case("ResourceGatherNd")
    with case.graph.as_default():
        v, init, _ = variable("resource", "v", numbers(F32, 4, 2))
        get = raw.ResourceGatherNd(resource=v, indices=tf.constant([[3, 1], [0, 0]]), dtype=tf.float32)
    case.start().step([get], words=True)
    case.step(targets=[init]).step([get]).end()


def scans():
    for name in ["Cumsum", "Cumprod"]:
        for dtype in FLOATS + [I32, I64, np.uint8, np.int8]:
            for exclusive in [False, True]:
                for reverse in [False, True]:
                    op(name, dict(x=numbers(dtype, 2, 3, 2, high=3), axis=I32(1)), exclusive=exclusive, reverse=reverse)
        for axis in [0, 2, -1]:
            op(name, dict(x=numbers(F32, 2, 3, 2), axis=I64(axis)))
        op(name, dict(x=numbers(F32, 0), axis=I32(0)))
        op(name, dict(x=numbers(F32, 2), axis=I32(1)), words="ScanOp: Expected scan axis in the range [-1, 1), but got 1")
    for dtype in [F32, F64, F16]:
        for exclusive in [False, True]:
            op("CumulativeLogsumexp", dict(x=numbers(dtype, 3, 2), axis=I32(0)), exclusive=exclusive, reverse=exclusive)


# op: its slots, then its other inputs with a value each ("grad": fed, and the indices), then attributes to try
SPARSE_APPLY = {
    "Momentum": (["var", "accum"], dict(lr=.1, grad="grad", momentum=.9), [{}, dict(use_nesterov=True)]),
    "KerasMomentum": (["var", "accum"], dict(lr=.1, grad="grad", momentum=.9), [{}, dict(use_nesterov=True)]),
    "Adagrad": (["var", "accum"], dict(lr=.1, grad="grad"), [{}, dict(update_slots=False)]),
    "AdagradV2": (["var", "accum"], dict(lr=.1, epsilon=1e-3, grad="grad"), [{}, dict(update_slots=False)]),
    "AdagradDA": (["var", "gradient_accumulator", "gradient_squared_accumulator"],
                  dict(grad="grad", lr=.1, l1=.01, l2=.02, global_step=I64(3)), [{}]),
    "Adadelta": (["var", "accum", "accum_update"], dict(lr=.1, rho=.9, epsilon=1e-3, grad="grad"), [{}]),
    "RMSProp": (["var", "ms", "mom"], dict(lr=.1, rho=.9, momentum=.5, epsilon=1e-3, grad="grad"), [{}]),
    "CenteredRMSProp": (["var", "mg", "ms", "mom"], dict(lr=.1, rho=.9, momentum=.5, epsilon=2., grad="grad"), [{}]),
    "Ftrl": (["var", "accum", "linear"], dict(grad="grad", lr=.1, l1=.01, l2=.02, lr_power=-.5),
             [{}, dict(multiply_linear_by_lr=True)]),
    "FtrlV2": (["var", "accum", "linear"], dict(grad="grad", lr=.1, l1=.01, l2=.02, l2_shrinkage=.03, lr_power=-.6),
               [{}, dict(multiply_linear_by_lr=True)]),
    "ProximalGradientDescent": (["var"], dict(alpha=.1, l1=.2, l2=.03, grad="grad"), [{}]),
    "ProximalAdagrad": (["var", "accum"], dict(lr=.1, l1=.2, l2=.03, grad="grad"), [{}]),
}


def sparse_optimizers():
    for kind in ["ref", "resource"]:
        for name, (slots, inputs, variants) in SPARSE_APPLY.items():
            for dtype in [F32, F64, F16]:
                for attrs in variants:
                    full = ("SparseApply" if kind == "ref" else "ResourceSparseApply") + name
                    if not hasattr(raw, full):
                        continue
                    case = Case(full)
                    with case.graph.as_default():
                        variables = [variable(kind, s, numbers(dtype, 5, 3) if s == "var" else positive(dtype, 5, 3))
                                     for s in slots]
                        grad = tf1.placeholder(tf.as_dtype(dtype))
                        indices = tf1.placeholder(tf.int64 if attrs else tf.int32)
                        arguments = {s: v[0] for s, v in zip(slots, variables)}
                        for k, v in inputs.items():
                            if isinstance(v, str):
                                arguments.update(grad=grad, indices=indices)
                            else:
                                arguments[k] = tf.constant(v) if isinstance(v, I64) else tf.constant(v, tf.as_dtype(dtype))
                        out = getattr(raw, full)(**arguments, **attrs)
                        do = out.op if kind == "ref" else out
                        gets = [read(kind, v[0], dtype) for v in variables]
                    case.start()
                    t = indices.dtype.as_numpy_dtype
                    rows = {grad: numbers(dtype, 3, 3)[::-1], indices: np.array([4, 0, 4], t)}
                    case.step(targets=[do], feeds=rows, words=True if kind == "ref" else "Invalid variable reference.")
                    case.step(targets=[v[1] for v in variables])
                    for _ in range(3):
                        case.step(targets=[do], feeds=rows).step(gets)
                    case.step(targets=[do], feeds={grad: numbers(dtype, 1, 3), indices: np.array([5], t)},
                              words=name == "KerasMomentum" or "Index 5 at offset 0 in indices is out of range")
                    case.step(targets=[do], feeds={grad: numbers(dtype, 2, 3), indices: np.array([1], t)}, words=True)
                    case.end()


def embeddings():
    """Whole programs: an embedding, whole and in parts, trained by each optimizer for five steps."""
    train = tf1.train
    kinds = {
        "sgd": lambda: train.GradientDescentOptimizer(.1),
        "momentum": lambda: train.MomentumOptimizer(.1, .9, use_nesterov=True),
        "adam": lambda: train.AdamOptimizer(.01),
        "adagrad": lambda: train.AdagradOptimizer(.1),
        "adagrad_da": lambda: train.AdagradDAOptimizer(.1, train.get_global_step(), l1_regularization_strength=.001),
        "adadelta": lambda: train.AdadeltaOptimizer(1.),
        "rms": lambda: train.RMSPropOptimizer(.01),
        "centered_rms": lambda: train.RMSPropOptimizer(.01, centered=True),
        "ftrl": lambda: train.FtrlOptimizer(.1, l1_regularization_strength=.01),
        "ftrl_v2": lambda: train.FtrlOptimizer(.1, l2_shrinkage_regularization_strength=.01),
        "proximal": lambda: train.ProximalGradientDescentOptimizer(.1, l1_regularization_strength=.001),
        "proximal_adagrad": lambda: train.ProximalAdagradOptimizer(.1, l1_regularization_strength=.001),
    }
    rng = np.random.RandomState(4)
    ids, ys = rng.randint(0, 11, (8, 3)).astype(I64), rng.rand(8, 2).astype(F32)
    sparse = tf1.SparseTensorValue(np.array([[r, 0] for r in range(8)] + [[r, 1] for r in range(0, 8, 2)]),
                                   rng.randint(0, 11, 12).astype(I64), np.array([8, 2]))
    order = np.lexsort(sparse.indices.T[::-1])
    sparse = tf1.SparseTensorValue(sparse.indices[order].astype(I64), sparse.values[order], sparse.dense_shape.astype(I64))
    for resource in [False, True]:
        for name, make in kinds.items():
            for parts in [3 if resource == (name in ("adam", "sgd", "rms", "ftrl", "proximal")) else 1]:
                case = Case("embedding/%s/%s/%d" % (name, "resource" if resource else "ref", parts))
                with case.graph.as_default():
                    tf1.set_random_seed(6)
                    with tf1.variable_scope("", use_resource=resource):
                        step = train.get_or_create_global_step()
                        x, y = tf1.placeholder(tf.int64, [None, 3]), tf1.placeholder(tf.float32, [None, 2])
                        bag = tf1.sparse_placeholder(tf.int64)
                        table = tf1.get_variable("table", [11, 4], initializer=tf1.glorot_uniform_initializer(),
                                                 partitioner=tf1.fixed_size_partitioner(parts) if parts > 1 else None)
                        w = tf1.get_variable("w", [4, 2], initializer=tf1.glorot_uniform_initializer())
                        looked = tf1.nn.embedding_lookup(table, x, partition_strategy="div" if parts > 1 else "mod")
                        mean = tf1.nn.embedding_lookup_sparse(table, bag, None, combiner="mean")
                        loss = tf.reduce_mean(tf1.squared_difference(
                            tf.matmul(tf.reduce_sum(looked, 1) + mean, w), y))
                        train_op = make().minimize(loss, global_step=step)
                    init = tf1.global_variables_initializer()
                    weights = [tf.identity(v) for v in tf1.global_variables()]
                feeds = {x: ids, y: ys, bag.indices: sparse.indices, bag.values: sparse.values,
                         bag.dense_shape: sparse.dense_shape}
                case.start().step(targets=[init])
                for _ in range(5):
                    case.step([loss], feeds, [train_op])
                case.step(weights).end()


ALL = [segments, uniques, coordinates, scans, sparse_optimizers, embeddings]
