# SPDX-License-Identifier: Apache-2.0
"""MasterService field by field: sessions, where their nodes are placed, and their steps."""
import os
import re
import unittest

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2, named_tensor_pb2

import peer
from master_rpc import feed
from protocol_story import MODEL, X, Y, Z, TestCase, graph_of, nodes, plain, versions

v1 = tf.compat.v1
Config, RunOptions = config_pb2.ConfigProto, config_pb2.RunOptions


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


class Protocol(TestCase):
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
        with self.assertRaisesRegex(tf.errors.ResourceExhaustedError, "over the limit of 2.1 GB"):
            self.big(self.ours, 2)


if __name__ == "__main__":
    peer.main()
