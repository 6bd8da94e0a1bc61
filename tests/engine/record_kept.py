# SPDX-License-Identifier: Apache-2.0
"""What is kept from step to step (queues, tables, accumulators), examples, and ops that are rarely seen alone."""
from recording import *

TEXTS = np.array(["a", "bb", "", "a longer text"], object)


def story(name, build):
    """A graph and steps over it: build gives a list of (fetches, targets)."""
    case = Case(name)
    with case.graph.as_default():
        steps = build()
    case.start()
    for fetches, targets in steps:
        case.step(fetches, targets=targets)
    case.end()


def queues():
    for version in ["", "V2"]:
        enqueue, many = getattr(raw, "QueueEnqueue" + version), getattr(raw, "QueueEnqueueMany" + version)
        dequeue, take = getattr(raw, "QueueDequeue" + version), getattr(raw, "QueueDequeueMany" + version)
        up_to = getattr(raw, "QueueDequeueUpTo" + version)
        size, close = getattr(raw, "QueueSize" + version), getattr(raw, "QueueClose" + version)
        closed = getattr(raw, "QueueIsClosed" + version)
        for kind in ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue"]:
            def build():
                types, shapes = [tf.float32, tf.string], [[4], []]
                if kind == "PriorityQueue":
                    q = raw.PriorityQueue(component_types=types, shapes=shapes) if not version else \
                        raw.PriorityQueueV2(component_types=types, shapes=shapes)
                    first, row = [tf.constant(np.arange(5, dtype=I64))], [tf.constant(I64(9))]
                    out = [tf.int64] + types
                else:
                    q = getattr(raw, kind + version)(component_types=types, shapes=shapes)
                    first, row, out = [], [], types
                rows = first + [tf.constant(numbers(F32, 5, 4)), tf.constant(np.array(["one", "two", "", "four", "f" * 40], object))]
                one = row + [tf.constant(numbers(F32, 4)), tf.constant("alone, but rather long")]
                return [([], [many(handle=q, components=rows)]), ([], [enqueue(handle=q, components=one)]),
                        ([size(handle=q), closed(handle=q)], []),
                        (take(handle=q, n=3, component_types=out), []),
                        (dequeue(handle=q, component_types=out), []),
                        ([], [close(handle=q)]),
                        (up_to(handle=q, n=2 if kind == "PriorityQueue" else 9, component_types=out), [])]
            story("queue%s%s" % (kind, version), build)

        def shuffled():
            q = getattr(raw, "RandomShuffleQueue" + version)(component_types=[tf.float32], shapes=[[8]], seed=1, seed2=2)
            rows = [tf.constant(np.tile(numbers(F32, 8), (4, 1)))]
            return [([], [many(handle=q, components=rows)]), (take(handle=q, n=3, component_types=[tf.float32]), [])]
        story("queueShuffle" + version, shuffled)

        def padded():
            q = getattr(raw, "PaddingFIFOQueue" + version)(component_types=[tf.int64, tf.string], shapes=[[None], [None]])
            steps = [([], [enqueue(handle=q, components=[tf.constant(np.arange(n)), tf.constant(TEXTS[:n])])]) for n in [1, 4, 2]]
            return steps + [(take(handle=q, n=3, component_types=[tf.int64, tf.string]), [])]
        story("queuePadded" + version, padded)


def tables():
    keys, values = np.array([3, 1, 2], I64), np.array(["three", "one", "a rather long two"], object)
    for version in ["", "V2"]:
        find, size = getattr(raw, "LookupTableFind" + version), getattr(raw, "LookupTableSize" + version)
        export = getattr(raw, "LookupTableExport" + version)

        def static():
            t = getattr(raw, "HashTable" + version)(key_dtype=tf.int64, value_dtype=tf.string)
            fill = getattr(raw, "InitializeTable" + version)(table_handle=t, keys=keys, values=values)
            return [([], [fill]), ([find(table_handle=t, keys=keys, default_value="none"), size(table_handle=t)], [])]
        story("HashTable" + version, static)

        def mutable():
            t = getattr(raw, "MutableHashTable" + version)(key_dtype=tf.string, value_dtype=tf.int64)
            put = getattr(raw, "LookupTableInsert" + version)(table_handle=t, keys=values[:1], values=keys[:1])
            load = getattr(raw, "LookupTableImport" + version)(table_handle=t, keys=values[2:], values=keys[2:])
            return [([], [put]), ([find(table_handle=t, keys=values, default_value=tf.constant(-1, tf.int64))], []),
                    (list(export(table_handle=t, Tkeys=tf.string, Tvalues=tf.int64)), []), ([], [load]),
                    (list(export(table_handle=t, Tkeys=tf.string, Tvalues=tf.int64)), [])]
        story("MutableHashTable" + version, mutable)

        def rows():
            t = getattr(raw, "MutableHashTableOfTensors" + version)(key_dtype=tf.int64, value_dtype=tf.float32, value_shape=[5])
            put = getattr(raw, "LookupTableInsert" + version)(table_handle=t, keys=keys[:1], values=numbers(F32, 1, 5))
            return [([], [put]), ([find(table_handle=t, keys=keys, default_value=numbers(F32, 5))], []),
                    (list(export(table_handle=t, Tkeys=tf.int64, Tvalues=tf.float32)), [])]
        story("MutableHashTableOfTensors" + version, rows)

    def dense():
        t = raw.MutableDenseHashTableV2(empty_key=tf.constant(-1, tf.int64), deleted_key=tf.constant(-2, tf.int64), value_dtype=tf.float32,
                                        value_shape=[3], initial_num_buckets=4)
        put = raw.LookupTableInsertV2(table_handle=t, keys=keys, values=numbers(F32, 3, 3))
        return [([], [put]), ([raw.LookupTableFindV2(table_handle=t, keys=keys[:2], default_value=numbers(F32, 3))], []),
                ([], [raw.LookupTableRemoveV2(table_handle=t, keys=keys[:1])]), ([raw.LookupTableSizeV2(table_handle=t)], [])]
    story("MutableDenseHashTableV2", dense)


def accumulators():
    for prefix in ["", "Resource"]:
        def dense():
            a = getattr(raw, prefix + "ConditionalAccumulator")(dtype=tf.float32, shape=[3, 4])
            put = getattr(raw, prefix + "AccumulatorApplyGradient")(handle=a, local_step=tf.constant(0, tf.int64), gradient=numbers(F32, 3, 4))
            return [([], [put]), ([], [put]), ([getattr(raw, prefix + "AccumulatorNumAccumulated")(handle=a)], []),
                    ([getattr(raw, prefix + "AccumulatorTakeGradient")(handle=a, num_required=2, dtype=tf.float32)], [])]
        story(prefix + "ConditionalAccumulator", dense)

    def sparse():
        a = raw.SparseConditionalAccumulator(dtype=tf.float32, shape=[9, 4])
        put = raw.SparseAccumulatorApplyGradient(handle=a, local_step=tf.constant(0, tf.int64), gradient_indices=np.array([1, 3, 8], I64),
                                                 gradient_values=numbers(F32, 3, 4), gradient_shape=np.array([9, 4], I64), has_known_shape=True)
        return [([], [put]), ([], [put]), (list(raw.SparseAccumulatorTakeGradient(handle=a, num_required=2, dtype=tf.float32)), [])]
    story("SparseConditionalAccumulator", sparse)


def example(**features):
    kinds = {int: lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v)),
             float: lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)),
             bytes: lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v))}
    return tf.train.Example(features=tf.train.Features(
        feature={k: kinds[type(v[0])](v) for k, v in features.items()})).SerializeToString(deterministic=True)


def examples():
    both = np.array([example(s=[b"one", b"a longer text"], d=[1.0, 2.0, 3.0], r=[1, 2, 3]), example(d=[4.0, 5.0, 6.0], r=[4])], object)
    none = np.array([], object)
    op("ParseExample", dict(serialized=both, names=none, sparse_keys=["s"], dense_keys=["d"], dense_defaults=[np.array([], F32)]),
       sparse_types=[tf.string], dense_shapes=[[3]])
    op("ParseExampleV2", dict(serialized=both, names=none, sparse_keys=np.array(["s"], object), dense_keys=np.array(["d"], object),
                              ragged_keys=np.array(["r"], object), dense_defaults=[np.array([], F32)]),
       num_sparse=1, sparse_types=[tf.string], ragged_value_types=[tf.int64], ragged_split_types=[tf.int64], dense_shapes=[[3]])
    op("ParseSingleExample", dict(serialized=both[0], dense_defaults=[np.array([], F32)]), num_sparse=1, sparse_keys=["s"],
       dense_keys=["d"], sparse_types=[tf.string], dense_shapes=[[3]])
    op("DecodeCSV", dict(records=np.array(["1,some text,2.5", "2,,3.5", "3,x,"], object),
                         record_defaults=[np.array([], I32), np.array(["none"], object), np.array([0.5], F32)]))


def rare():
    x = numbers(F32, 3, 4)
    op("AccumulateNV2", dict(inputs=[x, x + 1, x * 2]), shape=[3, 4])
    op("BiasAddV1", dict(value=x, bias=numbers(F32, 4)))
    op("CheckNumericsV2", dict(tensor=x), message="no")
    op("GuaranteeConst", dict(input=x))
    op("MatrixSetDiagV2", dict(input=numbers(F32, 4, 4), diagonal=numbers(F32, 2, 4), k=np.array([0, 1], I32)))
    op("ScatterNdNonAliasingAdd", dict(input=x, indices=np.array([[1], [2]], I32), updates=numbers(F32, 2, 4)))
    op("RegexFullMatch", dict(input=np.tile(TEXTS, 6), pattern=np.array("a.*")))
    op("ShardedFilespec", dict(basename=np.array("/a/long/enough/name"), num_shards=np.array(3, I32)))

    def switch():
        value, way = tf.constant(x), tf.constant(True)
        no, yes = raw.Switch(data=value, pred=way)
        return [([raw.Identity(input=yes), raw.Merge(inputs=[no, yes])[0]], [])]
    story("Switch and Merge", switch)

    def placeholders():
        with_default = raw.PlaceholderWithDefault(input=tf.constant(x), shape=[3, 4])
        return [([raw.Identity(input=with_default)], [])]
    story("PlaceholderWithDefault", placeholders)

    def temporary():
        v = raw.TemporaryVariable(shape=[3, 4], dtype=tf.float32, var_name="t")
        assigned = raw.Assign(ref=v, value=tf.constant(x))
        return [([raw.DestroyTemporaryVariable(ref=assigned, var_name="t")], [])]
    story("TemporaryVariable", temporary)


def sparse_maps():
    """Sparse tensors by number: what is added, taken once, and not found again."""
    places = np.array([[0, 1], [0, 3], [2, 0], [3, 3]], I64)
    for label, values in [("floats", numbers(F32, 4)), ("strings", TEXTS), ("bools", np.array([True, False, True, True]))]:
        def build():
            rows = raw.AddManySparseToTensorsMap(sparse_indices=places, sparse_values=values, sparse_shape=np.array([5, 4], I64),
                                                 shared_name="map")
            one = raw.AddSparseToTensorsMap(sparse_indices=[[0], [6]], sparse_values=values[:2], sparse_shape=np.array([7], I64),
                                            shared_name="map")

            def take(*handles, name="map", dtype=values.dtype):
                return list(raw.TakeManySparseFromTensorsMap(
                    sparse_handles=np.array(handles, I64), dtype=tf.as_dtype(dtype) if dtype != object else tf.string,
                    shared_name=name))
            return [([rows], []), ([one], []), (take(3, 5, 1), []), (take(0, 3), []), (take(0), []), (take(4, 4), []),
                    (take(4), []), (take(2, dtype=np.int16), []), (take(2), []), (take(0, name="other"), []),
                    (take(0, name=""), []), ([rows], []), ([one], []), (take(), [])]
        story("maps of " + label, build)

    def ranks():
        add = [raw.AddSparseToTensorsMap(sparse_indices=np.zeros([1, n], I64), sparse_values=np.array([7.]), shared_name="ranks",
                                         sparse_shape=np.full([n], n + 1, I64)) for n in [1, 2, 0, 1]]
        return [([a], []) for a in add] + [(list(raw.TakeManySparseFromTensorsMap(
            sparse_handles=np.array(handles, I64), dtype=tf.float64, shared_name="ranks")), []) for handles in [[0, 1], [0, 3], [2], [3]]]
    story("maps of ranks", ranks)
    for label, indices, n, shape in [
            ("vector", [[0], [1]], 2, [3]), ("outside", [[0, 1], [3, 0]], 2, [3, 2]), ("wide", [[0, 2]], 1, [3, 2]),
            ("backwards", [[1, 0], [0, 1]], 2, [3, 2]), ("twice", [[1, 0], [1, 0]], 2, [3, 2]), ("negative", [[-1, 0]], 1, [3, 2]),
            ("no rows", np.zeros([0, 2]), 0, [0, 2]), ("no values", np.zeros([0, 2]), 0, [3, 2]), ("few values", [[0, 0]], 2, [3, 2]),
            ("overflow", [[0, 0]], 1, [2 ** 33, 2 ** 33]), ("negative shape", [[0, 0]], 1, [3, -2]), ("long shape", [[0, 0]], 1, [3, 2, 2])]:
        for name in ["AddSparseToTensorsMap", "AddManySparseToTensorsMap"]:
            op(name, dict(sparse_indices=np.array(indices, I64), sparse_values=numbers(F32, n), sparse_shape=np.array(shape, I64)),
               label=", " + label)
    op("AddSparseToTensorsMap", dict(sparse_indices=np.zeros([2], I64), sparse_values=numbers(F32, 2), sparse_shape=np.array([3], I64)))
    op("AddSparseToTensorsMap", dict(sparse_indices=np.zeros([2, 1], I64), sparse_values=numbers(F32, 2, 1), sparse_shape=np.array([3], I64)))
    op("AddSparseToTensorsMap", dict(sparse_indices=np.zeros([2, 1], I64), sparse_values=numbers(F32, 2), sparse_shape=np.array([[3]], I64)))


ALL = [queues, tables, accumulators, examples, rare, sparse_maps]
