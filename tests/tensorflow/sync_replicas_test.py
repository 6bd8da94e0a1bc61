# SPDX-License-Identifier: Apache-2.0
"""Conditional accumulators, and SyncReplicasOptimizer on top of them: on TensorFlow's server and on ours."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import tensorflow as tf

import peer
import side_by_side
from side_by_side import any_shape, outcomes

v1 = tf.compat.v1
v1.disable_v2_behavior()
raw = tf.raw_ops


def accumulator(dtype=tf.float32, shape=None, reduction="MEAN", **names):
    return raw.ResourceConditionalAccumulator(dtype=dtype, shape=tf.TensorShape(shape), reduction_type=reduction,
                                              **names)


def apply(handle, step, gradient):
    return raw.ResourceAccumulatorApplyGradient(handle=handle, local_step=step, gradient=gradient)


def take(handle, n, dtype=tf.float32):
    return raw.ResourceAccumulatorTakeGradient(handle=handle, num_required=n, dtype=dtype)


def count(handle):
    return raw.ResourceAccumulatorNumAccumulated(handle=handle)


def set_step(handle, step):
    return raw.ResourceAccumulatorSetGlobalStep(handle=handle, new_global_step=step)


def rows(dtype=tf.float32, shape=None, reduction="MEAN", **names):
    return raw.SparseConditionalAccumulator(dtype=dtype, shape=tf.TensorShape(shape), reduction_type=reduction,
                                            **names)


def apply_rows(handle, step, indices, values, shape=None):
    return raw.SparseAccumulatorApplyGradient(
        handle=handle, local_step=step, gradient_indices=any_shape(indices, tf.int64), gradient_values=values,
        gradient_shape=any_shape(shape or [], tf.int64), has_known_shape=shape is not None)


def take_rows(handle, n, dtype=tf.float32):
    return list(raw.SparseAccumulatorTakeGradient(handle=handle, num_required=n, dtype=dtype))


class Accumulators(side_by_side.TestCase):
    def test_a_mean_of_as_many_as_were_asked_for(self):
        def build():
            a = accumulator()
            return [count(a), apply(a, 0, [1., 2.]), apply(a, 0, [3., 5.]), count(a), take(a, 2), count(a),
                    apply(a, 0, [1., 1.]), count(a), apply(a, 1, [1., 1.]), count(a), set_step(a, 0),
                    apply(a, 0, [2., 2.]), count(a), take(a, 1), apply(a, 9, [1., 1.]), take(a, 1)]
        answers = self.check(build)
        self.assertEqual(answers[4], [2.0, 3.5])
        self.assertEqual(answers[7], 0)  # of an older step

    def test_a_sum(self):
        def build():
            a, b = accumulator(reduction="SUM"), rows(reduction="SUM", shape=[4, 2])
            return [apply(a, 0, [1., 2.]), apply(a, 0, [3., 5.]), take(a, 1),
                    apply_rows(b, 0, [0, 2], [[1., 2.], [3., 4.]], [4, 2]),
                    apply_rows(b, 0, [2], [[1., 2.]], [4, 2]), take_rows(b, 1)]
        self.check(build)

    def test_every_type(self):
        def build():
            steps = []
            for dtype in tf.float16, tf.float32, tf.float64:
                a, b = accumulator(dtype), rows(dtype)
                for value in [1.1, -2.3], [0.7, 1000.], [3., 0.1]:
                    steps += [apply(a, 0, tf.constant(value, dtype)),
                              apply_rows(b, 0, [1, 3], tf.constant(value, dtype))]
                steps += [take(a, 3, dtype), take_rows(b, 3, dtype)]
            return steps
        self.check(build)
        for dtype in tf.bfloat16, tf.int32:
            for target in self.ours, self.theirs:
                answer = outcomes(target, lambda dtype=dtype: [accumulator(dtype).op])[0]
                self.assertEqual(answer[0], "InvalidArgumentError")

    def test_a_shape_that_does_not_fit(self):
        def build():
            a, b = accumulator(shape=[2]), accumulator(shape=[None, 2])
            pair, both = any_shape([1., 2.]), any_shape([[1., 2.], [3., 4.]])
            return [apply(a, 0, any_shape([1., 2., 3.])), count(a), take(a, any_shape(0)), take(a, any_shape(-3)),
                    apply(b, 0, pair), apply(b, 0, any_shape([[1., 2.]])), apply(b, 0, both),
                    apply(b, 0, any_shape(1.)), take(b, 1), apply(b, -1, both), count(b), apply(b, 0, pair),
                    apply(a, -1, both)]
        self.check(build)

    def test_rows_go_along_with_those_of_the_same_index(self):
        def build():
            a = rows()
            n = raw.AccumulatorNumAccumulated(handle=a)
            return [n, apply_rows(a, 0, [0, 2], [[1., 2.], [3., 4.]]), apply_rows(a, 0, [2, 5], [[1., 2.], [3., 4.]]),
                    take_rows(a, 2), n, apply_rows(a, 0, [0], [[1., 2.]]), n,
                    raw.AccumulatorSetGlobalStep(handle=a, new_global_step=0),
                    apply_rows(a, 0, [5, 0, 5], [[1.], [2.], [4.]]), apply_rows(a, 0, [0, 5], [[10.], [20.]]),
                    take_rows(a, 1)]
        self.check(build)

    def test_rows_that_do_not_fit(self):
        def build():
            a, b, c = rows(shape=[4, None]), rows(), rows(shape=[3, 2])
            v = any_shape
            return [apply_rows(a, 0, [[1]], v([[1.]])), apply_rows(a, 0, [1], v(1.)),
                    apply_rows(a, 0, [1], v([[1.], [2.]])), apply_rows(a, 0, [4], v([[1.]])),
                    apply_rows(a, 0, [-1], v([[1.]])), apply_rows(a, 0, [1], v([1.])),
                    apply_rows(a, 0, [1], v([[1.]]), [4]), apply_rows(a, 0, [1], v([[1.]]), [5, 1]),
                    apply_rows(a, 0, [1], v([[1.]]), [4, 1]), apply_rows(a, 0, [1], v([[1., 2.]]), [4, 2]),
                    apply_rows(c, 0, [1], v([[1., 2., 3.]])), apply_rows(c, 0, [1], v([[1., 2., 3.]]), [3, 3]),
                    apply_rows(c, 0, [1], v([1.])), take_rows(a, 1),
                    apply_rows(a, 1, [], v(np.zeros([0, 3], np.float32))), take_rows(a, 1),
                    apply_rows(b, 0, [1], v([1.])), take_rows(b, 1), apply_rows(b, 5, [1], v([[[1.]]])),
                    take_rows(b, 1), apply_rows(c, 0, [1], v([[1., 2.]]), [3, 2]), take_rows(c, 1)]
        self.check(build)

    def test_one_name_is_one_accumulator_of_all_sessions(self):
        def first():
            return [apply(accumulator(shared_name="a"), 0, [1., 2.])]

        def second():
            a, own = accumulator(shared_name="a"), accumulator()
            return [count(a), count(own), apply(own, 0, [1.]), take(a, 1), count(a)]
        self.check(first)
        self.check(second)

    def test_the_first_generation_of_ops(self):
        def build():
            a = raw.ConditionalAccumulator(dtype=tf.float32, shape=[2])
            return [raw.AccumulatorApplyGradient(handle=a, local_step=0, gradient=[1., 2.]),
                    raw.AccumulatorTakeGradient(handle=a, num_required=1, dtype=tf.float32),
                    raw.AccumulatorApplyGradient(handle=a, local_step=1, gradient=any_shape([1.])),
                    raw.AccumulatorNumAccumulated(handle=a)]
        self.check(build)

    def test_another_kind_of_resource_is_no_accumulator(self):
        def build():
            table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64, shared_name="a table")
            return [count(table)]
        self.check(build)

    def test_whoever_takes_waits_until_there_is_enough(self):
        """The first who asked is served first, also where there is enough for the second."""
        for target in self.ours, self.theirs:
            with tf.Graph().as_default() as graph:
                handle = accumulator(shared_name="waited for")
                takes, give, n = [take(handle, i) for i in (1, 2)], apply(handle, 5, 2.0), count(handle)
                answers = []

                def wait(i, graph=graph, takes=takes, target=target, answers=answers):
                    with v1.Session(target, graph=graph) as session:
                        answers.append((i, session.run(takes[i])))
                with v1.Session(target) as session:
                    thread = threading.Thread(target=wait, args=(1,))
                    thread.start()
                    session.run(give)
                    self.assertEqual(session.run(n), 1)
                    session.run(give)
                    thread.join(60)
                    self.assertEqual(answers, [(1, 2.0)])
                    self.assertEqual(session.run(n), 0)

    def test_a_step_that_waits_too_long_is_ended(self):
        """When the server hears of that is another matter: the client has its own clock."""
        for target in self.ours, self.theirs:
            def build():
                a = accumulator()
                return [take(a, 1), count(a)]
            answers = outcomes(target, build, timeout_ms=1000)
            self.assertEqual(answers[0][0], "DeadlineExceededError")
            self.assertEqual(answers[1], 0)

    def test_a_session_that_is_closed_waits_no_longer(self):
        for target in self.ours, self.theirs:
            with tf.Graph().as_default() as graph:
                a = accumulator(shared_name="left")
                begun = v1.get_variable("begun", [], initializer=v1.zeros_initializer(), use_resource=True)
                with tf.control_dependencies([begun.assign_add(1., read_value=False)]):
                    waiting = take(a, 1)
                give, init, failures = apply(a, 0, 1.), v1.global_variables_initializer(), []
                session, other = v1.Session(target, graph=graph), v1.Session(target, graph=graph)
                other.run(init)

                def wait(session=session, waiting=waiting, failures=failures):
                    try:
                        session.run(waiting)
                    except tf.errors.OpError as error:
                        failures.append(error)
                thread = threading.Thread(target=wait)
                thread.start()
                end = time.monotonic() + 60
                while other.run(begun) < 1 and time.monotonic() < end:
                    time.sleep(0.01)
                session.close()
                thread.join(60)
                self.assertEqual([type(f).__name__ for f in failures], ["CancelledError"])
                other.run(give)
                self.assertEqual(other.run(waiting), 1.0)
                other.close()


STEPS = 6


class Replica:
    """A program of two replicas: words that are counted in, dense and sparse gradients averaged each step."""

    def __init__(self, use_resource, optimizer, replicas=2, rate=0.1):
        self.step = v1.train.get_or_create_global_step()
        # The same batch for both: a step's mean doesn't depend on who was first.
        x = tf.constant([[0.1, 0.9, 0.4], [0.7, 0.2, 0.5], [0.3, 0.3, 0.8], [0.6, 0.1, 0.2]])
        y = tf.constant([[1.0], [0.0], [1.0], [0.5]])
        places = tf.constant([3, 1, 3, 0])
        w = v1.get_variable("w", [3, 1], initializer=v1.constant_initializer([[0.3], [-0.2], [0.1]]),
                            use_resource=use_resource)
        rows = v1.get_variable("rows", [5, 1], initializer=v1.ones_initializer(), use_resource=use_resource)
        predicted = tf.matmul(x, w) + v1.nn.embedding_lookup(rows, places)
        self.loss = tf.reduce_mean(tf.square(predicted - y))
        self.optimizer = optimizer(rate)
        if replicas > 1:
            self.optimizer = v1.train.SyncReplicasOptimizer(self.optimizer, replicas, replicas)
        self.train = self.optimizer.minimize(self.loss, global_step=self.step)
        self.values = {"w": w.read_value() if use_resource else tf.identity(w),
                       "rows": rows.read_value() if use_resource else tf.identity(rows)}


def quiet(args):
    """A queue runner's thread ends with its session, which is no news."""
    if not isinstance(args.exc_value, tf.errors.CancelledError):
        threading.__excepthook__(args)


threading.excepthook = quiet


def together(*functions):
    """Runs each on a thread of its own; what they return, in order, or the first failure."""
    answers, failures = [None] * len(functions), []

    def run(i):
        try:
            with tf.Graph().as_default():
                answers[i] = functions[i]()
        except BaseException as error:  # pylint: disable=broad-except
            failures.append(error)
    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        if thread.is_alive():
            raise AssertionError("a replica has not ended; failures so far: %s" % failures)
    if failures:
        raise failures[0]
    return answers


class Prepared(v1.train.SessionRunHook):
    """The worker begins when the chief is ready: TensorFlow's would look again after 30 s only."""

    def __init__(self, is_chief, event):
        self.is_chief, self.event = is_chief, event

    def begin(self):
        if not self.is_chief and not self.event.wait(60):
            raise AssertionError("the chief has not got ready")

    def after_create_session(self, session, coord):
        self.event.set()


def monitored(target, is_chief, prepared, *how):
    """A replica as most programs have it: a hook of the optimizer's, and a step to stop at."""
    replica = Replica(*how)
    hooks = [replica.optimizer.make_session_run_hook(is_chief, num_tokens=0), Prepared(is_chief, prepared),
             v1.train.StopAtStepHook(STEPS)]
    # Whoever stops leaves a step of the chief's behind that takes gradients, on either server.
    with v1.train.MonitoredTrainingSession(target, is_chief, hooks=hooks, max_wait_secs=60,
                                           stop_grace_period_secs=1) as session:
        while not session.should_stop():
            session.run(replica.train)


def managed(target, is_chief, _, *how):
    """A replica with a SessionManager and ops of its own choice, and a queue runner that it starts."""
    replica = Replica(*how)
    optimizer, init = replica.optimizer, v1.global_variables_initializer()
    manager = v1.train.SessionManager(
        local_init_op=optimizer.chief_init_op if is_chief else optimizer.local_step_init_op,
        ready_op=v1.report_uninitialized_variables(), ready_for_local_init_op=optimizer.ready_for_local_init_op,
        recovery_wait_secs=1)
    coordinator, threads = v1.train.Coordinator(), []
    if is_chief:
        tokens = optimizer.get_init_tokens_op(0)
        session = manager.prepare_session(target, init_op=init)
        threads = optimizer.get_chief_queue_runner().create_threads(session, coordinator, daemon=True, start=True)
        session.run(tokens)
    else:
        session = manager.wait_for_session(target, max_wait_secs=60)
    while session.run(replica.step) < STEPS:  # not so many of its own: a fast replica trains for a slow one
        session.run(replica.train)
    coordinator.request_stop()
    coordinator.join(threads, stop_grace_period_secs=1, ignore_live_threads=True)
    session.close()


class SyncReplicas(peer.TestCase):
    def train(self, server, replica, *how):
        """The model after two replicas have trained."""
        prepared = threading.Event()
        with server() as target:
            together(*[lambda i=i: replica(target, i == 0, prepared, *how) for i in range(2)])
            with tf.Graph().as_default():
                model = Replica(*how)
                with v1.Session(target) as session:
                    return session.run([model.step, model.values, model.loss])

    def expect_same(self, replica, *how):
        step, wanted, loss = self.train(peer.tensorflow_server, replica, *how)
        self.assertEqual(step, STEPS)
        self.assertEqual(wanted["rows"][4, 0], 1.0)  # no gradient has this one
        step, got, our_loss = self.train(peer.muster_server, replica, *how)
        self.assertEqual(step, STEPS)
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-4, err_msg=name)
        np.testing.assert_allclose(our_loss, loss, rtol=1e-4)

    def test_two_replicas_train_with_resource_variables(self):
        self.expect_same(monitored, True, v1.train.GradientDescentOptimizer)

    def test_two_replicas_train_with_reference_variables(self):
        self.expect_same(monitored, False, v1.train.AdagradOptimizer)

    def test_replicas_of_a_session_manager(self):
        for use_resource in False, True:
            with self.subTest(use_resource=use_resource):
                self.expect_same(managed, use_resource, v1.train.GradientDescentOptimizer)


class Job:
    """A chief and a worker of `muster train`, on a server that may be killed, too."""

    def __init__(self, test, master):
        self.directory = os.path.join(test.folder(), "job")
        self.held = peer.hold_port()
        test.addCleanup(self.held.close)
        self.serving = [peer.MUSTER, "serve", "--listen=localhost:%d" % peer.port_of(self.held), *master]
        self.target = "grpc://localhost:%d" % peer.port_of(self.held)
        self.running = {}
        test.addCleanup(lambda: [self.kill(who) for who in list(self.running)])
        self.model = ["--meta-graph=" + test.meta_graph, "--master=" + self.target]

    def start(self, who, steps=1000000, *more):
        log = tempfile.TemporaryFile(mode="w+")
        argv = self.serving
        if who != "server":
            argv = [peer.MUSTER, "train", *self.model, "--task=%s:0" % who, "--tasks=2", "--steps=%d" % steps]
        if who == "chief":
            argv += ["--checkpoint-dir=" + self.directory, "--restore", "--save-every=2", "--save-blocking", "--keep=-1",
                     "--overwrite"]
        argv += more
        self.running[who] = subprocess.Popen(argv, stdout=log, stderr=log, preexec_fn=peer.die_with_parent), log

    def kill(self, who):
        process, log = self.running.pop(who)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        log.close()

    def steps(self):
        """Of the checkpoints, in order."""
        names = os.listdir(self.directory) if os.path.isdir(self.directory) else []
        return sorted(int(name[11:-6]) for name in names if re.fullmatch(r"model\.ckpt-\d+\.index", name))

    def said(self):
        texts = []
        for who, (_, log) in self.running.items():
            log.seek(0)
            texts.append("--- %s\n%s" % (who, log.read()))
        return "\n".join(texts)

    def await_more(self, n=6):
        """Until the job has trained so many steps more."""
        before = (self.steps() or [0])[-1]
        try:
            peer.await_true(lambda: (self.steps() or [0])[-1] >= before + n, "it trains")
        except AssertionError as error:
            raise AssertionError("%s\n%s" % (error, self.said()))

    def end(self, who):
        try:
            self.running[who][0].wait(60)
        except subprocess.TimeoutExpired as error:
            raise AssertionError("%s has not ended\n%s" % (who, self.said())) from error
        process, log = self.running.pop(who)
        log.seek(0)
        return process.returncode, log.read()


RATE = 0.01


class Killed(peer.TestCase):
    """`muster train` of TensorFlow's graph, with two replicas, each of its processes killed."""

    @classmethod
    def setUpClass(cls):
        cls.how = True, v1.train.GradientDescentOptimizer, 2, RATE
        cls.meta_graph = os.path.join(cls.enterClassContext(tempfile.TemporaryDirectory()), "sync.meta")
        with tf.Graph().as_default():
            Replica(*cls.how)
            v1.train.export_meta_graph(cls.meta_graph)

    def curve(self, n):
        """TensorFlow's own variables before the first step and after each. The mean of two replicas' equal gradients is the
        gradient of one; of two sessions, one may take the other's token, so that nobody sees a step between."""
        use_resource, optimizer, _, rate = self.how
        values = []
        with tf.Graph().as_default():
            alone = Replica(use_resource, optimizer, 1, rate)
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                for _ in range(n + 1):
                    values.append(session.run(alone.values))
                    session.run(alone.train)
        return values

    def queue_size(self, target):
        with tf.Graph().as_default():
            replica = Replica(*self.how)
            with v1.Session(target) as session:
                return session.run(replica.optimizer._sync_token_queue.size())

    def live_and_die(self, *master):
        job = Job(self, master)
        for who in "server", "chief", "worker":
            job.start(who)
        job.await_more()
        for who in "worker", "chief", "server":
            job.kill(who)
            job.start(who)
            job.await_more()
        for who in "chief", "worker":
            job.kill(who)
        last = job.steps()[-1] + 5
        for who in "chief", "worker":
            job.start(who, last)
        for who in "chief", "worker":
            code, said = job.end(who)
            self.assertEqual(code, 0, said)
        self.assertEqual(job.steps()[-1], last)
        self.assertLessEqual(self.queue_size(job.target), 2)  # as after a fresh start
        return job

    def check(self, job):
        """Each checkpoint is of one step: that of its name, or a later one where the other replica trained on."""
        steps = job.steps()
        readers = {step: tf.train.load_checkpoint(os.path.join(job.directory, "model.ckpt-%d" % step)) for step in steps}
        saved = {step: reader.get_tensor("global_step") for step, reader in readers.items()}
        curve = self.curve(max(saved.values()))
        for step, reader in readers.items():
            self.assertGreaterEqual(saved[step], step)
            for name, value in curve[saved[step]].items():
                np.testing.assert_allclose(reader.get_tensor(name), value, 1e-4, 1e-6, err_msg="%s at %d" % (name, step))
        return len(steps)

    def test_a_chief_alone_says_what_its_step_waits_for(self):
        job = Job(self, ())
        job.start("server")
        job.start("chief", 5, "--step-timeout=500ms")
        waits = "timed out after 500 ms: .*; each step waits for a token in the queue '.*sync_token_q'.* after 2 gradients"
        peer.await_true(lambda: re.search(waits, job.said()), "it says so")

    def test_on_the_engine(self):
        self.assertGreater(self.check(self.live_and_die()), 10)

    def test_on_tensorflows_runtime(self):
        self.assertGreater(self.check(self.live_and_die("--master=tensorflow:" + sys.prefix)), 10)


if __name__ == "__main__":
    peer.main()
