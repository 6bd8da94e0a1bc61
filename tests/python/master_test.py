#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Masters, sessions, steps, leases, memberships and credentials from Python: on the engine in this process, and on a server."""
import hashlib
import json
import os
import subprocess
import threading

import case
from case import FOREVER, GLib, Muster, MusterEngine

FULL_TRACE = bytes([8, 3])  # RunOptions.trace_level


def soon():
    return Muster.deadline_after(Muster.system_clock().now_us(), 60 * Muster.SECOND)


def line():
    """The step that computes 2 * x."""
    builder = Muster.GraphBuilder.new()
    builder.placeholder("x", Muster.DType.FLOAT, [])
    builder.constant("two", case.tensor("f", [2], []))
    for op, name, inputs in (("Mul", "y", ("x", "two")), ("Neg", "z", ("y",))):
        builder.node(op, name)
        for node in inputs:
            builder.input(node)
        builder.attr_type("T", Muster.DType.FLOAT)
    return builder.end()


class Masters(case.TestCase):
    def test_the_engine(self):
        master = MusterEngine.Master.new_with(Muster.local_storage(), 1 << 20)
        self.assertEqual(master.target(), "local")
        self.assertEqual([device.type for device in master.list_devices(soon(), None)], ["CPU"])
        self.assertFalse(master.is_remote())
        self.assertFails(Muster.Error.UNIMPLEMENTED, "", master.remote, soon(), None)
        self.assertFalse(master.can_reach())
        self.assertEqual(master.reach(soon(), None), Muster.ServerState.UP)
        self.assertTrue(master.reset(None, soon(), None))

    def test_targets(self):
        MusterEngine.Master.offer()
        self.assertTrue(Muster.Master.is_offered("local"))
        self.assertFalse(Muster.Master.is_offered("localhost:1"))
        self.assertEqual(Muster.Master.new_for_target("local").target(), "local")
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "grpc://", Muster.Master.new_for_target, "http://x")

    def test_a_server(self):
        target = self.serve()
        for master in (Muster.Master.new_for_target(target), Muster.Master.new_secured(target, None),
                       Muster.Master.new_with_files(target, None, None, None, None), Muster.RemoteMaster.new(target),
                       Muster.RemoteMaster.new_secured(target, None)):
            self.assertTrue(master.is_remote() and master.can_reach())
            self.assertEqual(master.reach(soon(), None), Muster.ServerState.UP)
            self.assertEqual(master.remote(soon(), None).target(), target)
        self.assertTrue(getattr(master, "await")(soon(), None))
        self.assertEqual(master.list_devices(soon(), None)[0].copy().type, "CPU")

    def test_a_coordinator(self):
        """The lease is there, the session at the master."""
        coordinator = Muster.RemoteMaster.new(self.serve())
        master = Muster.RemoteMaster.new(self.serve())
        self.assertTrue(master.set_coordinator(coordinator))
        lease, before = master.create_session(line(), None, soon(), None).claim(Muster.Claim.new("line", "worker:0"), soon(), None)
        self.assertIsNone(before)
        other = Muster.RemoteMaster.new(coordinator.target()).create_session(line(), None, soon(), None)
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "worker:0", other.claim, Muster.Claim.new("line", "worker:1"), soon(), None)
        self.assertTrue(lease.check())
        self.assertFails(Muster.Error.UNIMPLEMENTED, "isn't behind gRPC", MusterEngine.Master.new().set_coordinator, master)

    def test_a_program_of_the_fake_runtime(self):
        os.environ["MUSTER_TENSORFLOW_HELPER"] = case.built("tensorflow/muster-tensorflow")
        library = case.built("tests/tensorflow_master/libtensorflow_fake.so")
        master = Muster.TensorflowMaster.new(library)
        self.assertIn(library, master.describe())
        within = Muster.TensorflowMaster.new_within("tensorflow:" + library, [self.folder])
        self.assertEqual(within.target(), "tensorflow:" + library)
        cluster = Muster.ClusterSpec.new_for_task('{"cluster": {"ps": ["localhost:1"], "worker": ["localhost:0"]}}', "worker:0")
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "worker:0 has port 0", Muster.TensorflowMaster.new_task, "tensorflow:" + library,
                         cluster, None)
        Muster.TensorflowMaster.offer()
        self.assertTrue(Muster.Master.is_offered("tensorflow"))

    def test_why_a_server_doesnt_answer(self):
        target = self.serve()
        found = Muster.Diagnosis()
        Muster.diagnose(target[len("grpc://"):], False, soon(), None, found)
        self.assertEqual(found.stage, Muster.Reach.ANSWERS)
        Muster.diagnose_master(target[len("grpc://"):], soon(), None, found)
        self.assertEqual(found.copy().stage, Muster.Reach.ANSWERS)
        found.clear()
        Muster.diagnose("localhost:1", False, soon(), None, found)
        self.assertEqual(found.stage, Muster.Reach.REFUSED)
        self.assertIn("localhost", found.text)


class Credentials(case.TestCase):
    def file(self, text):
        path = self.folder + "/tokens"
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_roles(self):
        self.assertEqual(Muster.role_name(Muster.Role.RUN), "run")
        self.assertEqual(Muster.role_parse("read"), (True, Muster.Role.READ))
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "king", Muster.role_parse, "king")

    def test_a_servers_tokens(self):
        security = Muster.RpcSecurity()
        security.serves = True
        security.token_file = self.file("read sha256:%s\n" % hashlib.sha256(b"abcdefgh").hexdigest())
        credentials = Muster.RpcCredentials.new(security.copy())
        self.assertTrue(credentials.has_token())
        self.assertFalse(credentials.has_tls())
        self.assertEqual(credentials.role("abcdefgh", -1), Muster.Role.READ)
        self.assertEqual(credentials.role("12345678", -1), Muster.Role.NONE)
        self.assertTrue(credentials.reload())
        credentials.refresh()
        security.roles = ["*=run"]
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "CA file", Muster.RpcCredentials.new, security)
        security.ca_file = "/nothing"
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "/nothing", Muster.RpcCredentials.new, security)


class Sessions(case.TestCase):
    def setUp(self):
        super().setUp()
        self.session = case.session()

    def test_what_it_is(self):
        self.assertTrue(self.session.is_here())
        self.assertTrue(self.session.handle())
        self.assertTrue(self.session.graph().equal(case.linreg().graph()))

    def test_steps(self):
        graph = line()
        session = MusterEngine.Master.new().create_session(graph, None, soon(), None)
        step = Muster.StepBuilder.new()
        step.feed("x:0", case.tensor("f", [3], []))
        self.assertEqual([step.fetch("y:0"), step.fetch("z:0")], [0, 1])
        step.target("z")
        self.assertEqual([value.get_double()[1] for value in step.run(session, FOREVER, None)], [6, -6])
        step.set_options(GLib.Bytes.new(FULL_TRACE))
        values, metadata = step.run_with_metadata(session, FOREVER, None)
        self.assertEqual(len(values), 2)
        self.assertIn(b"Mul", metadata.get_data())
        session.close_quietly()

    def test_a_registered_step(self):
        session = MusterEngine.Master.new().create_session(line(), None, soon(), None)
        step = Muster.StepBuilder.new()
        step.feed("x:0", case.tensor("f", [0], []))
        step.fetch("y:0")
        number = step.make_callable(session, soon(), None)
        step.feed("x:0", case.tensor("f", [4], []))
        self.assertEqual(step.run_callable(session, number, FOREVER, None)[0].get_double(), (True, 8))
        self.assertTrue(session.release_callable(number, soon(), None))
        session.close_quietly_within(Muster.SECOND)

    def test_a_step_in_parts(self):
        session = MusterEngine.Master.new().create_session(line(), None, soon(), None)
        whole, first, last = (Muster.StepBuilder.new() for _ in range(3))
        whole.feed("x:0", case.tensor("f", [0], []))
        for tensor in ("y:0", "z:0"):
            whole.fetch(tensor)
        handle = whole.set_up_partial_run(session, soon(), None)
        first.feed("x:0", case.tensor("f", [5], []))
        first.fetch("y:0")
        last.fetch("z:0")
        self.assertEqual(first.run_part(session, handle, FOREVER, None)[0].get_double(), (True, 10))
        self.assertEqual(last.run_part(session, handle, FOREVER, None)[0].get_double(), (True, -10))

    def test_nodes_are_added_and_the_session_closed(self):
        builder = Muster.GraphBuilder.new_extension()
        builder.constant("added", case.tensor("q", [7], []))
        self.assertTrue(self.session.extend(builder.end(), soon(), None))
        self.assertEqual(self.session.fetch("added:0", soon(), None).get_int64(), (True, 7))
        self.assertTrue(self.session.close(soon(), None))

    def test_a_deadline_is_told_from_an_ops_own_error(self):
        now = Muster.system_clock().now_us()
        late = GLib.Error.new_literal(Muster.error_quark(), "late", Muster.Error.DEADLINE_EXCEEDED)
        self.assertTrue(Muster.Session.ran_out(late, now - 1, now))
        self.assertFalse(Muster.Session.ran_out(late, now + 60 * Muster.SECOND, now))

    def test_an_implementation_says_who_it_is(self):
        class Here(Muster.Session):
            pass

        session = Here()
        session.set_identity("h", case.linreg().graph())
        session.set_lacks(["NoSuchOp"])
        self.assertEqual(["NoSuchOp"], session.lacks())
        self.assertEqual(session.handle(), "h")


class Served(case.TestCase):
    """A model at a server that keeps announcements."""

    def setUp(self):
        super().setUp()
        self.scaffold = case.linreg()
        self.master = Muster.Master.new_for_target(self.serve())
        self.session = self.master.create_session(self.scaffold.graph(), None, soon(), None)

    def test_a_chief_holds_its_model(self):
        claim = Muster.Claim.new("linreg", "chief:0")
        claim.ready_op = self.scaffold.ready_op()
        lease, before = self.session.claim(claim.copy(), soon(), None)
        self.assertIsNone(before)
        self.assertEqual((lease.model(), lease.epoch()), ("linreg", 1))
        self.assertTrue(lease.announce_phase(Muster.ChiefPhase.RESTORING, soon(), None))
        announcement = Muster.Announcement.new()
        self.assertEqual(announcement.end_word(), "lost")
        announcement.phase, announcement.step, announcement.detail = Muster.ChiefPhase.TRAINING, 5, "words"
        self.assertTrue(lease.announce(announcement, soon(), None))
        self.assertTrue(lease.check())
        self.assertEqual(lease.is_draining()[0], False)
        other = self.master.create_session(self.scaffold.graph(), None, soon(), None)
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "chief:0", other.claim, claim, soon(), None)
        claim.take_over = True
        _, before = other.claim(claim, soon(), None)
        self.assertEqual((before.step, before.task, before.phase), (5, "chief:0", Muster.ChiefPhase.TRAINING))

    def test_readiness_is_pushed(self):
        what = Muster.WatchFor()
        what.ready_op = self.scaffold.ready_op()
        watch = self.session.watch(what.copy(), soon())
        readiness = Muster.Readiness()
        self.assertTrue(watch.next(readiness, None))
        self.assertFalse(readiness.is_ready)
        self.assertIn("w", readiness.missing)
        self.session.run_op(self.scaffold.init_op(), soon(), None)
        self.session.run_op(self.scaffold.local_init_op(), soon(), None)
        while not readiness.is_ready:
            readiness.clear()
            self.assertTrue(watch.next(readiness, None))
        self.assertEqual(readiness.copy().why_not_ready, None)


class Values(case.TestCase):
    def test_announcements(self):
        self.assertEqual(Muster.chief_phase_name(Muster.ChiefPhase.RESTORING), "restoring")
        self.assertTrue(Muster.chief_phase_is_preparing(Muster.ChiefPhase.STARTING))
        one, later = Muster.Announcement.new(), Muster.Announcement.new()
        one.task, one.who, one.phase = "worker:0", "host:4711", Muster.ChiefPhase.STARTING
        later.step = 9
        later.set_saves(Muster.SaveStatus.new())
        later.set_goodput(Muster.Goodput.new())
        one.merge(later)
        self.assertEqual((one.step, one.owner()), (9, "worker:0 (host:4711)"))
        self.assertIn("starting", one.describe())
        self.assertTrue(one.equal(one.copy()))
        self.assertFalse(one.equal(later))
        one.clear()
        self.assertIsNone(one.task)

    def test_the_state_of_saves(self):
        saves = Muster.SaveStatus.new()
        self.assertEqual(list(saves.step), [-1] * 4)
        older = saves.copy()
        older.add_age(5)
        self.assertTrue(older.equal(saves))
        older.n_failed = 1
        self.assertFalse(older.equal(saves))
        older.clear()
        self.assertEqual(older.n_failed, 0)
        self.assertEqual(Muster.save_state_name(Muster.SaveState.DURABLE), "durable")
        self.assertEqual(Muster.save_phase_name(Muster.SavePhase.SAVE_WRITING), "writing")

    def test_a_lease_written_in_python(self):
        class Held(Muster.Lease):
            def do_check(self):
                return True

        lease = Held()
        lease.set_identity("m", 3)
        self.assertTrue(lease.check())
        self.assertEqual((lease.model(), lease.epoch()), ("m", 3))


class Members(case.TestCase):
    def test_a_member_of_a_job(self):
        master = Muster.Master.new_for_target(self.serve())
        join = Muster.Join.new("linreg", "worker:0", 4)
        self.assertEqual(join.slot, -1)
        join.slot = 2
        member = master.join(join, soon(), None)
        self.assertEqual(member.slot(), 2)
        heard = threading.Event()
        member.set_listener(lambda *_: heard.set())
        other = master.join(Muster.Join.new("linreg", "worker:1", 4), soon(), None)
        self.assertTrue(heard.wait(30))
        roster = member.roster()
        while roster.n_members < 2:
            self.assertTrue(member.wait(roster.version, soon(), None))
            roster = member.roster().copy()
        self.assertEqual((roster.slots(), roster.n_slots, roster.has_chief, roster.epoch), ([0, 2], 4, False, 0))
        self.assertTrue(roster.has(2) and not roster.has(1))
        member.report(3)
        self.assertTrue(member.check())
        self.assertTrue(other.leave(soon(), None))
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "it has left", other.check)

    def status(self, target, *flags):
        return subprocess.run([case.built("cli/muster"), "status", target, *flags], capture_output=True, text=True,
                              timeout=60, check=True).stdout

    def test_members_are_shown(self):
        target = self.serve()
        master = Muster.Master.new_for_target(target)
        member = master.join(Muster.Join.new("linreg", "worker:0", 4), soon(), None)
        gone = master.join(Muster.Join.new("linreg", "worker:1", 4), soon(), None)
        self.assertTrue(gone.leave(soon(), None))
        shown = self.status(target)
        self.assertRegex(shown, r"tasks +1 in 4 slots of linreg\n")
        self.assertRegex(shown, r"task +worker:0 \(.+:%d\)  slot 0, worker, joined .+ ago, 0 batches, 0.0/s\n" % os.getpid())
        self.assertRegex(shown, r"left +worker:1 \(.+\)  slot 1, .+ ago: left, after .+ and 0 batches\n")
        job, = json.loads(self.status(target, "--json"))["jobs"]
        self.assertEqual((job["model"], job["slots"], job["tasks"]), ("linreg", 4, 1))
        self.assertEqual([(task["task"], task["slot"], task["role"]) for task in job["members"]], [("worker:0", 0, "worker")])
        self.assertEqual([(task["task"], task["why"]) for task in job["left"]], [("worker:1", "left")])
        self.assertTrue(member.check())

    def test_a_job_that_waits_for_tasks_is_shown(self):
        target = self.serve()
        master = Muster.Master.new_for_target(target)
        join = Muster.Join.new("linreg", "worker:0", 4)
        join.min_tasks = 2
        member = master.join(join, soon(), None)
        self.assertEqual((member.roster().n_tasks, member.roster().min_tasks), (1, 2))
        self.assertRegex(self.status(target), r"tasks +1 in 4 slots of linreg; waiting for tasks: 1 of at least 2\n")
        job, = json.loads(self.status(target, "--json"))["jobs"]
        self.assertEqual((job["tasks"], job["min_tasks"], job["waiting_for_tasks"]), (1, 2, True))

    def test_a_membership_written_in_python(self):
        class Held(Muster.Membership):
            def do_leave(self, _deadline_us, _cancellable):
                return True

            def do_report(self, n_batches):
                self.reported = n_batches

        member, roster = Held(), Muster.Roster()
        roster.n_slots = 4
        member.set_roster(1, roster)
        self.assertEqual((member.slot(), member.roster().version), (1, 1))
        member.report(5)
        self.assertEqual((member.reported, member.n_batches()), (5, 5))
        self.assertTrue(member.leave(soon(), None))
        member.lose(GLib.Error.new_literal(Muster.error_quark(), "gone", Muster.Error.FAILED_PRECONDITION))
        self.assertFails(Muster.Error.FAILED_PRECONDITION, "gone", member.wait, 0, soon(), None)


if __name__ == "__main__":
    case.main()
