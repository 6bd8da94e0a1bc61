#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Session managers, their options and reports, and TF_CONFIG from Python."""
import gc
import hashlib
import json
import os
import socket
import uuid
import weakref

import case
from case import GLib, GObject, Muster, MusterEngine


class Ticking(GObject.Object, Muster.Clock):
    """The machine's clock, in Python."""

    def do_now_us(self):
        return Muster.system_clock().now_us()

    def do_wall_us(self):
        return Muster.system_clock().wall_us()

    def do_wait_until(self, wake_us, cancellable):
        return Muster.system_clock().wait_until(wake_us, cancellable)

    def do_random(self):
        return 0.5


class Manager(case.TestCase):
    def setUp(self):
        super().setUp()
        self.scaffold = case.linreg()
        self.master = MusterEngine.Master.new()

    def manager(self, **fields):
        options = Muster.SessionManagerOptions()
        options.ready_op, options.local_init_op = self.scaffold.ready_op(), self.scaffold.local_init_op()
        for name, value in fields.items():
            setattr(options, name, value)
        return Muster.SessionManager.new(self.scaffold.graph(), options.copy())

    def prepare_options(self):
        return Muster.PrepareOptions.new(self.scaffold.init_op(), None, None)

    def test_a_chief_prepares_and_a_worker_finds_the_model_ready(self):
        report = Muster.SessionReport.new()
        manager = self.manager()
        self.assertTrue(manager.graph().has_node(self.scaffold.init_op()))
        session = manager.prepare_session(self.master, self.prepare_options().copy(), report, None)
        self.assertEqual(report.outcome, Muster.Outcome.READY)
        phases = report.list_phases()
        self.assertGreaterEqual(len(report.list_spans()), len(phases))
        self.assertIsNone(session.manager_lease())
        self.assertIsNone(session.manager_restored_from())
        self.assertEqual(session.manager_continued_step(), -1)
        copy = report.copy()
        report.clear()
        self.assertEqual(len(report.retries), 5)
        self.assertIn("init", [phase.name for phase in phases])
        self.assertEqual([phase.name for phase in copy.list_phases()], [phase.name for phase in phases])
        self.assertIsNotNone(manager.wait_for_session(self.master, 0, report, None))

    def test_a_worker_says_what_is_missing(self):
        report = Muster.SessionReport.new()
        self.assertFails(Muster.Error.DEADLINE_EXCEEDED, "not ready", self.manager().wait_for_session, self.master, 0,
                         report, None)
        self.assertEqual(report.outcome, Muster.Outcome.NOT_READY)
        first = Muster.reasons_first(report.reasons)
        self.assertEqual(first.copy().component, Muster.reasons_find(report.reasons, first.component).component)
        missing = Muster.reasons_find(report.reasons, "variables")
        self.assertIn("w", missing.names)
        self.assertIsNone(Muster.reasons_find(report.reasons, "nothing"))

    def test_progress_is_told_to_a_function(self):
        class Listener:
            told = []

            def hear(self, message, readiness, reasons, *_):
                self.told.append((message, readiness.is_ready, reasons))

        listener = Listener()
        gone = weakref.ref(listener)
        manager = self.manager()
        manager.set_progress(listener.hear)
        told = listener.told
        del listener
        gc.collect()
        self.assertFails(Muster.Error.DEADLINE_EXCEEDED, "", manager.wait_for_session, self.master, 0, None, None)
        self.assertIsNotNone(gone())
        del manager
        gc.collect()
        self.assertIsNone(gone())
        message, is_ready, reasons = told[-1]
        self.assertTrue(message)
        self.assertFalse(is_ready)
        self.assertIn("variables", [reason.component for reason in reasons])

    def test_recovery_restores_what_was_saved(self):
        saver = Muster.Saver.new(self.scaffold.meta_graph(), None)
        now = Muster.deadline_after(Muster.system_clock().now_us(), 60 * Muster.SECOND)
        prefix = saver.save(case.session(self.scaffold), self.folder, 3, now, None)
        options = self.prepare_options()
        options.saver = saver
        options.restore = Muster.RestoreOptions.new(None, None)
        options.checkpoint_dir = self.folder
        session, recovered = self.manager().recover_session(self.master, options, None, None)
        self.assertTrue(recovered)
        self.assertEqual(session.manager_restored_from(), prefix)

    def test_operations_in_the_background(self):
        manager = self.manager()
        report = Muster.SessionReport.new()
        result = self.in_background(manager.prepare_session_async, self.master, self.prepare_options())
        self.assertIsNotNone(manager.prepare_session_finish(result, report))
        self.assertEqual(report.outcome, Muster.Outcome.READY)
        result = self.in_background(manager.wait_for_session_async, self.master, 0)
        session = manager.wait_for_session_finish(result, None)
        saver, deadline = Muster.Saver.new(self.scaffold.meta_graph(), None), Muster.WAIT_FOREVER
        prefix = saver.save_finish(self.in_background(saver.save_async, session, self.folder, 7, deadline))
        options, restored = Muster.RestoreOptions.new(prefix, None), Muster.Restored()
        self.assertTrue(saver.restore_finish(self.in_background(saver.restore_async, session, options, deadline), restored))
        self.assertEqual(restored.prefix, prefix)

    def test_a_training_in_the_background(self):
        training, trained = Muster.Training.new(self.scaffold, MusterEngine.Master.new()), Muster.Trained()
        training.batches, training.feeds = Muster.Batches.new([case.tensor("f", [1, 2]), case.tensor("f", [3, 5])], 2, 7), ["x:0", "y:0"]
        training.until_step = 2
        self.assertTrue(Muster.train_finish(self.in_background(Muster.train_async, training), trained))
        self.assertEqual(trained.step, 2)

    def test_functions_of_prepare_options(self):
        heard = []
        options = self.prepare_options()
        options.init_ops = [self.scaffold.init_op()]
        options.init_op = None
        options.feed("x:0", case.tensor("f", [0], [1]))
        options.set_init_func(lambda session, *_: heard.append(("init", session.handle())) or True)
        options.set_device_func(lambda master, *_: heard.append(("device", master.target())) or True)
        options.set_quiesce_func(lambda *_: heard.append(("quiesce",)))
        options.set_continue_func(lambda *_: (False, -1))
        self.assertEqual(options.copy().n_init_feeds, 1)
        session = self.manager().prepare_session(self.master, options, None, None)
        self.assertEqual(heard, [("device", "local"), ("init", session.handle())])

    def test_what_an_init_function_raises_ends_the_operation(self):
        def refuse(*_):
            raise GLib.Error.new_literal(Muster.error_quark(), "my reason", Muster.Error.PERMISSION_DENIED)

        options = self.prepare_options()
        options.set_init_func(refuse)
        self.assertFails(Muster.Error.PERMISSION_DENIED, "my reason", self.manager().prepare_session, self.master, options,
                         None, None)

    def test_a_continuing_chief_and_its_lease(self):
        master = Muster.Master.new_for_target(self.serve())
        session = self.manager(model="linreg", task="chief:0").prepare_session(master, self.prepare_options(), None, None)
        self.assertEqual(session.manager_lease().model(), "linreg")

    def test_options_are_copied(self):
        options = Muster.SessionManagerOptions()
        options.model = "linreg"
        options.local_init_ops = [self.scaffold.local_init_op()]
        options.cluster = ["ps:0=localhost:1"]
        options.config = GLib.Bytes.new(b"")
        options.local_init_run_options = GLib.Bytes.new(b"")
        options.clock = Ticking()
        options.meta_graph = self.scaffold.meta_graph()
        policy = Muster.RetryPolicy.new_waiting()
        policy.set_budget(Muster.Failure.FAILURE_UNREACHABLE, 2)
        options.waiting = policy
        options.preparing = Muster.RetryPolicy.new_preparing().copy()
        self.assertEqual(options.copy().waiting.budget[0], 2)
        manager = Muster.SessionManager.new(self.scaffold.graph(), options.copy())
        self.assertIsNotNone(manager.prepare_session(self.master, self.prepare_options(), None, None))

    def test_a_gate_needs_a_local_init_op(self):
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "local_init_op", Muster.SessionManager.new_for_ops,
                         self.scaffold.graph(), None, "gate", None, None, None)


class Failures(case.TestCase):
    def test_classes(self):
        error = GLib.Error.new_literal(Muster.error_quark(), "gone " + Muster.BY_RESET, Muster.Error.ABORTED)
        self.assertEqual(Muster.failure_of(error), Muster.Failure.FAILURE_LOST_SESSION)
        self.assertTrue(Muster.failure_is_reset(error))
        self.assertEqual(Muster.failure_name(Muster.Failure.FAILURE_UNREACHABLE), "unreachable")


CLUSTER = {"chief": ["a:2222"], "ps": ["b:2222"], "worker": ["c:2222", "d:2222"]}


class Cluster(case.TestCase):
    def spec(self, kind, index):
        return Muster.ClusterSpec.new(json.dumps({"cluster": CLUSTER, "task": {"type": kind, "index": index}}))

    def test_its_tasks(self):
        spec = self.spec("worker", 1)
        tasks = spec.tasks()
        self.assertEqual([(task.job, task.index) for task in tasks], [("chief", 0), ("ps", 0), ("worker", 0), ("worker", 1)])
        self.assertEqual(spec.find("ps", 0).copy().address, "b:2222")
        self.assertIsNone(spec.find("ps", 7))
        self.assertEqual(spec.n_tasks("worker"), 2)
        self.assertFalse(spec.is_empty())
        self.assertTrue(Muster.ClusterSpec.new(None).is_empty())

    def test_this_task(self):
        spec = self.spec("worker", 1)
        self.assertEqual((spec.job(), spec.index(), spec.is_chief()), ("worker", 1, False))
        self.assertEqual((spec.n_trainers(), spec.trainer()), (3, 2))
        self.assertEqual(spec.target(), "grpc://d:2222")
        self.assertTrue(spec.has_own_masters())
        self.assertEqual(spec.device_filters(), ["/job:ps", "/job:worker/task:1"])
        self.assertIn(b"/job:ps", spec.config(None).get_data())
        self.assertEqual(spec.peers(), ["ps:0=b:2222"])
        self.assertEqual(spec.chief(), "chief:0=a:2222")
        self.assertTrue(self.spec("chief", 0).is_chief())
        config = json.dumps({"cluster": CLUSTER, "task": {"type": "ps", "index": 0}})
        self.assertEqual(Muster.ClusterSpec.new_for_task(config, "worker:1").target(), "grpc://d:2222")
        self.assertEqual(Muster.ClusterSpec.new_for_task(config, None).job(), "ps")

    def test_its_master_is_its_gateway_where_there_is_one(self):
        cluster = CLUSTER | {"ps": ["b-%s:2222" % uuid.uuid4().hex]}  # whoever runs this test at the same time has another socket
        spec = Muster.ClusterSpec.new(json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 1}}))
        master = spec.master(None)
        self.assertEqual(master.target(), "grpc://d:2222")
        tasks = "".join(sorted("%s:%d=%s\n" % (task.job, task.index, task.address) for task in spec.tasks()))
        folder = "/tmp/muster-%d" % os.geteuid()
        path = "%s/worker-1-%s" % (folder, hashlib.sha256(tasks.encode()).hexdigest()[:16])
        os.makedirs(folder, 0o700, exist_ok=True)
        self.addCleanup(os.unlink, path)
        with socket.socket(socket.AF_UNIX) as gateway:
            gateway.bind(path)
            gateway.listen()
            master.reach(Muster.deadline_after(Muster.system_clock().now_us(), 60 * Muster.SECOND), None)
        self.assertEqual(master.target(), "unix:" + path)

    def test_its_coordinator(self):
        self.assertIsNone(self.spec("worker", 1).coordinator())
        config = {"cluster": CLUSTER, "task": {"type": "worker", "index": 1}, "coordinator": "e:2300"}
        spec = Muster.ClusterSpec.new(json.dumps(config))
        self.assertEqual(spec.coordinator(), "grpc://e:2300")
        self.assertEqual(spec.master(None).target(), "grpc://d:2222")
        wrong = Muster.ClusterSpec.new(json.dumps(config | {"coordinator": "grpc://e:0"}))
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "port 0", wrong.master, None)
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "\"coordinator\" must be a string", Muster.ClusterSpec.new,
                         json.dumps(config | {"coordinator": 5}))

    def test_a_mistake_is_named(self):
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "TF_CONFIG", Muster.ClusterSpec.new, "[")
        for task in ("worker", ":0", "worker:", "worker:-1", "worker:x", "worker:2"):
            self.assertFails(Muster.Error.INVALID_ARGUMENT, task, Muster.ClusterSpec.new_for_task, json.dumps({"cluster": CLUSTER}), task)


if __name__ == "__main__":
    case.main()
