# SPDX-License-Identifier: Apache-2.0
"""MasterService field by field: steps in parts, callables, steps that don't end, and what they tell of themselves."""
import time

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline

import peer
from master_rpc import Failed, feed, start, tensor
from protocol_story import X, Y, Z, Story, TestCase, graph_of, plain

v1 = tf.compat.v1
Config, RunOptions, CallableOptions = config_pb2.ConfigProto, config_pb2.RunOptions, config_pb2.CallableOptions


class ProtocolOfRuns(TestCase):
    # --- partial runs ---

    def parts(self, tell):
        """Of a story with `setup` and `part`."""
        def with_parts(story):
            handle = story.ready_session()

            def setup(label="setup", **fields):
                return story.tell(label, lambda: story.master.PartialRunSetup(session_handle=handle, **fields).partial_run_handle)

            def part(label, run, ask=story.tell, *names, **fields):
                ask(label, lambda: story.step(handle, partial_run_handle=run, **fields), *names)

            tell(story, handle, setup, part)

        self.compare(with_parts)

    def test_a_step_runs_in_parts(self):
        def tell(story, handle, setup, part):
            run = setup(feed=["x:0", "y:0", "z:0"], fetch=["sum:0", "product:0"])
            part("sum", run, feed=[X, Y], fetch=["sum:0"])
            part("product", run, feed=[Z], fetch=["product:0"])
            part("over", run, fetch=["product:0"])
            run = setup(feed=["x:0", "y:0", "z:0"], fetch=["sum:0", "product:0"])
            part("nothing", run)
            part("x", run, feed=[X])
            part("y", run, feed=[Y])
            part("x again", run, feed=[X])
            part("no feed of it", run, feed=[feed("three:0", 1.0)])
            part("no fetch of it", run, fetch=["six:0"])
            part("by another name", run, fetch=["sum"])
            part("sum", run, fetch=["sum:0"])
            part("sum again", run, fetch=["sum:0"])
            part("in body", run, fetch=["nowhere"], store_errors_in_response_body=True)
            part("product", run, feed=[Z], fetch=["product:0"])

        self.parts(tell)

    def test_a_part_that_lacks_a_feed(self):
        def tell(story, handle, setup, part):
            run = setup(feed=["x:0", "y:0", "z:0"], fetch=["sum:0", "product:0"])
            part("too early", run, feed=[X], fetch=["sum:0"])
            part("it wasn't fed", run, feed=[Y], fetch=["sum:0"])
            part("both", run, feed=[X, Y], fetch=["sum:0"])
            part("too early", run, fetch=["product:0"])
            run = setup(feed=["x:0"], fetch=["sum:0"])
            part("y is no feed", run, feed=[X], fetch=["sum:0"])
            part("over", run, fetch=["sum:0"])

        self.parts(tell)

    def test_a_target_runs_once_as_soon_as_it_can(self):
        def tell(story, handle, setup, part):
            run = setup(feed=["x:0", "y:0"], fetch=["sum:0"], target=["grow"])
            part("sum", run, feed=[X, Y], fetch=["sum:0"])
            story.tell("grown", lambda: story.step(handle, fetch=["old:0"]))
            run = setup(feed=["x:0", "y:0", "z:0"], fetch=["sum:0", "product:0"], target=["grow"])
            part("sum", run, feed=[X, Y], fetch=["sum:0"])
            part("product", run, feed=[Z], fetch=["product:0"])
            story.tell("grown once more", lambda: story.step(handle, fetch=["old:0"]))

        self.parts(tell)

    def test_a_partial_run_that_cannot_be_set_up(self):
        def tell(story, handle, setup, part):
            setup("nothing")
            setup("feeds alone", feed=["x:0"])
            setup("no such fetch", fetch=["nowhere:0"])
            setup("no such feed", feed=["nowhere:0"], fetch=["six:0"])
            setup("no such target", target=["nowhere"])
            setup("fed twice", feed=["x:0", "x:0"], fetch=["sum:0"])
            setup("fed and fetched", feed=["x:0"], fetch=["x:0"])

        def without_numbers(story, *rest):
            tell(story, *rest)
            story.told = [line for line in story.told if line[0] != "setup"]

        self.parts(without_numbers)

    def test_a_partial_run_ends_with_its_session(self):
        def tell(story, handle, setup, part):
            run = setup(fetch=["three:0", "six:0"])
            part("three", run, fetch=["three:0"])
            story.tell("close", lambda: story.master.CloseSession(session_handle=handle))
            part("six", run, fetch=["six:0"])

        self.parts(tell)

    def test_tensorflows_client_runs_in_parts(self):
        def run(target):
            with tf.Graph().as_default():
                a, b, c = (v1.placeholder(tf.float32, [], name=name) for name in "abc")
                first = tf.add(a, b)
                second = tf.multiply(first, c)
                with v1.Session(target) as session:
                    part = session.partial_run_setup([first, second], [a, b, c])
                    one = session.partial_run(part, first, {a: 1, b: 2})
                    return one, session.partial_run(part, second, {c: one * 10})

        self.assertEqual(run(self.ours), run(self.theirs))
        self.assertEqual(run(self.ours), (3, 90))

    # --- callables ---

    def test_callables(self):
        def tell(story):
            handle = story.ready_session()

            def make(label, ask=story.tell, **fields):
                got = []

                def call():
                    got.append(story.master.MakeCallable(session_handle=handle, options=CallableOptions(**fields)).handle)
                    return "made"

                ask(label, call)
                return got[0] if got else None

            def run(label, callable, *feeds, ask=story.tell):
                ask(label, lambda: [tf.make_ndarray(t).tolist() for t in story.master.RunCallable(
                    session_handle=handle, handle=callable, feed=[tensor(f) for f in feeds]).fetch])

            total = make("sum", feed=["x:0", "y:0"], fetch=["sum:0", "three:0"])
            run("sum", total, 1.0, 2.0)
            run("again", total, 4.0, 5.0)
            init = make("init", target=["init"])
            run("init", init)
            lacking = make("lacking", feed=["x:0"], fetch=["sum:0"])
            run("lacking", lacking, 1.0)
            make("nothing")
            make("no such fetch", fetch=["nowhere:0"])
            make("no such feed", feed=["nowhere:0"], fetch=["six:0"])
            make("no such target", target=["nowhere"])
            make("fed twice", feed=["x:0", "x:0"], fetch=["sum:0"])
            make("fed and fetched", feed=["x:0"], fetch=["x:0"])
            make("on devices", fetch=["six:0"], fetch_devices={"six:0": "/device:GPU:0"})
            run("no such callable", 99)
            run("no such callable", -1)
            story.tell("release", lambda: story.master.ReleaseCallable(session_handle=handle, handle=init))
            story.fails("released", lambda: story.master.RunCallable(session_handle=handle, handle=init),
                        "Attempted to run callable after handle was released")
            story.tell("release it again", lambda: story.master.ReleaseCallable(session_handle=handle, handle=init))
            story.tell("release another", lambda: story.master.ReleaseCallable(session_handle=handle, handle=999))

        self.compare(tell)

    def test_a_callable_takes_as_many_tensors_as_it_was_made_for(self):
        story = Story(self.ours)  # TensorFlow's server takes what a step before has left
        handle = story.session()
        made = story.master.MakeCallable(session_handle=handle, options=CallableOptions(feed=["x:0", "y:0"], fetch=["sum:0"]))
        for feeds in ([1.0], [1.0, 2.0, 3.0]):
            with self.assertRaisesRegex(Failed, "INVALID_ARGUMENT: Callable .* takes 2 feeds, got %d" % len(feeds)):
                story.master.RunCallable(session_handle=handle, handle=made.handle, feed=[tensor(f) for f in feeds])

    # --- blocked steps ---

    @staticmethod
    def queues(name):
        """A queue, and one by which a step that takes from it says that it has begun."""
        def build():
            queue = v1.FIFOQueue(1, [tf.float32], shapes=[[]], shared_name=name, name="queue")
            signal = v1.FIFOQueue(1, [tf.float32], shapes=[[]], shared_name=name + "_signal", name="signal")
            tf.identity(queue.dequeue(), name="element")
            queue.enqueue(1.0, name="put")
            queue.size(name="size")
            tf.identity(signal.dequeue(), name="heard")
            signal.enqueue(2.0, name="say")
            tf.constant(1.0, name="one")

        return graph_of(build)

    def test_closing_a_session_ends_its_blocked_steps(self):
        graph = self.queues("blocked")

        def tell(story):
            for in_body in (False, True):
                handle = story.session(graph)
                blocked = start(lambda: story.step(handle, fetch=["element:0"], target=["say"],
                                                   store_errors_in_response_body=in_body))
                story.tell("blocked", lambda: story.step(handle, fetch=["heard:0"]))
                story.tell("another", lambda: story.step(handle, fetch=["one:0"]))
                story.tell("close", lambda: story.master.CloseSession(session_handle=handle))
                story.tell("ended", blocked)

        self.compare(tell)

    def test_closing_a_session_ends_its_blocked_callable(self):
        graph = self.queues("blocked_callable")

        def tell(story):
            handle = story.session(graph)
            made = story.master.MakeCallable(session_handle=handle,
                                             options=CallableOptions(fetch=["element:0"], target=["say"]))
            blocked = start(lambda: story.master.RunCallable(session_handle=handle, handle=made.handle))
            story.tell("blocked", lambda: story.step(handle, fetch=["heard:0"]))
            story.tell("close", lambda: story.master.CloseSession(session_handle=handle))
            story.tell("ended", blocked)

        self.compare(tell)

    def test_closing_a_session_ends_its_blocked_part(self):
        story = Story(self.ours)  # TensorFlow's server waits for the part for ever
        handle = story.session(self.queues("blocked_part"))
        run = story.master.PartialRunSetup(session_handle=handle, fetch=["one:0", "element:0"], target=["say"]).partial_run_handle
        blocked = start(lambda: story.step(handle, partial_run_handle=run, fetch=["element:0"]))
        self.assertEqual(story.step(handle, fetch=["heard:0"]), [("heard:0", 2.0)])
        story.master.CloseSession(session_handle=handle)
        with self.assertRaisesRegex(Failed, "CANCELLED: Step was cancelled by an explicit call"):
            blocked()

    def test_a_reset_ends_blocked_steps(self):
        story = Story(self.ours)  # TensorFlow's server dies of it
        handle = story.session(self.queues("blocked_reset"))
        blocked = start(lambda: story.step(handle, fetch=["element:0"], target=["say"]))
        self.assertEqual(story.step(handle, fetch=["heard:0"]), [("heard:0", 2.0)])
        story.master.Reset()
        with self.assertRaisesRegex(Failed, "CANCELLED|ABORTED"):
            blocked()

    def test_a_timeout_eats_no_element(self):
        graph = self.queues("patient")

        def tell(story):
            handle = story.session(graph)
            story.fails("in options", lambda: story.step(handle, fetch=["element:0"], options=RunOptions(timeout_in_ms=100),
                                                         timeout=0.1))
            story.fails("of the call", lambda: story.step(handle, fetch=["element:0"], timeout=0.1))
            time.sleep(0.5)  # the client's deadline passes a moment before the server's: what comes in between is lost
            story.tell("put", lambda: story.step(handle, target=["put"]))
            story.tell("size", lambda: story.step(handle, fetch=["size:0"]))
            story.tell("take", lambda: story.step(handle, fetch=["element:0"]))

        self.compare(tell)

    def test_the_timeout_of_a_callable_and_of_the_session(self):
        """TensorFlow's clients keep them; its server only passes on what a callable's options say."""
        story = Story(self.ours)
        handle = story.session(self.queues("impatient"), config=Config(operation_timeout_in_ms=100))
        with self.assertRaisesRegex(Failed, "DEADLINE_EXCEEDED"):
            story.step(handle, fetch=["element:0"])
        made = story.master.MakeCallable(session_handle=handle, options=CallableOptions(
            fetch=["element:0"], run_options=RunOptions(timeout_in_ms=100)))
        with self.assertRaisesRegex(Failed, "DEADLINE_EXCEEDED"):
            story.master.RunCallable(session_handle=handle, handle=made.handle)

    # --- traces ---

    def traced(self, story, handle, **options):
        return story.master.RunStep(session_handle=handle, feed=[X, Y, Z], fetch=["product:0", "old/read:0", "new_value:0"],
                                    target=["grow"], options=RunOptions(**options)).metadata

    def test_run_metadata_has_what_was_asked_for(self):
        def tell(story):
            handle = story.ready_session()
            for options in ({}, {"trace_level": RunOptions.FULL_TRACE}, {"output_partition_graphs": True},
                            {"trace_level": RunOptions.FULL_TRACE, "output_partition_graphs": True}):
                story.tell(str(options), lambda: [field.name for field, _ in
                                                  self.traced(story, handle, **options).ListFields()])
            made = story.master.MakeCallable(session_handle=handle, options=CallableOptions(
                fetch=["six:0"], run_options=RunOptions(trace_level=RunOptions.FULL_TRACE)))
            story.tell("callable", lambda: [field.name for field, _ in story.master.RunCallable(
                session_handle=handle, handle=made.handle).metadata.ListFields()])

        self.compare(tell)

    def test_step_stats_report_each_node(self):
        def tell(story):
            handle = story.ready_session()
            before = time.time() * 1e6
            stats = self.traced(story, handle, trace_level=RunOptions.FULL_TRACE).step_stats
            after = time.time() * 1e6
            story.tell("devices", lambda: [plain(device.device) for device in stats.dev_stats])
            nodes = {node.node_name: node for device in stats.dev_stats for node in device.node_stats}
            for name in ("sum", "product", "old", "old/read", "grow", "new", "Read/ReadVariableOp", "new_value"):
                node = nodes[name]
                story.tell(name, lambda: (
                    node.timeline_label.split("(")[0], before - 1e6 < node.all_start_micros < after + 1e6,
                    0 <= node.op_start_rel_micros <= node.op_end_rel_micros <= node.all_end_rel_micros < 30e6,
                    abs(node.all_start_nanos / 1000 - node.all_start_micros) <= 1, node.scheduled_micros > 0))
            for name in ("sum", "product"):
                story.tell(name, lambda: [(o.slot, o.tensor_description.dtype, len(o.tensor_description.shape.dim),
                                           o.tensor_description.allocation_description.requested_bytes)
                                          for o in nodes[name].output])

        self.compare(tell)

    def test_timelines_are_drawn_from_the_stats(self):
        for target in (self.theirs, self.ours):
            story = Story(target)
            stats = self.traced(story, story.ready_session(), trace_level=RunOptions.FULL_TRACE).step_stats
            drawn = timeline.Timeline(stats).generate_chrome_trace_format(show_memory=True)
            for words in ("product", "AddV2", "CPU:0"):
                self.assertIn(words, drawn)

    def test_partition_graphs_hold_what_ran(self):
        def tell(story):
            graphs = self.traced(story, story.ready_session(), output_partition_graphs=True).partition_graphs
            ops = {node.name: node.op for graph in graphs for node in graph.node}
            story.tell("ops", lambda: [ops.get(name) for name in ("sum", "product", "old", "old/read", "grow", "new_value")])

        self.compare(tell)


if __name__ == "__main__":
    peer.main()
