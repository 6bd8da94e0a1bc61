# SPDX-License-Identifier: Apache-2.0
"""What a master keeps for programs beside variables: the same steps on TensorFlow's server and on `muster serve`."""
import os
import re

import numpy as np
import tensorflow as tf

import peer
import side_by_side
from side_by_side import any_shape

v1 = tf.compat.v1
v1.disable_v2_behavior()
raw = tf.raw_ops
INT, TEXT, FLOAT = tf.int64, tf.string, tf.float32


def ints(*values):
    return any_shape(list(values), INT)


def destroy(handle, ignore=True):
    return raw.DestroyResourceOp(resource=handle, ignore_lookup_error=ignore)


def fifo(**names):
    return raw.FIFOQueueV2(component_types=[FLOAT], shapes=[[]], **names)


class Priority:
    """A PriorityQueue and its ops."""

    def __init__(self, types=(TEXT,), shapes=((),), **how):
        self.types = [INT, *types]
        self.handle = raw.PriorityQueueV2(component_types=list(types), shapes=[list(s) for s in shapes], **how)

    def put(self, *components):
        return raw.QueueEnqueueV2(handle=self.handle, components=components)

    def put_many(self, *components):
        return raw.QueueEnqueueManyV2(handle=self.handle, components=components)

    def take(self):
        return raw.QueueDequeueV2(handle=self.handle, component_types=self.types)

    def take_many(self, n):
        return raw.QueueDequeueManyV2(handle=self.handle, n=n, component_types=self.types)

    def up_to(self, n):
        return raw.QueueDequeueUpToV2(handle=self.handle, n=n, component_types=self.types)

    def size(self):
        return raw.QueueSizeV2(handle=self.handle)

    def close(self):
        return raw.QueueCloseV2(handle=self.handle)


def as_lists(value):
    if isinstance(value, (list, tuple)):
        return [as_lists(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


def outcomes(target, build, timeout_ms=side_by_side.STEP_MS):
    """Values as lists, errors without the numbers of names that nobody gave."""
    return [tuple(re.sub(r"'_\d+_", "'_N_", part) for part in answer) if isinstance(answer, tuple) else answer
            for answer in side_by_side.outcomes(target, build, timeout_ms, as_lists)]


class TestCase(side_by_side.TestCase):
    def check(self, build, timeout_ms=side_by_side.STEP_MS):
        wanted = outcomes(self.theirs, build, timeout_ms)
        self.assertEqual(outcomes(self.ours, build, timeout_ms), wanted)
        return wanted


class Destroyed(TestCase):
    def test_a_destroyed_queue_is_another_the_next_time(self):
        def build():
            steps = []
            for queue in fifo(shared_name="destroyed"), fifo():
                put = raw.QueueEnqueueV2(handle=queue, components=[1.0])
                size = raw.QueueSizeV2(handle=queue)
                steps += [put, size, destroy(queue), size, destroy(queue, False), put, put, size]
            return steps
        self.assertEqual(self.check(build)[-5:], [0, None, None, None, 2])

    def test_other_sessions_find_the_new_one_too(self):
        def fill():
            queue = fifo(shared_name="found")
            return [raw.QueueEnqueueV2(handle=queue, components=[1.0]), raw.QueueSizeV2(handle=queue)]
        for build, last in (fill, 1), (fill, 2), (lambda: [destroy(fifo(shared_name="found"))], None), (fill, 1):
            self.assertEqual(self.check(build)[-1], last)

    def test_what_is_gone_is_not_destroyed_again(self):
        def build():
            queue = fifo(shared_name="twice")
            variable = raw.VarHandleOp(dtype=FLOAT, shape=[], shared_name="gone")
            first = destroy(queue)
            with tf.control_dependencies([first]):
                second = destroy(queue, False)
            return [second, destroy(variable, False), raw.AssignVariableOp(resource=variable, value=1.0),
                    destroy(variable, False), destroy(variable, False), destroy(variable)]
        wanted, got = outcomes(self.theirs, build), outcomes(self.ours, build)
        for answers in wanted, got:  # the default container has another name there
            answers[:] = [answer and tuple(re.sub("Resource [a-z]+/", "Resource ", part) for part in answer)
                          for answer in answers]
        self.assertEqual(got, wanted)
        self.assertEqual(got[0], ("NotFoundError", "Resource twice/<unknown> does not exist."))


class PriorityQueues(TestCase):
    def test_the_least_comes_first_and_equals_as_in_tensorflow(self):
        def build():
            queue, n = Priority(), 40
            fill = queue.put_many(ints(*(i * 7 % 5 - 2 for i in range(n))), any_shape([str(i) for i in range(n)]))
            return [fill, queue.size(), *[queue.take() for _ in range(9)], queue.take_many(11),
                    queue.put(any_shape(1, INT), "z"), queue.take_many(0), queue.put(any_shape(-9, INT), "y"),
                    queue.take(), queue.take_many(20), queue.close(), queue.take(), queue.take(), queue.take_many(1),
                    queue.up_to(1), queue.put(any_shape(2, INT), "z"), queue.put_many(ints(1), any_shape(["q"])),
                    queue.size()]
        self.check(build)

    def test_a_batch_is_taken_whole_or_not_at_all(self):
        def build():
            queue, small = Priority(capacity=9), Priority(capacity=2)
            return [queue.put_many(ints(2, 1), any_shape(["b", "a"])), queue.take_many(3), queue.up_to(3),
                    queue.size(), small.put_many(ints(3, 2, 1), any_shape(["c", "b", "a"])), small.size(),
                    small.take_many(3), queue.take_many(2)]
        wanted, got = outcomes(self.theirs, build, 300), outcomes(self.ours, build, 300)
        self.assertEqual([answer[0] if isinstance(answer, tuple) else answer for answer in got],
                         [answer[0] if isinstance(answer, tuple) else answer for answer in wanted])

    def test_a_closed_one_gives_up_what_is_left(self):
        """TensorFlow's loses it."""
        def build():
            queue = Priority()
            return [queue.put_many(ints(2, 1), any_shape(["b", "a"])), queue.close(), queue.up_to(5), queue.size()]
        self.assertEqual(outcomes(self.theirs, build)[2][0], "OutOfRangeError")
        self.assertEqual(outcomes(self.ours, build)[2:], [[[1, 2], [b"a", b"b"]], 0])

    def test_what_does_not_fit_is_refused(self):
        def build():
            queue, given = Priority(capacity=3), {"shared_name": "priorities", "capacity": 4}
            bare, none = Priority(shapes=[]), Priority(types=[], shapes=[], shared_name="none")
            steps = [queue.put(ints(1), "z"), queue.put_many(any_shape([[1]], INT), any_shape(["z"])),
                     queue.put_many(ints(1, 2), any_shape(["z"])), queue.put(any_shape(1, tf.int32), "z"),
                     queue.put(any_shape(1, INT)), bare.size(), none.size(), none.put(any_shape(3, INT)),
                     Priority(types=[TEXT, TEXT]).size(), Priority(shapes=[[], []]).size()]
            others = [Priority(**given), Priority(**{**given, "capacity": 5}), Priority(types=[FLOAT], **given),
                      Priority(shapes=[[2]], **given), Priority(**given)]
            return steps + [other.size() for other in others] + [
                raw.QueueSizeV2(handle=raw.FIFOQueueV2(component_types=[INT, TEXT], shapes=[[], []], **given))]
        self.check(build)

    def test_the_first_generation_of_ops(self):
        def build():
            queue = raw.PriorityQueue(component_types=[FLOAT], shapes=[[2]])
            put = [raw.QueueEnqueue(handle=queue, components=[tf.constant(n, INT), [n + .5, 0]]) for n in (3, 1, 2)]
            return put + [raw.QueueSize(handle=queue), raw.QueueDequeueMany(handle=queue, n=2, component_types=[INT, FLOAT]),
                          raw.QueueDequeue(handle=queue, component_types=[INT, FLOAT])[1]]
        self.check(build)

    def test_a_program_of_queue_runners(self):
        def build():
            queue = tf.queue.PriorityQueue(100, [FLOAT], [[]])
            rows = tf.constant([5, 3, 9, 1], INT)
            return [queue.enqueue_many([rows, tf.cast(rows, FLOAT) * 2]), queue.dequeue_many(3)[1], queue.dequeue()[1],
                    queue.size(), queue.close(), queue.dequeue()[1]]
        self.check(build)


class Dense:
    """A MutableDenseHashTable and its ops."""

    def __init__(self, empty, deleted, key=INT, value=INT, **how):
        self.key, self.value = key, value
        self.handle = raw.MutableDenseHashTableV2(
            empty_key=any_shape(empty, key), deleted_key=any_shape(deleted, key), value_dtype=value,
            **{"initial_num_buckets": 8, **how})

    def keys(self, keys):
        return any_shape(keys, self.key)

    def values(self, values):
        return any_shape(values, self.value)

    def find(self, keys, default=-1):
        return raw.LookupTableFindV2(table_handle=self.handle, keys=self.keys(keys), default_value=self.values(default))

    def insert(self, keys, values):
        return raw.LookupTableInsertV2(table_handle=self.handle, keys=self.keys(keys), values=self.values(values))

    def remove(self, keys):
        return raw.LookupTableRemoveV2(table_handle=self.handle, keys=self.keys(keys))

    def load(self, keys, values):
        return raw.LookupTableImportV2(table_handle=self.handle, keys=self.keys(keys), values=self.values(values))

    def size(self):
        return raw.LookupTableSizeV2(table_handle=self.handle)

    def export(self):
        return list(raw.LookupTableExportV2(table_handle=self.handle, Tkeys=self.key, Tvalues=self.value))


class DenseTables(TestCase):
    def test_the_buckets_are_tensorflows(self):
        def build():
            table = Dense(-1, -2)
            return [table.find([4, 5]), table.export(), table.insert([4, 12, 20, 4], [1, 2, 3, 5]), table.export(),
                    table.remove([12, 99]), table.export(), table.size(), table.find([4, 12, 20]),
                    table.insert([28, 20], [6, 7]), table.export(), table.remove([20]), table.find([20]), table.size(),
                    table.insert(list(range(100, 140)), list(range(40))), table.size(), table.export(),
                    table.find([104, 4, 28, 139, 7]), table.insert([], []), table.insert(7, 8), table.find(7)]
        self.check(build)

    def test_keys_of_every_type(self):
        def build():
            steps = []
            for value, values in (INT, [1, 2, 3]), (FLOAT, [.5, -1, 2]), (tf.bool, [True, False, True]), \
                    (tf.float64, [.5, -1, 2]), (tf.int32, [1, 2, 3]):
                for key, keys, empty, deleted in (INT, [5, -7, 1 << 40], 0, 1), (tf.int32, [5, -7, 9], 0, 1), \
                        (TEXT, ["a", "", "a longer key\0"], "empty", "deleted"):
                    if (key, value) in ((tf.int32, INT), (tf.int32, tf.bool)):
                        continue
                    table = Dense(empty, deleted, key, value)
                    steps += [table.insert(keys, values), table.remove(keys[:1]), table.find(keys, values[0]),
                              table.export()]
            return steps
        self.check(build)

    def test_keys_and_values_that_are_vectors(self):
        def build():
            table = Dense([0, 0], [0, 1], value=FLOAT, value_shape=[3])
            texts = Dense(["", ""], ["x", ""], TEXT)
            return [table.insert([[1, 2], [3, 4], [2, 1]], [[1, 2, 3], [4, 5, 6], [7, 8, 9]]), table.export(),
                    table.find([[3, 4], [9, 9]], [0, 0, 1]), table.find([[3, 4], [9, 9]], [[0, 0, 1], [5, 5, 5]]),
                    table.remove([[1, 2]]), table.export(), table.size(), table.find([3, 4], [0, 0, 0]),
                    table.find([1, 2, 3], [0, 0, 0]), table.find([[3, 4]], [0, 0]),
                    table.insert([[[1, 1]]], [[[1, 2, 3]]]), table.insert([[0, 1]], [[1, 2, 3]]),
                    texts.insert([["a", "b"], ["b", "a"]], [1, 2]), texts.find([["b", "a"], ["c", "c"]]), texts.export()]
        self.check(build)

    def test_what_does_not_fit_is_refused(self):
        def build():
            table, steps = Dense(-1, -2), []
            steps += [table.find([-1]), table.find([3, -2]), table.insert([-1], [1]), table.insert([5, -2], [1, 2]),
                      table.remove([-1]), table.remove([-2]), table.find([[1, 2], [3, 4]]), table.insert([1, 2], [3]),
                      table.find([1], [1, 2, 3]), table.size(), table.load([[1], [2]], [[1]])]
            for wrong in ({"empty": -1, "deleted": -1}, {"empty": [-1], "deleted": -2}, {"empty": [[1]], "deleted": [[2]]},
                          {"empty": 0, "deleted": 1, "initial_num_buckets": 2},
                          {"empty": 0, "deleted": 1, "initial_num_buckets": 6},
                          {"empty": 0, "deleted": 1, "max_load_factor": 1.5},
                          {"empty": 0, "deleted": 1, "max_load_factor": 0.},
                          {"empty": 0, "deleted": 1, "value_shape": [2, 2]}):
                steps.append(Dense(**wrong).size())
            return steps
        self.check(build)

    def test_an_import_that_would_end_tensorflows_server_is_refused(self):
        def build():
            table = Dense(-1, -2)
            return [table.load(keys, values) for keys, values in (
                (1, 1), ([1, 2, 3, 4], [1, 2, 3, 4]), ([[1], [2], [3]], [[1], [2], [3]]), ([[1, 2]] * 4, [[1]] * 4),
                (np.zeros([0, 1]), np.zeros([0, 1])))] + [table.size()]
        self.assertEqual([answer[0] if isinstance(answer, tuple) else answer for answer in outcomes(self.ours, build)],
                         ["InvalidArgumentError"] * 5 + [0])

    def test_a_checkpoint_goes_both_ways(self):
        prefix = os.path.join(self.folder(), "model")

        def run(target, save):
            with tf.Graph().as_default():
                table = tf.lookup.experimental.DenseHashTable(TEXT, INT, -1, "empty", "deleted", name="t",
                                                              initial_num_buckets=16)
                keys = ["key %d" % i for i in range(30)]
                put, take = table.insert(keys[:20], tf.range(20, dtype=INT)), table.erase(tf.constant(keys[:3]))
                other = table.insert(keys[15:], tf.range(15, dtype=INT))
                found, size, saver = table.lookup(tf.constant(keys)), table.size(), v1.train.Saver()
                with v1.Session(target) as session:
                    if save:
                        session.run(put)
                        session.run(take)
                        saver.save(session, prefix)
                    else:
                        session.run(other)
                        saver.restore(session, prefix)
                    return session.run(found).tolist(), int(session.run(size))
        for one, another in (self.ours, self.theirs), (self.theirs, self.ours), (self.ours, self.ours):
            saved = run(one, True)
            self.assertEqual(saved, ([-1] * 3 + list(range(3, 20)) + [-1] * 10, 17))
            self.assertEqual(run(another, False), saved)


class Temporaries(TestCase):
    def test_a_temporary_variable_lasts_for_one_step(self):
        def build():
            variable = raw.TemporaryVariable(shape=[2], dtype=FLOAT, var_name="sum")
            first = raw.Assign(ref=variable, value=[1., 2.])
            total = raw.DestroyTemporaryVariable(ref=raw.AssignAdd(ref=first, value=[3., 4.]), var_name="sum")
            own = raw.TemporaryVariable(shape=[2], dtype=TEXT, var_name="")
            text = raw.DestroyTemporaryVariable(ref=raw.Assign(ref=own, value=["a", "b"]), var_name=own.op.name)
            other = raw.Assign(ref=variable, value=any_shape([1., 2., 3.]))
            loose = raw.Assign(ref=variable, value=any_shape([1., 2., 3.]), validate_shape=False)
            empty = raw.TemporaryVariable(shape=[2, 0], dtype=FLOAT, var_name="empty")
            return [total, total, text, raw.IsVariableInitialized(ref=variable), other,
                    raw.DestroyTemporaryVariable(ref=loose, var_name="sum"), tf.shape(empty),
                    raw.TemporaryVariable(shape=[None], dtype=FLOAT, var_name="open").op,
                    tf.math.accumulate_n([any_shape([1., 2.]), any_shape([3., 4.]), tf.constant([1., 1.])])]
        self.check(build)

    def test_another_name_is_no_temporary_variable(self):
        def build():
            variable = raw.TemporaryVariable(shape=[2], dtype=FLOAT, var_name="a")
            lasting = v1.get_variable("lasting", [2], use_resource=False, initializer=v1.zeros_initializer())
            return [lasting.initializer,
                    raw.DestroyTemporaryVariable(ref=raw.Assign(ref=variable, value=[1., 2.]), var_name="b"),
                    raw.DestroyTemporaryVariable(ref=lasting._ref(), var_name="lasting"), lasting.read_value()]
        wanted, got = outcomes(self.theirs, build), outcomes(self.ours, build)
        self.assertEqual([answer[0] for answer in got[1:3]], ["NotFoundError"] * 2)
        self.assertEqual([answer[0] for answer in wanted[1:3]], ["NotFoundError"] * 2)
        self.assertEqual(got[3], [0, 0])


if __name__ == "__main__":
    peer.main()
