# SPDX-License-Identifier: Apache-2.0
"""Records what TensorFlow does with inputs and attributes of a kind that one meets seldom: indices of small types, bools
that are added, attributes that few programs set."""
from record_sparse import three
from recording import *

I16 = np.int16


def small_indices():
    x = numbers(F32, 4, 3)
    for name, batch in [("GatherV2", 0), ("GatherV2", 1)]:
        op(name, dict(params=x, indices=np.array([[0, 2], [1, 1], [2, 0], [0, 0]], I16), axis=I32(1)), batch_dims=batch)
    op("GatherV2", dict(params=np.array(["a", "b"]), indices=np.array([], I16), axis=I64(0)))
    op("GatherV2", dict(params=x, indices=np.array([1, -1], I16), axis=I32(0)), words="indices[1] = -1 is not in [0, 4)")
    for values in [x, numbers(F32, 4, 3) > 0, np.array([["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]])]:
        op("GatherNd", dict(params=values, indices=np.array([[3, 1], [0, 0], [3, 1]], I16)))
        op("GatherNd", dict(params=values, indices=np.zeros([2, 0], I16)))
    op("GatherNd", dict(params=x, indices=np.array([[0, 3]], I16)), words="does not index into param shape [4,3]")
    for ids in [[0, 2, 0, -1], [[0, 1, 0], [1, 1, 1], [2, 2, 0], [0, -1, 2]]]:
        op("UnsortedSegmentSum", dict(data=x, segment_ids=np.array(ids, I16), num_segments=I32(3)))
    op("UnsortedSegmentSum", dict(data=x, segment_ids=np.array([0, 1, 2, 3], I16), num_segments=I64(3)),
       words="segment_ids[3] = 3 is out of range [0, 3)")
    for begin, end, strides in [([0, 1], [3, 3], [2, 1]), ([-1, 2], [-5, 0], [-1, -1]), ([], [], [])]:
        op("StridedSlice", dict(input=x, begin=np.array(begin, I16), end=np.array(end, I16), strides=np.array(strides, I16)))
    op("StridedSlice", dict(input=x, begin=np.array([0], I16), end=np.array([3], I16), strides=np.array([0], I16)),
       words="strides[0] must be non-zero")
    for dtype in [I32, I64, np.int8, np.uint8]:
        op("OneHot", dict(indices=np.array([[0, 2], [5, 200]]).astype(dtype), depth=I32(3), on_value=F32(1), off_value=F32(0)))
    for sizes in [[1, 3], [-1, 1], [0, 4]]:
        op("SplitV", dict(value=x, size_splits=np.array(sizes, np.int8), axis=I32(0)), num_split=2)
    op("SplitV", dict(value=x, size_splits=np.array([1, 1], np.int8), axis=I32(0)), num_split=2, words=True)
    op("TopKV2", dict(input=x, k=I32(2)), index_type=tf.int16)
    op("TopKV2", dict(input=np.zeros([0, 3], F32), k=I16(2)), index_type=tf.int16)


def added_bools():
    places = np.array([[0], [1], [1], [2]], I32)
    updates, value = np.array([True, True, True, False]), np.array([True, False, True, False])
    op("ScatterNdNonAliasingAdd", dict(input=value, indices=places, updates=updates))
    for name in ["Add", "Sub"]:
        case = Case("ResourceScatterNd%s of bools" % name)
        with case.graph.as_default():
            v, init, _ = variable("resource", "v", value)
            with tf.control_dependencies([init]):
                done = getattr(raw, "ResourceScatterNd" + name)(ref=v, indices=places, updates=updates)
            with tf.control_dependencies([done]):
                out = read("resource", v, np.bool_)
        case.start().step([out]).end()


def handles_as_elements():
    """What picks a queue of several: QueueBase.from_list is Pack and Gather."""
    def picked(name, pick, words=None):
        """Three queues of 0, 1 and 2 elements, and one that pick makes of their handles and feeds."""
        case = Case("A queue by " + name)
        with case.graph.as_default():
            queues = [raw.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], capacity=5, container="", shared_name="")
                      for _ in range(3)]
            put = [raw.QueueEnqueueV2(handle=queue, components=[tf.constant(i)]) for i, queue in enumerate(queues)]
            i = tf1.placeholder(tf.int32, [])
            size = raw.QueueSizeV2(handle=pick(queues, i))
        case.start().step(targets=put[1:]).step(targets=[put[2]])
        for index in range(3):
            case.step([size], {i: np.int32(index)})
        case.step([size], {i: np.int32(3)}, words=words or True)
        case.end()

    def stacked(queues):
        return raw.Pack(values=queues)

    picked("GatherV2", lambda q, i: raw.GatherV2(params=stacked(q), indices=i, axis=0), "indices = 3 is not in [0, 3)")
    picked("Gather", lambda q, i: raw.Gather(params=stacked(q), indices=i))
    picked("GatherNd", lambda q, i: raw.GatherNd(params=stacked(q), indices=[i]))
    picked("GatherNd that ignores", lambda q, i: raw.GatherNd(params=stacked(q), indices=[i], bad_indices_policy="IGNORE"))
    picked("StridedSlice", lambda q, i: stacked(q)[i])
    picked("a vector of one", lambda q, i: raw.GatherV2(params=stacked(q), indices=[i], axis=0))
    picked("two of them", lambda q, i: raw.GatherV2(params=stacked(q), indices=[i, 0], axis=0))
    picked("Pack of Packs", lambda q, i: raw.Pack(values=[stacked(q), stacked(q[::-1])], axis=1)[i][0])
    picked("Identity of many", lambda q, i: raw.GatherV2(params=tf.identity(stacked(q)), indices=i, axis=0))
    for name, of in [
            ("Unpack", lambda q: raw.Unpack(value=stacked(q), num=3)[1]),
            ("Split", lambda q: raw.Squeeze(input=raw.Split(axis=0, value=stacked(q), num_split=3)[2])),
            ("Reshape", lambda q: raw.Reshape(tensor=raw.ExpandDims(input=q[2], axis=0), shape=np.zeros(0, I32))),
            ("Transpose", lambda q: raw.Transpose(x=stacked(q), perm=[0])),
            ("SelectV2", lambda q: raw.SelectV2(condition=False, t=q[0], e=q[1])),
            ("DynamicPartition", lambda q: raw.DynamicPartition(data=stacked(q), partitions=[0, 1, 1], num_partitions=2)[1])]:
        case = Case("A queue by " + name)
        with case.graph.as_default():
            queues = [raw.FIFOQueueV2(component_types=[tf.int32], shapes=[[]], capacity=5, container="", shared_name="")
                      for _ in range(3)]
            put = [raw.QueueEnqueueManyV2(handle=queue, components=[tf.zeros([i], tf.int32)]) for i, queue in enumerate(queues)]
            with tf.control_dependencies(put):
                size = raw.QueueSizeV2(handle=of(queues))
        case.start().step([size]).end()
    case = Case("Shapes of handles")
    with case.graph.as_default():
        tables = raw.Pack(values=[raw.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64) for _ in range(2)])
        outputs = [raw.Shape(input=tables), raw.Size(input=tables), raw.Rank(input=tables), *raw.ShapeN(input=[tables, tables[0]])]
    case.start().step(outputs).end()
    case = Case("Tables and variables by number")
    with case.graph.as_default():
        tables = [raw.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64) for _ in range(2)]
        pairs = [variable("resource", name, F32(value)) for name, value in [("a", 1), ("b", 2)]]
        everything = raw.Pack(values=tables + [v for v, _, _ in pairs])
        i = tf1.placeholder(tf.int32, [])
        one = raw.GatherV2(params=everything, indices=i, axis=0)
        insert = raw.LookupTableInsertV2(table_handle=one, keys=I64([7]), values=I64([8]))
        size = raw.LookupTableSizeV2(table_handle=one)
        value = raw.ReadVariableOp(resource=one, dtype=tf.float32)
        add = raw.AssignAddVariableOp(resource=one, value=F32(5))
    case.start().step(targets=[init for _, init, _ in pairs]).step(targets=[insert], feeds={i: I32(1)})
    for index in range(3):
        case.step([size], {i: I32(index)}, words=True if index == 2 else None)
    case.step(targets=[add], feeds={i: I32(3)})
    for index in (2, 3):
        case.step([value], {i: I32(index)})
    case.end()
    case = Case("No handle")
    with case.graph.as_default():
        table = raw.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64)
        none = raw.GatherV2(params=raw.Pack(values=[table]), indices=np.zeros(0, I32), axis=0)
        size = tf.size(none)
    case.start().step([size]).end()
    case = Case("Text of old handles")
    with case.graph.as_default():
        queues = [raw.FIFOQueue(component_types=[tf.int32], container="c", shared_name=name) for name in "ab"]
        texts = raw.Pack(values=queues)
        outputs = [texts, raw.GatherV2(params=texts, indices=1, axis=0)]
    case.start().step(outputs).end()


def dense_shapes_too_large():
    for shape in [[1 << 62, 8], [1 << 40, 1 << 40], [I64(2**63 - 1), 2]]:
        for n in [0, 1]:
            s = np.zeros([n, 2], I64), np.ones(n, F32), np.array(shape, I64)
            for name in ["SparseReduceSum", "SparseReduceMax", "SparseReduceSumSparse", "SparseReduceMaxSparse"]:
                for axes in [[0], [0, 1]]:
                    op(name, dict(three("input_", s), reduction_axes=np.array(axes, I32)), words=True)
            for name in ["Add", "Mul", "Div"]:
                op("SparseDenseCwise" + name, dict(three("sp_", s), dense=F32(2)), words=True)
            op("SparseSoftmax", three("sp_", s), words=True)
            op("SparseSplit", dict(three("", s), split_dim=I64(1)), num_split=2, words=True)
            op("SparseSlice", dict(three("", s), start=np.zeros(2, I64), size=np.ones(2, I64)), words=True)
            for to in [shape, [-1]]:
                op("SparseReshape", dict(input_indices=s[0], input_shape=s[2], new_shape=np.array(to, I64)), words=True)
            op("SparseConcat", dict(indices=[s[0]] * 2, values=[s[1]] * 2, shapes=[s[2]] * 2), concat_dim=0, words=True)
            op("SparseReorder", three("input_", s))
            op("SparseSparseMaximum", dict(three("a_", s), **three("b_", s)))
            op("SparseAdd", dict(three("a_", s), **three("b_", s), thresh=F32(0)))
    few = np.zeros([0, 2], I64), np.ones(0, F32)
    for shapes in [([-1, 2], [3, 2]), ([3, 2], [3, -2]), ([3, 2], [3])]:
        op("SparseConcat", dict(indices=[few[0], np.zeros([0, len(shapes[1])], I64)], values=[few[1]] * 2,
                                shapes=[np.array(shape, I64) for shape in shapes]), concat_dim=0, words=True)


def odd_paths():
    """Paths of a scheme that nobody has, and directories."""
    for path in ["foo://x", "FOO://x/y", "/usr"]:
        vocabulary = dict(true_classes=np.zeros([1, 1], I64))
        op("FixedUnigramCandidateSampler", vocabulary, words=True, num_true=1, num_sampled=2, unique=True, range_max=3,
           vocab_file=path, distortion=1., num_reserved_ids=0, num_shards=1, shard=0, unigrams=[], seed=1, seed2=2)
        op("GenerateVocabRemapping", dict(new_vocab_file=np.array(path), old_vocab_file=np.array(path)), words=True,
           new_vocab_offset=0, num_new_vocab=1, old_vocab_size=-1)
        op("LoadAndRemapMatrix", dict(ckpt_path=np.array(path), old_tensor_name=np.array("a"), row_remapping=np.zeros(1, I64),
                                      col_remapping=np.zeros(0, I64), initializing_values=np.zeros(0, F32)), words=True,
           num_rows=1, num_cols=1, max_rows_in_memory=-1)
        op("RestoreV2", dict(prefix=np.array(path), tensor_names=np.array(["a"]), shape_and_slices=np.array([""])), words=True,
           dtypes=[tf.float32])
        op("MergeV2Checkpoints", dict(checkpoint_prefixes=np.array([path]), destination_prefix=np.array("/usr/none")),
           words=True, delete_old_dirs=False)
        case = Case("A table of " + path)
        with case.graph.as_default():
            table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
            fill = raw.InitializeTableFromTextFileV2(table_handle=table, filename=path, key_index=-2, value_index=-1)
        case.start().step(targets=[fill], words=True).end()
    for path in ["foo://x", "FOO://x/y"]:
        op("SaveV2", dict(prefix=np.array(path), tensor_names=np.array(["a"]), shape_and_slices=np.array([""]), tensors=[F32(1)]),
           words=True)
        op("MergeV2Checkpoints", dict(checkpoint_prefixes=np.array(["/usr/none"]), destination_prefix=np.array(path)),
           words=True, delete_old_dirs=False)


ALL = [small_indices, added_bools, handles_as_elements, dense_shapes_too_large, odd_paths]
