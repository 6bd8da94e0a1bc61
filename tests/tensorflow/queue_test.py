# SPDX-License-Identifier: Apache-2.0
"""Queues: the same stories on TensorFlow's server and on `muster serve`, told word for word alike."""
import contextlib
import re
import threading
import time

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_data_flow_ops as ops

import peer
import side_by_side

v1 = tf.compat.v1
v1.disable_v2_behavior()
errors = tf.errors

PATIENCE_MS = 60000
# The client gives up by its own clock: by then a server has heard of it.
LATER = 0.5
FLOAT = tf.float32


def words(error):
    """What an error says, without where it came from and the numbers of names that nobody gave."""
    text = re.sub(r"^Graph execution error:\n\n", "", error.message)
    text = re.sub(r"^Detected at node.*?\nNode: '[^']*'\n", "", text, flags=re.DOTALL)  # the client adds that
    text = re.sub(r"^From /job:[^\n]*\n", "", text).split("\n")[0]
    return re.sub(r"'_\d+_", "'_N_", re.sub(r" \(hash code \d+\)", "", text))


class Queue:
    """A queue's ops, of TensorFlow's first generation (handles are string references) or its second."""

    def __init__(self, generation, make="fifo_queue", types=(FLOAT,), shapes=((),), **kwargs):
        self.end = "" if generation == 1 else "_v2"
        self.types = list(types)
        self.handle = self.op(make)(self.types, [list(shape) for shape in shapes], **kwargs)

    def op(self, name):
        return getattr(ops, name + self.end)

    def put(self, *components):
        return self.op("queue_enqueue")(self.handle, components)

    def put_many(self, *components):
        return self.op("queue_enqueue_many")(self.handle, components)

    def take(self):
        return self.op("queue_dequeue")(self.handle, self.types)

    def take_many(self, n):
        return self.op("queue_dequeue_many")(self.handle, n, self.types)

    def up_to(self, n):
        return self.op("queue_dequeue_up_to")(self.handle, n, self.types)

    def size(self):
        return self.op("queue_size")(self.handle)

    def is_closed(self):
        return ops.queue_is_closed_v2(self.handle) if self.end else ops.queue_is_closed(self.handle)

    def close(self, cancel=False):
        return self.op("queue_close")(self.handle, cancel)


class Told:
    """A story being told on a master: what each step gave, or failed with."""

    def __init__(self, target, generation, stack):
        self.target = target
        self.generation = generation
        self.stack = stack
        self.lines = []
        self.numbers = []  # that needn't be the same to the last bit
        self.session = self.open()

    def open(self):
        return self.stack.enter_context(v1.Session(self.target))

    def queue(self, *args, **kwargs):
        return Queue(self.generation, *args, **kwargs)

    def run(self, fetches, feed=None, session=None, timeout_ms=PATIENCE_MS):
        """What it gives, or its error's type, words and op."""
        try:
            options = v1.RunOptions(timeout_in_ms=timeout_ms)
            got = (session or self.session).run(fetches, feed, options=options)
        except errors.OpError as error:
            # TensorFlow's server calls its deadline by several names.
            if isinstance(error, errors.DeadlineExceededError):
                time.sleep(LATER)
                return "DeadlineExceededError"
            return type(error).__name__, words(error), error.op.name if error.op else None
        return tf.nest.map_structure(lambda x: x.tolist() if hasattr(x, "tolist") else x, got)

    def tell(self, what, *args, **kwargs):
        self.lines.append((what, self.run(*args, **kwargs)))

    def start(self, fetches, **kwargs):
        """A step on a thread of its own; call what this gives for what came of it."""
        done = []
        thread = threading.Thread(target=lambda: done.append(self.run(fetches, **kwargs)))
        thread.start()

        def end():
            thread.join(PATIENCE_MS / 1000)
            return done[0] if done else "still waits"
        return end

    def run_fed(self, fetches, what, read=None):
        """What the queues' runners bring, until it ends."""
        self.session.run(v1.local_variables_initializer())
        coordinator = v1.train.Coordinator()
        threads = v1.train.start_queue_runners(self.session, coordinator)
        got = []
        while not got or not isinstance(got[-1], tuple):
            got.append(self.run(fetches))
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=PATIENCE_MS / 1000)
        end, got = got[-1], got[:-1]
        self.lines.append((what, read(got) if read else got))
        self.lines.append((what + " end", end))

    def wait_for(self, fetch, value):
        """Until a step gives that: others have come so far."""
        end = time.monotonic() + PATIENCE_MS / 1000
        while self.session.run(fetch) != value:
            assert time.monotonic() < end, "never %r" % value
            time.sleep(0.005)


def in_order(told):
    queue = told.queue(capacity=10)
    told.tell("put", queue.put(9.0))
    told.tell("put many", queue.put_many([1.0, 2, 3, 4, 5, 6]))
    told.tell("size", queue.size())
    for what, fetch in (("take", queue.take()), ("many", queue.take_many(3)), ("up to", queue.up_to(2)),
                        ("none", queue.take_many(0)), ("none of", queue.put_many(np.float32([]))),
                        ("closed?", queue.is_closed()), ("size", queue.size())):
        told.tell(what, fetch)


def closing(told):
    queue = told.queue(capacity=10)
    put, take, many, up_to, close = queue.put(1.0), queue.take(), queue.take_many(3), queue.up_to(3), queue.close()
    told.tell("put", queue.put_many([1.0, 2]))
    told.tell("close", close)
    for what, fetch in (("closed?", queue.is_closed()), ("again", close), ("put", put), ("many", many),
                        ("put none", queue.put_many(np.float32([]))), ("up to", up_to), ("take", take),
                        ("many", many), ("up to", up_to), ("none", queue.take_many(0)),
                        ("now", queue.close(True))):
        told.tell(what, fetch)


def waiting(told):
    """Who takes before there is something, and who puts in where there is no room."""
    queue = told.queue(capacity=2)
    take, many, size = queue.take(), queue.take_many(5), queue.size()
    x = v1.placeholder(FLOAT)
    put_many = queue.put_many(x)
    first = told.start(take)
    told.tell("put", queue.put(1.0))
    told.lines.append(("take", first()))
    first = told.start(many)
    told.tell("put many", put_many, {x: [1, 2, 3, 4, 5, 6, 7]})
    told.lines.append(("many", first()))
    told.tell("left", size)
    fill = told.start(put_many, feed={x: [10, 11, 12]})
    for _ in range(5):
        told.tell("take", take)
    told.lines.append(("fill", fill()))


def out_of_time(told):
    """A step that runs out of time takes nothing with it."""
    queue = told.queue(capacity=1)
    put, take, size = queue.put(1.0), queue.take(), queue.size()
    told.tell("take", take, timeout_ms=50)
    told.tell("put", put)
    told.tell("size", size)
    told.tell("put into the full", put, timeout_ms=50)
    told.tell("take", take)
    told.tell("size", size)


def closed_while_waiting(told):
    queue = told.queue(capacity=2)
    size, is_closed, take = queue.size(), queue.is_closed(), queue.take()
    fill = told.start(queue.put_many([1.0, 2, 3]))
    told.wait_for(size, 2)
    close = told.start(queue.close())
    told.tell("closed?", is_closed)  # not before those who put in have done so
    told.tell("take", take)
    told.lines.append(("fill", fill()))
    told.lines.append(("close", close()))
    told.tell("closed?", is_closed)
    told.tell("take", queue.take_many(2))
    told.tell("take", take)

    other = told.queue(capacity=2)
    size = other.size()
    fill = told.start(other.put_many([1.0, 2, 3]))
    told.wait_for(size, 2)
    told.tell("close now", other.close(True))
    told.lines.append(("fill", fill()))
    told.tell("what is left", other.up_to(5))

    for what in ("many", "up to"):
        third = told.queue(capacity=9)
        size, put, close = third.size(), third.put_many([1.0, 2, 3]), third.close()
        first = told.start(third.take_many(4) if what == "many" else third.up_to(4))
        told.tell("put", put)
        told.wait_for(size, 0)
        told.tell("close", close)
        told.lines.append((what, first()))
        told.tell("left", size)


def session_closed(told):
    """The step that waits in it ends; what it has put in stays."""
    queue = told.queue(capacity=2, shared_name="session_closed")
    size = queue.size()
    other = told.open()
    fill = told.start(queue.put_many([1.0, 2, 3]), session=other)
    told.wait_for(size, 2)
    other.close()
    told.lines.append(("fill", fill()))
    told.tell("put", queue.put(9.0), timeout_ms=50)
    told.tell("take", queue.take_many(2))
    told.tell("size", size)


def shuffled(told):
    queue = told.queue("random_shuffle_queue", capacity=40, min_after_dequeue=4, seed=3, seed2=5)
    x = v1.placeholder(FLOAT)
    put_many, take, many, up_to, size = (queue.put_many(x), queue.take(), queue.take_many(6), queue.up_to(5),
                                         queue.size())
    told.tell("put", put_many, {x: np.arange(30)})
    for _ in range(3):
        told.tell("take", take)
        told.tell("many", many)
    told.tell("size", size)
    told.tell("put", put_many, {x: np.arange(30, 40)})
    told.tell("up to", up_to)
    told.tell("close", queue.close())
    for _ in range(4):
        told.tell("up to", up_to)
    told.tell("take", take)
    told.tell("many", many)
    told.tell("put", queue.put(1.0))


def kept_for_shuffling(told):
    queue = told.queue("random_shuffle_queue", capacity=9, min_after_dequeue=2, seed=3, seed2=5)
    take = queue.take()
    told.tell("put", queue.put_many([1.0, 2, 3]))
    told.tell("take", take)
    told.tell("no more", take, timeout_ms=50)
    first = told.start(queue.take_many(2))
    told.tell("close", queue.close())
    told.lines.append(("many", first()))


def padded(told):
    queue = told.queue("padding_fifo_queue", [FLOAT, tf.string, tf.int64], [[None, 2], [None], []], capacity=9)
    x, s, n = v1.placeholder(FLOAT), v1.placeholder(tf.string), v1.placeholder(tf.int64)
    put, put_many = queue.put(x, s, n), queue.put_many(x, s, n)
    told.tell("put", put, {x: [[1, 2], [3, 4]], s: ["a"], n: 7})
    told.tell("put", put, {x: [[5, 6]], s: ["b", "cd", "e"], n: 8})
    told.tell("put", put, {x: np.zeros([0, 2]), s: np.array([], object), n: 9})
    told.tell("many", queue.take_many(3))
    told.tell("put many", put_many, {x: np.ones([2, 1, 2]), s: [["x", "y"], ["z", ""]], n: [1, 2]})
    told.tell("take", queue.take())
    told.tell("none", queue.take_many(0))
    told.tell("wrong rank", put, {x: [1, 2], s: ["a"], n: 7})
    told.tell("wrong size", put, {x: [[1, 2, 3]], s: ["a"], n: 7})
    told.tell("wrong batch", put_many, {x: np.ones([2, 1, 2]), s: [["x"]], n: [1, 2]})
    told.tell("close", queue.close())
    told.tell("put", put, {x: [[1, 2]], s: ["a"], n: 7})
    told.tell("many", queue.take_many(2))
    told.tell("up to", queue.up_to(2))
    told.tell("take", queue.take())


def of_many_types(told):
    types = [tf.bool, tf.int8, tf.uint8, tf.int16, tf.int32, tf.int64, tf.float16, tf.float32, tf.float64,
             tf.complex64, tf.complex128, tf.string]
    queue = told.queue(types=types, shapes=[[2]] * len(types), capacity=9)
    bits = np.array([[0, 1], [1, 0], [1, 1]])
    batch = [tf.constant(bits.astype(str if t == tf.string else t.as_numpy_dtype)) for t in types]
    told.tell("put", queue.put_many(*batch))
    told.tell("take", queue.take())
    told.tell("many", queue.take_many(2))


def refused(told):
    queue = told.queue(types=[FLOAT, tf.int32], shapes=[[2], []], capacity=3, shared_name="refused")
    loose = told.queue(types=[FLOAT, tf.int32], shapes=[], capacity=3)
    x, n = v1.placeholder(FLOAT), v1.placeholder(tf.int32)
    put, put_many, loose_many, many = queue.put(x, n), queue.put_many(x, n), loose.put_many(x, n), queue.take_many(n)
    up_to = queue.up_to(n)
    told.tell("shape", put, {x: [1, 2, 3], n: 1})
    told.tell("shape", put, {x: [1, 2], n: [1]})
    told.tell("batch", put_many, {x: [[1, 2], [3, 4]], n: [1]})
    told.tell("loose batch", loose_many, {x: [1, 2], n: [1]})
    told.tell("less than none", many, {n: -1})
    told.tell("less than none", up_to, {n: -2})
    told.tell("no shapes", loose.take_many(1))
    types = queue.types
    for wrong in ([tf.int32, tf.int32], [FLOAT], [FLOAT, tf.int32, FLOAT]):
        queue.types = wrong
        told.tell("takes %s" % [t.name for t in wrong], queue.take())
        told.tell("takes many %s" % [t.name for t in wrong], queue.take_many(1))
        told.tell("puts %s" % [t.name for t in wrong], queue.put(*[tf.zeros([], t) for t in wrong]))
    queue.types = types
    told.tell("size", queue.size())


def shared(told):
    """A queue by its shared name, and one of a session's own."""
    given = dict(capacity=4, shared_name="shared")
    queue, own = told.queue(**given), told.queue(capacity=4)
    size, put, own_size, own_put = queue.size(), queue.put(1.0), own.size(), own.put(1.0)
    others = {
        "the same": told.queue(**given),
        "another kind": told.queue("random_shuffle_queue", min_after_dequeue=1, **given),
        "another capacity": told.queue(capacity=5, shared_name="shared"),
        "other types": told.queue(types=[tf.int32], **given),
        "other shapes": told.queue(shapes=[[2]], **given),
        "no shapes": told.queue(shapes=[], **given),
        "another place": told.queue(container="elsewhere", **given),
        "hidden": told.queue(capacity=4, shared_name="_shared"),
        "nowhere": told.queue(capacity=4, container="no where"),
        "too small": told.queue("random_shuffle_queue", min_after_dequeue=3, capacity=3),
        "negative": told.queue("random_shuffle_queue", min_after_dequeue=-1, capacity=3),
        "without shapes": told.queue("padding_fifo_queue", shapes=[], capacity=3),
        "of few shapes": told.queue(types=[FLOAT, FLOAT], capacity=3),
    }
    sizes = {what: other.size() for what, other in others.items()}
    told.tell("put", [put, own_put])
    told.tell("sizes", [size, own_size])
    told.tell("sizes of another session", [size, own_size], session=told.open())
    for what, other in sizes.items():
        told.tell(what, other)


def wrong_handles(told):
    if told.generation == 1:
        return
    variable = v1.get_variable("wrong", [], use_resource=True)
    told.tell("a variable", ops.queue_size_v2(variable.handle))


def as_text(told):
    """A handle of the first generation is two strings."""
    if told.generation == 2:
        return
    queue = told.queue(capacity=3, shared_name="as_text")
    told.tell("name", queue.handle[1])
    told.tell("length", tf.shape(queue.handle))


def names_produced(told):
    """string_input_producer, in an order of its own for each epoch."""
    names = v1.train.string_input_producer(["a", "b", "c", "d", "e"], num_epochs=4, seed=7)
    told.run_fed(names.dequeue(), "names")


def batches(told):
    """Rows by train.batch, the last of them few."""
    rows = v1.train.range_input_producer(10, num_epochs=3, seed=3).dequeue()
    one, two = v1.train.batch([rows, tf.stack([rows, rows * 2])], 4, allow_smaller_final_batch=True)
    told.run_fed([one, two], "batches")


def shuffled_batches(told):
    """Rows by train.shuffle_batch, sorted here: its queue is filled while it is emptied."""
    rows = v1.train.range_input_producer(10, num_epochs=3, seed=3).dequeue()
    rows = v1.train.shuffle_batch([rows], 5, capacity=20, min_after_dequeue=9, seed=4, num_threads=2)
    told.run_fed(rows, "shuffled", lambda got: sorted(np.ravel(got).tolist()))


def padded_batches(told):
    row = v1.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
    told.run_fed(v1.train.batch([tf.fill([row], row)], 3, dynamic_pad=True), "padded")


def training(told):
    """A thousand steps over rows that queues bring, in TensorFlow's order."""
    random = np.random.default_rng(3)
    x = random.normal(size=(64, 4)).astype(np.float32)
    row, wanted, number = v1.train.slice_input_producer(
        [x, x @ np.float32([[1], [2], [3], [4]]), np.arange(64)], num_epochs=125, seed=7)
    row, wanted, number = v1.train.batch([row, wanted, number], 8)
    weights = v1.get_variable("weights", [4, 1], initializer=v1.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(row, weights) - wanted))
    step = v1.train.create_global_step()
    train = v1.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
    told.session.run(v1.global_variables_initializer())
    fetches = {"rows": number, "loss": loss, "train": train}

    def rows(steps):
        told.numbers += [step["loss"] for step in steps]
        return [step["rows"] for step in steps]
    told.run_fed(fetches, "rows", rows)
    told.tell("steps", step)
    told.numbers += np.ravel(told.session.run(weights)).tolist()


def chosen(told):
    """QueueBase.from_list: a queue of several, by its number."""
    queues = [v1.FIFOQueue(5, tf.int32, shapes=[[]], shared_name="chosen%d" % i) for i in range(3)]
    number = v1.placeholder(tf.int32, [])
    one = v1.QueueBase.from_list(number, queues)
    put, size, take = one.enqueue_many([tf.range(number) + number]), one.size(), one.dequeue()
    for i in (1, 2, 0, 3):
        told.tell("put", put, {number: i})
    told.tell("none", size, {number: -1})
    told.tell("sizes", [queue.size() for queue in queues])
    told.tell("take", take, {number: 2})
    told.tell("size", size, {number: 2})
    end = told.start(take, feed={number: 0})  # waits on a queue that another step fills
    told.tell("put", queues[0].enqueue(7))
    told.lines.append(("waited", end()))


PROGRAMS = (names_produced, batches, shuffled_batches, padded_batches, training, chosen)
STORIES = (in_order, closing, waiting, out_of_time, closed_while_waiting, session_closed, shuffled, kept_for_shuffling,
           padded, of_many_types, refused, shared, wrong_handles, as_text)


def tell(story, target, generation):
    with tf.Graph().as_default(), contextlib.ExitStack() as stack:
        told = Told(target, generation, stack)
        story(told)
        return told


class Stories(side_by_side.TestCase):
    def told_by_tensorflow(self, story, generation):
        """Now and then TensorFlow's worker takes a step for one that came before; then it is asked a second time."""
        try:
            return tell(story, self.theirs, generation)
        except tf.errors.AbortedError as failure:
            if "request was received twice" not in failure.message:
                raise
        v1.Session.reset(self.theirs)
        return tell(story, self.theirs, generation)

    def compare(self, story, generation):
        got, wanted = tell(story, self.ours, generation), self.told_by_tensorflow(story, generation)
        self.assertEqual(got.lines, wanted.lines)
        np.testing.assert_allclose(got.numbers, wanted.numbers, rtol=1e-4, atol=1e-7)

    def test_a_batch_out_of_time_leaves_the_queue_as_it_was(self):
        """TensorFlow's server loses what the step had, once it has come so far."""
        def story(told):
            queue = told.queue(capacity=4)
            many, size = queue.take_many(4), queue.size()
            told.tell("put", queue.put_many([1.0, 2, 3]))
            told.tell("many", many, timeout_ms=1000)
            told.tell("size", size)
            told.tell("put", queue.put(4.0))
            told.tell("take", queue.take())
        self.assertEqual(tell(story, self.theirs, 2).lines[2:], [("size", 0), ("put", None), ("take", [4.0])])
        self.assertEqual(tell(story, self.ours, 2).lines[2:], [("size", 3), ("put", None), ("take", [1.0])])


for one in STORIES + PROGRAMS:
    for of in (1, 2) if one in STORIES else (2,):
        setattr(Stories, "test_%s_%d" % (one.__name__, of),
                lambda self, story=one, generation=of: self.compare(story, generation))

if __name__ == "__main__":
    peer.main()
