# SPDX-License-Identifier: Apache-2.0
"""Records what TensorFlow does with inputs and attributes of a kind that one meets seldom: indices of small types, bools
that are added, attributes that few programs set."""
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


ALL = [small_indices, added_bools]
