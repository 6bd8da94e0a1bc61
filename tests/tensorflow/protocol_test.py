# SPDX-License-Identifier: Apache-2.0
"""MasterService field by field: each story is told to TensorFlow's own server and to `muster serve`, and what they answer
is compared: values, types of errors, and their texts, but for what differs by intent (see `plain` and `named`)."""
import os
import re
import time
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2, named_tensor_pb2
from tensorflow.python.client import timeline

import peer
import side_by_side
from master_rpc import Failed, Master, feed, start, tensor

v1 = tf.compat.v1
v1.disable_v2_behavior()
Config, RunOptions, CallableOptions = config_pb2.ConfigProto, config_pb2.RunOptions, config_pb2.CallableOptions


def graph_of(build):
    graph = tf.Graph()
    with graph.as_default():
        build()
    return graph.as_graph_def()


def model():
    x, y, z = (v1.placeholder(tf.float32, [], name=name) for name in "xyz")
    total = tf.add(x, y, name="sum")
    tf.multiply(total, z, name="product")
    three = tf.constant(3.0, name="three")
    tf.add(three, three, name="six")
    old = v1.get_variable("old", [], initializer=v1.constant_initializer(1.0), use_resource=False)
    new = v1.get_variable("new", [], initializer=v1.constant_initializer(2.0), use_resource=True)
    v1.assign_add(old, total, name="grow")
    tf.identity(new.read_value(), name="new_value")
    tf.no_op(name="idle")
    v1.global_variables_initializer()


MODEL = graph_of(model)
X, Y, Z = feed("x:0", 1.0), feed("y:0", 2.0), feed("z:0", 3.0)


def nodes(*names, op="NoOp", **attributes):
    graph = graph_pb2.GraphDef()
    for name in names:
        graph.node.add(name=name, op=op, **attributes)
    return graph


def versions(**fields):
    graph = nodes("n")
    bad = fields.pop("bad_consumers", [])
    for name, value in fields.items():
        setattr(graph.versions, name, value)
    graph.versions.bad_consumers.extend(bad)
    return graph


def values(response):
    """A step's fetches by name; TensorFlow gives one that is asked for twice once."""
    return sorted({t.name: tf.make_ndarray(t.tensor).tolist() for t in response.tensor}.items())


def plain(text):
    """A text without what may differ: handles, the task's name, muster's names of ops, TensorFlow's own log."""
    text = text.split("\nRecent warning and error logs:")[0]
    text = re.sub(r"[0-9a-f]{16}", "HANDLE", text).replace("/job:localhost", "/job:worker")
    text = re.sub(r" \(op '\w+'\)", "", text)
    return text.replace(" Possibly, this master has restarted.", "")


class Story:
    """One telling: what a server answered, line by line."""

    def __init__(self, target):
        self.target, self.master, self.told = target, Master(target), []

    def tell(self, label, ask):
        """What ask gives, or how it fails: type and whole text."""
        try:
            got = ask()
        except Failed as error:
            self.told.append((label, error.code, error.in_body, plain(error.message)))
            return None
        self.told.append((label, got if isinstance(got, (bool, int, float, str, list, tuple)) else type(got).__name__))
        return got

    def fails(self, label, ask, *names):
        """The same, but of the text only whether it holds these words: where muster says it in its own."""
        try:
            ask()
        except Failed as error:
            self.told.append((label, error.code, error.in_body, [name for name in names if name in error.message]))
        else:
            self.told.append((label, "didn't fail"))

    def session(self, graph=MODEL, **fields):
        return self.master.CreateSession(graph_def=graph, **fields).session_handle

    def ready_session(self, **fields):
        handle = self.session(**fields)
        self.master.RunStep(session_handle=handle, target=["init"])
        return handle

    def step(self, handle, **fields):
        return values(self.master.RunStep(session_handle=handle, **fields))


class Protocol(side_by_side.TestCase):
    def compare(self, tell):
        """Tells a story to both, and gives what both answered."""
        told = []
        for target in (self.theirs, self.ours):
            story = Story(target)
            self.addCleanup(story.master.close)
            story.master.Reset()
            tell(story)
            told.append(story.told)
        self.assertEqual(told[1], told[0])
        self.assertTrue(told[0])
        return told[0]

    # --- sessions ---

    def test_a_session_is_made(self):
        def tell(story):
            create = story.master.CreateSession
            story.tell("version", lambda: create(graph_def=MODEL).graph_version)
            story.tell("no graph", lambda: create().graph_version)
            story.tell("filters", lambda: bool(create(graph_def=MODEL, config=Config(
                device_filters=["/job:ps", "/job:worker/task:0"])).session_handle))
            story.tell("own threads", lambda: create(graph_def=MODEL, config=Config(use_per_session_threads=True)))
            pool = Config()
            pool.session_inter_op_thread_pool.add()
            story.tell("own pools", lambda: create(graph_def=MODEL, config=pool))
            cluster = Config()
            cluster.cluster_def.job.add(name="worker").tasks[0] = "localhost:1"
            story.fails("cluster", lambda: create(graph_def=MODEL, config=cluster, target="grpc://localhost:1"))

        self.compare(tell)

    def test_a_graph_that_is_none_makes_no_session(self):
        def tell(story):
            create = story.master.CreateSession
            story.fails("no such input", lambda: create(graph_def=nodes("n", input=["m"])), "'n'", "'m'")
            story.fails("two of a name", lambda: create(graph_def=nodes("n", "n")), "'n'")
            story.tell("no name", lambda: create(graph_def=nodes("n n")))
            story.fails("too new", lambda: create(graph_def=versions(producer=100000, min_consumer=99999)),
                        "min consumer version 99999 above current version")
            story.fails("too old", lambda: create(graph_def=versions(producer=-5)), "producer version -5 below")
            story.fails("disallowed", lambda: create(graph_def=versions(bad_consumers=[7, 2474])),
                        "disallows consumer version 2474")
            story.tell("others disallowed", lambda: bool(create(graph_def=versions(bad_consumers=[7])).session_handle))

        self.compare(tell)

    def test_graph_versions_conflict(self):
        def tell(story):
            handle, extend = story.session(), story.master.ExtendSession

            def grow(label, graph, version, ask=story.tell, *names):
                ask(label, lambda: extend(session_handle=handle, graph_def=graph,
                                          current_graph_version=version).new_graph_version, *names)

            grow("first", nodes("e1"), 0)
            grow("stale", nodes("e2"), 0)
            grow("ahead", nodes("e2"), 7)
            grow("second", nodes("e2"), 1)
            grow("there already", nodes("e2"), 2)
            grow("nothing", graph_pb2.GraphDef(), 2)
            grow("no such input", nodes("e3", input=["^nowhere"]), 3, story.fails, "'e3'", "nowhere")
            grow("twice in one", nodes("e4", "e4"), 3, story.fails, "'e4'")
            grow("needs what is there", nodes("e5", input=["^three"]), 3)
            story.tell("all run", lambda: story.step(handle, target=["e1", "e2", "e5"]))
            story.tell("unknown", lambda: extend(session_handle="nobody", graph_def=nodes("e6")))

        self.compare(tell)

    def test_an_unknown_session(self):
        def tell(story):
            master = story.master
            for name in ("RunStep", "PartialRunSetup", "CloseSession", "ListDevices", "MakeCallable", "RunCallable",
                         "ReleaseCallable", "ExtendSession"):
                story.tell(name, lambda: getattr(master, name)(session_handle="nobody"))
            story.tell("in body", lambda: master.RunStep(session_handle="nobody", store_errors_in_response_body=True))

        self.compare(tell)

    def test_a_session_is_closed_once(self):
        def tell(story):
            handle = story.ready_session()
            story.tell("close", lambda: story.master.CloseSession(session_handle=handle))
            story.tell("again", lambda: story.master.CloseSession(session_handle=handle))
            story.tell("run", lambda: story.step(handle, fetch=["six:0"]))

        self.compare(tell)

    def test_isolated_sessions_keep_their_variables_to_themselves(self):
        def tell(story):
            isolated = Config(isolate_session_state=True)
            mine, yours = story.ready_session(config=isolated), story.session(config=isolated)
            ours = story.session()
            story.tell("mine", lambda: story.step(mine, fetch=["old:0", "new_value:0"]))
            for fetch in ("old/read:0", "new_value:0"):
                story.tell("yours", lambda: story.step(yours, fetch=[fetch])[0][1])
            story.fails("ours", lambda: story.step(ours, fetch=["old/read:0"]), "old")
            story.master.RunStep(session_handle=ours, target=["init"])
            story.tell("mine grows", lambda: story.step(mine, feed=[X, Y], target=["grow"]))
            story.tell("mine", lambda: story.step(mine, fetch=["old:0"]))
            story.tell("ours stays", lambda: story.step(ours, fetch=["old:0"]))
            story.fails("yours is empty", lambda: story.step(yours, fetch=["old/read:0"]), "old")

        self.compare(lambda story: tell(_without_container(story)))

    def test_containers_are_reset_by_name(self):
        names = ["%s_%s" % (container, kind) for container in ("one", "two") for kind in ("old", "new")]

        def build():
            for name in names:
                with v1.container(name[:3]):
                    variable = v1.get_variable(name, [], initializer=v1.constant_initializer(1.0),
                                               use_resource=name.endswith("new"))
                    tf.identity(variable, name=name + "_value")
            v1.global_variables_initializer()

        graph = graph_of(build)

        def tell(story):
            def ready():
                handle = story.session(graph)
                story.master.RunStep(session_handle=handle, target=["init"])
                return handle

            def state(label):
                handle = story.session(graph)
                for name in names:
                    story.fails(label + name, lambda: story.step(handle, fetch=[name + "_value:0"]), name)

            before = ready()
            state("all")
            for containers in (["one"], ["nowhere"], [""], ["one", "two"]):
                ready()
                story.tell("reset", lambda: story.master.Reset(container=containers))
                state(str(containers))
            story.tell("from before", lambda: story.step(before, fetch=["two_old_value:0"]))

        self.compare(tell)

    def test_devices_are_listed(self):
        def tell(story):
            for handle in ("", story.session()):
                listed = story.master.ListDevices(session_handle=handle)
                for device in list(listed.local_device) + list(listed.remote_device):
                    story.tell("device", lambda: (plain(device.name), device.device_type, device.memory_limit,
                                                  device.xla_global_id, device.incarnation != 0))
                story.tell("remote", lambda: len(listed.remote_device))

        self.compare(tell)

    # --- placement ---

    def test_a_device_that_is_not_there(self):
        def tell(story):
            def create(device, soft=False):
                return bool(story.session(nodes("n", device=device), config=Config(allow_soft_placement=soft)))

            for device in ("/device:GPU:0", "/gpu:0", "/device:CPU:1", "/device:TPU:0", "/device:XLA_CPU:0",
                           "/job:worker/task:0/device:GPU:3", "/device:cpu:0"):
                story.fails(device, lambda: create(device),
                            "Cannot assign a device for operation n: {{node n}} was explicitly assigned to %s but "
                            "available devices are [ /job:" % device, "[[n]]")
                story.tell("softly " + device, lambda: create(device, soft=True))
            for device in ("cpu:0", "nonsense", "/job:worker/nonsense", "//cpu:0", "/device:CPU:x", "/job:", "/job:1bad"):
                for soft in (False, True):
                    story.fails(device, lambda: create(device, soft), "Malformed device specification '%s'" % device, "[[n]]")
            for device in ("", "/", "/cpu:0", "/CPU:0", "/device:CPU:0", "/device:CPU:*", "/device:*:*", "/device:CPU", "/task:0",
                           "/job:worker/task:0", "/job:worker/replica:0/task:0/device:CPU:0", "/job:worker/cpu:0"):
                story.tell(device, lambda: create(device))

        self.compare(tell)

    def test_which_of_two_nodes_is_named(self):
        def build():
            with tf.device("/gpu:0"):
                tf.add(v1.placeholder(tf.float32, [], name="first"), 1.0, name="second")

        graph = graph_of(build)

        def tell(story):
            story.fails("second", lambda: story.session(graph, config=Config()),
                        "{{node second}} was explicitly assigned to /device:GPU:0")

        self.compare(tell)

    def test_a_device_that_an_extension_lacks(self):
        def tell(story):
            for soft in (False, True):
                handle = story.session(config=Config(allow_soft_placement=soft))
                story.fails("extend", lambda: story.master.ExtendSession(
                    session_handle=handle, graph_def=nodes("n", device="/gpu:0")), "Cannot assign a device for operation n")
                story.tell("run", lambda: story.step(handle, fetch=["six:0"]))

        self.compare(tell)

    # --- steps ---

    def test_steps_in_status_and_in_body(self):
        def tell(story):
            handle = story.ready_session()
            for in_body in (False, True):
                def run(label, ask=story.tell, *names, **fields):
                    ask(label, lambda: story.step(handle, store_errors_in_response_body=in_body, **fields), *names)

                run("sum", feed=[X, Y], fetch=["sum:0"])
                run("twice", feed=[X, Y], fetch=["sum:0", "sum:0"])
                run("from the middle", feed=[feed("sum:0", 5.0), Z], fetch=["product:0"])
                run("more than it needs", feed=[X, Y], fetch=["six:0"])
                run("target", target=["init", "init"])
                run("a tensor's op as a target", target=["three"])
                run("nothing")
                run("feeds alone", feed=[X, Y])
                run("no such fetch", fetch=["nowhere:0"])
                run("no such fetch's name", fetch=["nowhere"])
                run("no such target", target=["nowhere"])
                run("no such targets", target=["nowhere", "neither", "three"])
                run("no such feed", feed=[feed("nowhere:0", 1.0)], fetch=["six:0"])
                run("no such output", fetch=["three:1"])
                run("no such output to feed", feed=[feed("three:1", 1.0)], fetch=["six:0"])
                run("an op without outputs", fetch=["idle"])
                run("fed and fetched", feed=[X], fetch=["x:0"])
                run("fed twice", feed=[X, Y, X], fetch=["sum:0"])
                run("lacks a feed", feed=[X], fetch=["sum:0"])
                run("not a tensor", story.fails, feed=[named_tensor_pb2.NamedTensorProto(name="x:0"), Y], fetch=["sum:0"]) \
                    if not in_body else None
                run("part of no partial run", fetch=["six:0"], partial_run_handle="77")

        self.compare(tell)

    def test_a_variable_without_a_value(self):
        def tell(story):
            handle = story.session()
            for in_body in (False, True):
                for fetch in ("old/read:0", "new_value:0"):
                    story.fails(fetch, lambda: story.step(handle, fetch=[fetch], store_errors_in_response_body=in_body),
                                "From /job:", "Attempting to use uninitialized value old", "{{node old/read}}",
                                "Could not find variable new.", "the variable is uninitialized",
                                "{{node Read/ReadVariableOp}}")

        self.compare(tell)

    def test_options_that_change_nothing(self):
        def tell(story):
            handle = story.session()
            debugged = RunOptions()
            debugged.debug_options.debug_tensor_watch_opts.add(node_name="nowhere", debug_ops=["DebugIdentity"])
            collective = RunOptions()
            collective.experimental.collective_graph_key = 5
            for options in (RunOptions(timeout_in_ms=-5), RunOptions(inter_op_thread_pool=-1), RunOptions(inter_op_thread_pool=5),
                            RunOptions(trace_level=9), RunOptions(report_tensor_allocations_upon_oom=True), debugged, collective):
                story.tell(str(options), lambda: story.step(handle, fetch=["six:0"], options=options))

        self.compare(tell)

    def test_a_request_that_comes_twice(self):
        def tell(story):
            handle = story.session()
            ask = {"session_handle": handle, "request_id": 4711}
            twice = "(Master) request was received twice."
            story.tell("first", lambda: story.step(fetch=["six:0"], handle=handle, request_id=4711))
            story.fails("again", lambda: story.master.RunStep(fetch=["six:0"], **ask), "The same RunStep " + twice)
            story.fails("in body", lambda: story.master.RunStep(store_errors_in_response_body=True, **ask),
                        "The same RunStep " + twice)
            story.fails("no session", lambda: story.master.RunStep(session_handle="nobody", request_id=4711), "same RunStep")
            for name in ("MakeCallable", "PartialRunSetup", "RunCallable"):
                story.fails(name, lambda: getattr(story.master, name)(**ask), "The same %s %s" % (name, twice))

        self.compare(tell)

    def test_big_tensors(self):
        """16 MiB there and back. What no message holds: below."""
        def build():
            x = v1.placeholder(tf.float32, [None], name="x")
            tf.identity(x, name="same")

        big = np.arange(1 << 22, dtype=np.float32)

        def tell(story):
            handle = story.session(graph_of(build))
            got = story.master.RunStep(session_handle=handle, feed=[feed("x:0", big)], fetch=["same:0"])
            story.tell("same", lambda: bool(np.array_equal(tf.make_ndarray(got.tensor[0].tensor), big)))

        self.compare(tell)

    def big(self, target, gibibytes):
        """A step that fetches so much; its size, or TensorFlow's error."""
        with tf.Graph().as_default():
            filled = tf.fill([int(gibibytes * (1 << 28))], v1.placeholder(tf.float32, [], name="value"))
            with v1.Session(target) as session:
                return session.run(filled, {"value:0": 1.0}).nbytes

    @unittest.skipUnless("MUSTER_LONG" in os.environ, "takes 4 GiB of memory")
    def test_what_a_message_holds_passes(self):
        self.assertEqual(self.big(self.ours, 1.75), 7 << 28)

    def test_more_than_a_message_holds_is_refused(self):
        with self.assertRaisesRegex(tf.errors.ResourceExhaustedError, "2.1 GB that one may have"):
            self.big(self.ours, 2)

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
            with self.assertRaisesRegex(Failed, "INVALID_ARGUMENT: Callable .* takes 2 feeds, but %d came" % len(feeds)):
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

    def test_step_stats_tell_of_each_node(self):
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


def _without_container(story):
    """The default container has the job's name."""
    tell = story.tell

    def told(label, ask):
        got = tell(label, ask)
        story.told[-1] = tuple(re.sub(r"container=\w+|Resource \w+/", "", part) if isinstance(part, str) else part
                               for part in story.told[-1])
        return got

    story.tell = told
    return story


if __name__ == "__main__":
    peer.main()
