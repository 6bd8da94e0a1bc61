# SPDX-License-Identifier: Apache-2.0
"""Graphs as people export them, one kind each: TensorFlow writes their .meta files, and says what training gives."""
import json
import os

import numpy as np
from google.protobuf import text_format
import tensorflow.compat.v1 as tf

ROWS = 8
KINDS = {}


class Kind:
    """A graph: what a step runs in TensorFlow, and what muster is told of it."""

    def __init__(self, train, loss=None, feeds=None, options=(), saver=None, start=None, on_engine=True, edit=None,
                 finalize=False, keys=None, unlike=(), tolerance=1e-4,
                 ends=False, constants=None):
        self.train = train if isinstance(train, list) else [train]
        self.loss = loss
        self.feeds = feeds or {}  # a tensor's name -> its array
        self.constants = constants or {}  # a tensor's name -> a list that is the same in every step
        self.options = list(options)  # of every command
        self.saver = saver
        self.start = start  # what TensorFlow runs beside a step: called with the session
        self.on_engine = on_engine
        self.finalize = finalize
        self.keys = keys or {}  # a variable's name in checkpoints, where it is another
        self.unlike = unlike  # variables that muster counts and TensorFlow's program didn't
        self.tolerance = tolerance
        self.ends = ends  # by itself
        self.edit = edit  # changes the MetaGraphDef as written


FORMS = {"plain": "text", "wide_and_deep": "saved model"}  # how a kind is exported once more


def kind(make):
    KINDS[make.__name__] = make
    return make


# --- parts ---


def data():
    """The same rows in each step, so that their order is nothing to a result."""
    xs = np.random.RandomState(0).rand(ROWS, 2).astype("float32")
    return xs, (xs @ [2, -1] + 3).astype("float32")


def inputs():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    y = tf.placeholder(tf.float32, [None], name="y")
    return x, y, dict(zip((x.name, y.name), data()))


def variable(name, shape, value=0.1, **more):
    return tf.get_variable(name, shape, initializer=tf.constant_initializer(value), **more)


def linear(x, y, **more):
    w, b = variable("w", [2, 1], **more), variable("b", [], 0, **more)
    return tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(x, w), 1) + b - y), name="loss"), w, b


def descend(loss, step=None, rate=0.01, **more):
    return tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step, **more)


def collect(op, *others):
    """The train op that the author means, in place of those that minimize () has left."""
    ops = tf.get_collection_ref(tf.GraphKeys.TRAIN_OP)
    del ops[:]
    ops.extend((op,) + others)
    return op


# --- the kinds ---


@kind
def plain():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    return Kind(descend(loss, tf.train.create_global_step()), loss, feeds)


@kind
def saved_with_a_scaffold():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    train = descend(loss, tf.train.create_global_step())
    return Kind(train, loss, feeds, finalize=True)


@kind
def resource_variables():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y, use_resource=True)
    return Kind(tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.create_global_step()), loss, feeds)


@kind
def scalars_alone():
    s = variable("s", [], 1.0)
    loss = tf.square(s - 3.0, name="loss")
    return Kind(descend(loss, tf.train.create_global_step()), loss)


@kind
def wide_and_deep():
    x, y, feeds = inputs()
    wide = tf.squeeze(tf.matmul(x, variable("wide/w", [2, 1])), 1)
    hidden = tf.nn.relu(tf.matmul(x, variable("deep/h", [2, 3], 0.2)))
    deep = tf.squeeze(tf.matmul(hidden, variable("deep/w", [3, 1], 0.3)), 1)
    loss = tf.reduce_mean(tf.square(wide + deep - y), name="loss")
    step = tf.train.create_global_step()
    variables = tf.trainable_variables()
    train = [tf.train.FtrlOptimizer(0.1).minimize(loss, var_list=[v for v in variables if "wide/" in v.name]),
             tf.train.AdagradOptimizer(0.1).minimize(loss, step, var_list=[v for v in variables if "deep/" in v.name])]
    return Kind(train, loss, feeds)


@kind
def grouped():
    x, y, feeds = inputs()
    loss, w, b = linear(x, y)
    step = tf.train.create_global_step()
    one = descend(loss, var_list=[w])
    other = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, step, var_list=[b])
    train = tf.group(one, other, name="both")
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train)
    return Kind(train, loss, feeds)


def gan(step=None):
    real = tf.placeholder(tf.float32, [None, 2], name="real")
    g, d = variable("g", [2], 0.5), variable("d", [2], 0.3)
    made = real * g
    score = lambda v: tf.reduce_mean(tf.reduce_sum(v * d, 1))
    d_loss = tf.subtract(score(made), score(real) - tf.reduce_sum(tf.square(d)), name="loss")
    g_loss = tf.negative(score(made), name="g_loss")
    feeds = {real.name: data()[0]}
    # Plain descent ends at one point from everywhere; an optimizer that divides by the gradient's size turns the
    # last bit of a sum into another sign.
    optimizer = tf.train.GradientDescentOptimizer(0.01)
    return (optimizer.minimize(d_loss, step, var_list=[d], name="train_d"),
            optimizer.minimize(g_loss, step, var_list=[g], name="train_g"), d_loss, feeds)


@kind
def gan_together():
    d, g, loss, feeds = gan()
    return Kind([d, g], loss, feeds, tolerance=0.05)  # which of them reads first is open


@kind
def gan_phase():
    """Both phases advance the global step, so they can't be one step."""
    d, _, loss, feeds = gan(tf.train.create_global_step())
    return Kind(d, loss, feeds, ["--train-op=" + d.name])


@kind
def averages():
    x, y, feeds = inputs()
    loss, w, b = linear(x, y)
    step = tf.train.create_global_step()
    inner = descend(loss, step)
    with tf.control_dependencies([inner]):
        train = tf.train.ExponentialMovingAverage(0.9).apply([w, b])
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train)
    return Kind(train, loss, feeds)


@kind
def averages_outside():
    """The op of the averages isn't in the collection; the author's program ran both."""
    x, y, feeds = inputs()
    loss, w, b = linear(x, y)
    train = descend(loss, tf.train.create_global_step())
    with tf.control_dependencies([train]):
        average = tf.train.ExponentialMovingAverage(0.9).apply([w, b])
    return Kind(average, loss, feeds, ["--train-op=" + average.name])


@kind
def queues():
    """Each batch is the same, so that a job that begins its input again gets the same result."""
    ones = tf.train.input_producer(tf.ones([4]), shuffle=False).dequeue()
    batch = tf.train.batch([ones], 4)
    w = variable("w", [])
    loss = tf.reduce_mean(tf.square(batch * w - 3), name="loss")
    return Kind(descend(loss, tf.train.create_global_step(), 0.1), loss, start=start_queues)


def start_queues(session):
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    return lambda: (coordinator.request_stop(), coordinator.join(threads))


@kind
def input_that_ends():
    """Three batches, and a job without --steps."""
    values = tf.train.input_producer(tf.range(12.0), shuffle=False, num_epochs=1).dequeue()
    batch = tf.train.batch([values], 4)
    w = variable("w", [])
    loss = tf.reduce_mean(tf.square(batch * w - 3), name="loss")
    return Kind(descend(loss, tf.train.create_global_step(), 0.001), loss, start=start_queues, ends=True)


@kind
def dataset():
    values = tf.data.make_one_shot_iterator(tf.data.Dataset.from_tensors(tf.ones([4])).repeat()).get_next()
    w = variable("w", [])
    loss = tf.reduce_mean(tf.square(values * w - 3), name="loss")
    return Kind(descend(loss, tf.train.create_global_step(), 0.1), loss, on_engine=False)


@kind
def begun_by_the_init_op():
    """Nothing but the init op begins the iterator, which a restore doesn't run."""
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.from_tensors(tf.ones([4])).repeat())
    w = variable("w", [])
    loss = tf.reduce_mean(tf.square(iterator.get_next() * w - 3), name="loss")
    train = descend(loss, tf.train.create_global_step(), 0.1)
    tf.add_to_collection(tf.GraphKeys.INIT_OP, tf.group(tf.global_variables_initializer(), iterator.initializer))
    return Kind(train, loss, on_engine=False, finalize=True, start=lambda session: session.run(iterator.initializer))


@kind
def begun_by_its_program():
    """No op of the graph's collections begins the iterator."""
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.from_tensors(tf.ones([4])).repeat())
    loss = tf.reduce_mean(tf.square(iterator.get_next() * variable("w", []) - 3), name="loss")
    train = descend(loss, tf.train.create_global_step(), 0.1)
    return Kind(train, loss, on_engine=False, start=lambda session: session.run(iterator.initializer))


@kind
def counted_after_the_optimizers():
    """As an estimator of two halves: the optimizers' ops are collected, the one that counts and runs them isn't."""
    x, y, feeds = inputs()
    step = tf.train.create_global_step()
    loss, w, b = linear(x, y)
    both = tf.group(descend(loss, var_list=[w]), descend(loss, var_list=[b]))
    with tf.control_dependencies([both]):
        train = step.assign_add(1, name="count")
    return Kind(train, loss, feeds)


@kind
def collected_nowhere():
    """The program keeps its train op to itself, beside an op that loads other values into all variables."""
    x, y, feeds = inputs()
    loss, w, b = linear(x, y)
    train = descend(loss, tf.train.create_global_step(), name="kept")
    del tf.get_collection_ref(tf.GraphKeys.TRAIN_OP)[:]
    tf.group(w.assign(tf.ones([2, 1])), b.assign(1.0), name="load")
    return Kind(train, loss, feeds, options=["--train-op=kept"])


@kind
def list_of_rates():
    """As DeepFM's dropout: a vector of which each element is a rate, the same in every step."""
    x, y, feeds = inputs()
    rates = tf.placeholder(tf.float32, [None], name="rates")
    loss, _, _ = linear(x * rates[0], y * rates[1])
    return Kind(descend(loss, tf.train.create_global_step()), loss, feeds, constants={rates.name: [0.5, 2.0]})


@kind
def table_of_the_init_op():
    """The local init op is a program's own, and leaves the table to the init op."""
    keys = tf.placeholder(tf.int64, [None], name="keys")
    found = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.range(10, dtype=tf.int64), tf.range(10, dtype=tf.int64) % 3), -1).lookup(keys)
    loss = tf.reduce_mean(tf.square(variable("w", []) - tf.cast(found, tf.float32)), name="loss")
    train = descend(loss, tf.train.create_global_step())
    tf.add_to_collection(tf.GraphKeys.INIT_OP, tf.group(tf.global_variables_initializer(), tf.tables_initializer()))
    tf.add_to_collection(tf.GraphKeys.LOCAL_INIT_OP, tf.no_op(name="nothing"))
    return Kind(train, loss, {keys.name: np.arange(ROWS, dtype="int64") % 10})


@kind
def variable_of_no_collection():
    x, y, feeds = inputs()
    hidden = variable("hidden", [], 0.5, collections=["hidden_ones"])
    w = variable("w", [2, 1])
    loss = tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(x, w), 1) + hidden - y), name="loss")
    train = descend(loss, tf.train.create_global_step(), var_list=[w, hidden])
    return Kind(train, loss, feeds, start=lambda session: session.run(hidden.initializer))


@kind
def old_saver():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    train = descend(loss, tf.train.create_global_step())
    return Kind(train, loss, feeds, saver=tf.train.Saver(write_version=tf.train.SaverDef.V1))


@kind
def saver_of_a_part():
    x, y, feeds = inputs()
    loss, w, _ = linear(x, y)
    train = descend(loss, tf.train.create_global_step())
    return Kind(train, loss, feeds, saver=tf.train.Saver([w, tf.train.get_global_step()]))


@kind
def saver_with_names():
    x, y, feeds = inputs()
    loss, w, b = linear(x, y)
    step = tf.train.create_global_step()
    train = descend(loss, step)
    return Kind(train, loss, feeds, saver=tf.train.Saver({"weights": w, "bias": b, "global_step": step}),
                keys={"w": "weights", "b": "bias"})


@kind
def sharded_saver():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    train = descend(loss, tf.train.create_global_step())
    return Kind(train, loss, feeds, saver=tf.train.Saver(sharded=True, max_to_keep=3))


@kind
def no_step():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    return Kind(descend(loss), loss, feeds)


@kind
def no_step_and_init_op():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    train = descend(loss)
    tf.add_to_collection(tf.GraphKeys.INIT_OP, tf.global_variables_initializer())
    return Kind(train, loss, feeds)


@kind
def forgotten_step():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    tf.train.create_global_step()
    return Kind(descend(loss), loss, feeds, unlike=("global_step",))


@kind
def unnamed_step():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    return Kind(descend(loss, tf.Variable(0, trainable=False)), loss, feeds)


@kind
def int32_step():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    step = tf.get_variable("global_step", [], tf.int32, tf.zeros_initializer(), trainable=False)
    tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, step)
    return Kind(descend(loss, step), loss, feeds)


@kind
def partitioned():
    ids = tf.placeholder(tf.int64, [None], name="x")
    table = variable("emb", [30, 4], partitioner=tf.fixed_size_partitioner(3))
    found = tf.nn.embedding_lookup(table, ids, partition_strategy="div")
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(found, 1) - 1.0), name="loss")
    train = tf.train.AdagradOptimizer(0.1).minimize(loss, tf.train.create_global_step())
    return Kind(train, loss, {ids.name: np.arange(ROWS) * 3})


@kind
def embeddings():
    ids = tf.placeholder(tf.int64, [None], name="x")
    found = tf.nn.embedding_lookup(variable("emb", [30, 4], use_resource=True), ids)
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(found, 1) - 1.0), name="loss")
    train = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.create_global_step())
    return Kind(train, loss, {ids.name: np.array([1, 1, 2, 3, 5, 8, 13, 21])})


@kind
def table():
    keys = tf.placeholder(tf.int64, [None], name="x")
    found = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.range(10, dtype=tf.int64), tf.range(10, dtype=tf.int64) % 3), -1).lookup(keys)
    loss = tf.reduce_mean(tf.square(tf.gather(variable("w", [3]), found) - tf.cast(found, tf.float32)), name="loss")
    return Kind(descend(loss, tf.train.create_global_step(), 0.1), loss, {keys.name: np.arange(ROWS)})


@kind
def text():
    words = tf.string_split(tf.constant(["a session of many steps", "a step"])).values
    buckets = tf.string_to_hash_bucket_fast(words, 7)
    loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(variable("emb", [7, 2]), buckets) - 1.0), name="loss")
    return Kind(descend(loss, tf.train.create_global_step(), 0.1), loss)


@kind
def words():
    """Strings are fed; NumPy writes them as text of one width."""
    x = tf.placeholder(tf.string, [None], name="x")
    found = tf.nn.embedding_lookup(variable("emb", [7, 2]), tf.string_to_hash_bucket_fast(x, 7))
    loss = tf.reduce_mean(tf.square(found - 1.0), name="loss")
    return Kind(descend(loss, tf.train.create_global_step(), 0.1), loss,
                {x.name: np.array(["a", "session", "of", "many", "steps", "", "größe", "a"])})


@kind
def batch_norm():
    x, y, feeds = inputs()
    mean = variable("moving_mean", [2], 0, trainable=False)
    average = tf.assign_sub(mean, (mean - tf.reduce_mean(x, 0)) * 0.1)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, average)
    loss, _, _ = linear(x, y)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.create_global_step())
    return Kind(train, loss, feeds)


@kind
def slim():
    """tf_slim's train op is the loss, after the update; minimize () has left the update in the collection."""
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    update = descend(loss, tf.train.create_global_step())
    with tf.control_dependencies([update]):
        train = tf.identity(loss, name="train_op")
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train)
    return Kind(train, loss, feeds)


@kind
def decay_and_clipping():
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    step = tf.train.create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(tf.train.exponential_decay(0.1, step, 10, 0.5))
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
    return Kind(optimizer.apply_gradients(zip(clipped, variables), step), loss, feeds)


@kind
def two_savers():
    """One for each checkpoint, and one for the best."""
    x, y, feeds = inputs()
    loss, w, _ = linear(x, y)
    train = descend(loss, tf.train.create_global_step())
    tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver(max_to_keep=2))
    tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver([w], name="best"))
    return Kind(train, loss, feeds)


@kind
def old_producer():
    """TensorFlow before 1.2 wrote an unknown shape of a placeholder as that of a scalar."""
    def edit(meta_graph):
        for node in meta_graph.graph_def.node:
            if node.op == "Placeholder":
                node.attr["shape"].shape.Clear()
                node.attr["shape"].shape.SetInParent()
        meta_graph.graph_def.versions.producer = 21
        meta_graph.meta_info_def.tensorflow_version = "0.12.1"

    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    return Kind(descend(loss, tf.train.create_global_step()), loss, feeds, edit=edit)


@kind
def float_step():
    """The default type of get_variable (): CIFAR-10's example for several GPUs has it."""
    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    step = tf.get_variable("global_step", [], initializer=tf.zeros_initializer(), trainable=False)
    return Kind(descend(loss, step, tf.train.exponential_decay(0.1, step, 10, 0.5)), loss, feeds)


@kind
def devices_of_a_cluster():
    """Variables of a parameter server, and two GPUs that compute."""
    def edit(meta_graph):
        for i, node in enumerate(meta_graph.graph_def.node):
            is_state = node.op.startswith("Variable") or "global_step" in node.name
            node.device = "/job:ps/task:0/cpu:0" if is_state else "/job:worker/replica:0/task:1/device:GPU:%d" % (i % 2)

    x, y, feeds = inputs()
    loss, _, _ = linear(x, y)
    train = tf.train.AdamOptimizer(0.01).minimize(loss, tf.train.create_global_step())
    return Kind(train, loss, feeds, edit=edit)


@kind
def convolution():
    x = tf.placeholder(tf.float32, [None, 4, 4, 1], name="x")
    found = tf.nn.conv2d(x, variable("kernel", [2, 2, 1, 2]), [1, 1, 1, 1], "SAME")
    loss = tf.reduce_mean(tf.square(tf.nn.max_pool2d(found, 2, 2, "SAME") - 1.0), name="loss")
    pixels = np.random.RandomState(0).rand(ROWS, 4, 4, 1).astype("float32")
    return Kind(descend(loss, tf.train.create_global_step(), 0.1), loss, {x.name: pixels}, on_engine=False)


@kind
def loop():
    x, y, feeds = inputs()
    w = variable("w", [2, 1])
    total = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v + tf.squeeze(tf.matmul(x, w), 1)), [0, tf.zeros_like(y)])[1]
    loss = tf.reduce_mean(tf.square(total - y), name="loss")
    return Kind(descend(loss, tf.train.create_global_step()), loss, feeds, on_engine=False)


def synchronised(averages=None):
    x, y, feeds = inputs()
    loss, w, b = linear(x, y)
    step = tf.train.create_global_step()
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.01), 1, 1, variable_averages=averages,
                                               variables_to_average=[w, b] if averages else None)
    train = optimizer.minimize(loss, step)
    runner = optimizer.get_chief_queue_runner()

    def start(session):
        """Without tokens to begin with, so that no gradient is ahead of the update, and dropped then, or not."""
        session.run([optimizer.chief_init_op])
        coordinator = tf.train.Coordinator()
        threads = runner.create_threads(session, coordinator, daemon=True, start=True)
        return lambda: coordinator.request_stop()

    # As in TensorFlow, a step may end before the chief has averaged it.
    return Kind(train, loss, feeds, start=start, unlike=[each.op.name + "/ExponentialMovingAverage" for each in (w, b)])


@kind
def sync_replicas():
    return synchronised()


@kind
def sync_replicas_with_averages():
    """The chief updates the averages after it has let the replicas go on."""
    return synchronised(tf.train.ExponentialMovingAverage(0.5))


# --- writing and training ---


def whole_variables():
    """By their names in checkpoints: the parts of one as one."""
    parts, found = {}, {}
    for each in tf.global_variables():
        if each._save_slice_info:
            parts.setdefault(each._save_slice_info.full_name, []).append(each)
        else:
            found[each.op.name] = each
    found.update({name: tf.concat(all_of_it, 0) for name, all_of_it in parts.items()})
    return found


def write(name, folder, form=None):
    """Exports the graph; gives the kind, with its graph, .meta file and arrays' files."""
    with tf.Graph().as_default() as graph, tf.container((name + str(form)).replace("_", "").replace(" ", "")):
        made = KINDS[name]()
        made.name, made.graph = name + ("_as_" + form.replace(" ", "_") if form else ""), graph
        made.path = os.path.join(folder, made.name + (".pbtxt" if form == "text" else "" if form else ".meta"))
        made.variables = whole_variables()
        made.init = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer())
        if made.finalize:
            tf.train.Scaffold().finalize()
        meta_graph = tf.train.export_meta_graph(saver_def=made.saver.as_saver_def() if made.saver else None)
        if made.edit:
            made.edit(meta_graph)
        if form == "text":
            with open(made.path, "w") as file:
                file.write(text_format.MessageToString(meta_graph))
        elif form == "saved model":
            builder = tf.saved_model.Builder(made.path)
            with tf.Session() as session:
                session.run(made.init)
                builder.add_meta_graph_and_variables(session, ["train"])
            builder.save()
        else:
            with open(made.path, "wb") as file:
                file.write(meta_graph.SerializeToString())
    made.feed_options = []
    made.data = os.path.join(folder, made.name + ".data")  # with the names that `muster inspect` proposes
    os.mkdir(made.data)
    for tensor, values in made.constants.items():
        made.feed_options.append("--feed=%s=%s" % (tensor, json.dumps(values)))
    for tensor, array in made.feeds.items():
        path = os.path.join(made.data, tensor.split(":")[0].split("/")[-1] + ".npy")
        np.save(path, array)
        made.feed_options.append("--feed=%s=@%s" % (tensor, path))
    return made


def write_all(folder):
    return [write(name, folder) for name in KINDS] + [write(name, folder, form) for name, form in FORMS.items()]


def train(made, steps):
    """The variables after so many steps in TensorFlow."""
    with tf.Session(graph=made.graph) as session:
        session.run(made.init)
        stop = made.start(session) if made.start else None
        for _ in range(steps):
            session.run(made.train, {**made.feeds, **made.constants})
        values = session.run(made.variables)
        if callable(stop):
            stop()
    return values
