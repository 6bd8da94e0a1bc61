# SPDX-License-Identifier: Apache-2.0
"""Monitored sessions whose threads fail, TensorFlow's and muster's side by side: what a run gives then, and what comes out at the
end."""
import os
import subprocess

import tensorflow as tf

import peer

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.logging.set_verbosity(v1.logging.ERROR)

TOOL = os.path.abspath("tests/tensorflow/monitored_tool")
# TensorFlow's RuntimeError is muster's FAILED_PRECONDITION.
FAILED_PRECONDITION = 9


def build(with_queue):
    """Ops to run: "other" always works; with a queue runner whose thread fails, "put" and "take" are of its queue."""
    tf.no_op("other")
    if not with_queue:
        return
    queue = tf.queue.FIFOQueue(3, [tf.float32], [[]], name="numbers")
    with tf.control_dependencies([v1.Assert(tf.constant(False), ["broken"])]):
        number = tf.constant(1.0)
    v1.train.add_queue_runner(v1.train.QueueRunner(queue, [queue.enqueue([number])]))
    tf.identity(queue.is_closed(), "closed")
    with tf.control_dependencies([queue.enqueue([tf.constant(2.0)])]):
        tf.no_op("put")
    with tf.control_dependencies([queue.dequeue()]):
        tf.no_op("take")


class Hook(v1.train.SessionRunHook):
    def __init__(self, story):
        self.story = story
        self.losses = 0

    def after_create_session(self, session, coord):
        self.session = session
        self.coordinator = coord

    def before_run(self, run_context):
        if self.story.endswith("then lost") and self.losses == 0:
            self.losses += 1
            raise tf.errors.AbortedError(None, None, "of the master")

    def after_run(self, run_context, run_values):
        if self.story == "stopped by a hook":
            run_context.request_stop()

    def end(self, session):
        if "failing end" in self.story:
            raise tf.errors.DataLossError(None, None, "of the end")

    def report(self, kind):
        try:
            raise kind(None, None, "of a thread")
        except tf.errors.OpError as error:
            self.coordinator.request_stop(error)

    def begin_story(self):
        """As begin () of the tool."""
        while self.story.startswith("queue") and not self.session.run("closed:0"):
            pass
        if self.story.startswith("lost"):
            self.report(tf.errors.AbortedError)
        if self.story.startswith(("two errors", "failed")):
            self.report(tf.errors.InternalError)
        if self.story.startswith("two errors"):
            self.report(tf.errors.DataLossError)
        if self.story.startswith("plain stop"):
            self.coordinator.request_stop()


def code_of(error):
    if error is None:
        return 0
    return error.error_code if isinstance(error, tf.errors.OpError) else FAILED_PRECONDITION


def theirs(target, story, op):
    """The codes of the run and of the end, and whether it should stop."""
    hook = Hook(story)
    ran, out, should_stop = None, None, False
    with tf.Graph().as_default():
        build(story.startswith("queue"))
        try:
            with v1.train.MonitoredSession(v1.train.ChiefSessionCreator(master=target), [hook]) as session:
                hook.begin_story()
                if op and story == "stopped by a hook":
                    session.run(op)
                try:
                    if op:
                        session.run(op)
                except (tf.errors.OpError, RuntimeError) as error:
                    ran = error
                should_stop = session.should_stop() if op else False
                if ran:
                    raise ran
        except (tf.errors.OpError, RuntimeError) as error:
            out = error
    return {"run": code_of(ran), "should_stop": should_stop, "out": code_of(out)}, ran


def ours(meta, target, story, op):
    """The same of muster, and the words of the run's failure."""
    done = subprocess.run([TOOL, meta, target, story] + ([op] if op else []), capture_output=True, text=True,
                          timeout=peer.COMMAND_SECONDS, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise AssertionError("%s ended with %d\n%s%s" % (story, done.returncode, done.stdout, done.stderr))
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return {"run": int(lines["run"].split()[0]), "should_stop": lines["should_stop"] == "1",
            "out": int(lines["out"].split()[0])}, lines["run"].split(" ", 1)[1]


class MonitoredSession(peer.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(peer.tensorflow_server())

    def reset(self):
        v1.Session.reset(self.server)

    def export(self, with_queue):
        with tf.Graph().as_default():
            build(with_queue)
            path = os.path.join(self.folder(), "model.meta")
            v1.train.export_meta_graph(path)
            return path

    def compare(self, story, op, wanted, of_muster=None):
        meta = self.export(story.startswith("queue"))
        self.reset()
        right, self.their_error = theirs(self.server, story, op)
        self.assertEqual(right, wanted, "TensorFlow")
        for target in (self.server, "local"):
            self.reset()
            with self.subTest(target=target):
                got, self.our_words = ours(meta, target, story, op)
                self.assertEqual(got, of_muster or right)

    def test_the_error_of_a_thread_comes_out_though_the_run_failed_after_it(self):
        self.compare("queue", "put", {"run": 1, "should_stop": True, "out": 3})

    def test_the_error_of_a_thread_comes_out_though_the_input_seems_to_have_ended(self):
        self.compare("queue", "take", {"run": 11, "should_stop": True, "out": 3})

    def test_a_run_after_a_thread_has_failed_works(self):
        self.compare("queue", "other", {"run": 0, "should_stop": True, "out": 3})

    def test_a_run_after_a_plain_stop_works(self):
        self.compare("plain stop", "other", {"run": 0, "should_stop": True, "out": 0})

    def test_a_run_after_a_hook_has_asked_for_a_stop_is_refused(self):
        self.compare("stopped by a hook", "other", {"run": 9, "should_stop": True, "out": 9})
        self.assertEqual(self.our_words, str(self.their_error))

    def test_the_first_of_two_errors_comes_out(self):
        self.compare("two errors", None, {"run": 0, "should_stop": False, "out": 13})

    def test_the_error_of_a_thread_comes_out_before_that_of_an_end(self):
        self.compare("two errors, and a failing end", None, {"run": 0, "should_stop": False, "out": 13})

    def test_a_failing_end_comes_out_where_no_thread_has_failed(self):
        self.compare("a failing end", None, {"run": 0, "should_stop": False, "out": 15})

    def test_a_session_that_a_thread_found_lost_ends_well(self):
        self.compare("lost", None, {"run": 0, "should_stop": False, "out": 0})

    def test_a_session_that_a_thread_found_lost_is_run_in_again(self):
        self.compare("lost", "other", {"run": 0, "should_stop": False, "out": 0})

    def test_a_session_that_is_lost_after_a_thread_has_failed(self):
        """As docs/operating.md says: TensorFlow hands the thread's failure out, muster comes back."""
        self.compare("failed, then lost", "other", {"run": 13, "should_stop": True, "out": 13},
                     of_muster={"run": 0, "should_stop": False, "out": 0})


if __name__ == "__main__":
    peer.main()
