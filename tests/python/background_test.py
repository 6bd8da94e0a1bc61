#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The operations of masters, sessions and leases in a main loop, from Python."""
import case
from case import FOREVER, Muster, MusterEngine


class Here(case.TestCase):
    def setUp(self):
        super().setUp()
        self.scaffold = case.linreg()
        self.master = MusterEngine.Master.new()

    def create(self):
        result = self.in_background(self.master.create_session_async, self.scaffold.graph(), None, FOREVER)
        return self.master.create_session_finish(result)

    def test_a_masters_operations(self):
        self.assertTrue(self.create().is_here())
        devices = self.master.list_devices_finish(self.in_background(self.master.list_devices_async, FOREVER))
        self.assertEqual(devices[0].type, "CPU")
        self.assertTrue(self.master.reset_finish(self.in_background(self.master.reset_async, None, FOREVER)))

    def test_a_sessions_operations(self):
        session = self.create()
        result = self.in_background(session.run_op_async, self.scaffold.init_op(), FOREVER)
        self.assertTrue(session.run_op_finish(result))
        result = self.in_background(session.fetch_async, self.scaffold.global_step(), FOREVER)
        self.assertEqual(session.fetch_finish(result).get_int64(), (True, 0))
        builder = Muster.GraphBuilder.new_extension()
        builder.constant("added", case.tensor("q", [7], []))
        self.assertTrue(session.extend_finish(self.in_background(session.extend_async, builder.end(), FOREVER)))
        step = Muster.StepBuilder.new()
        step.fetch("added:0")
        values = step.run_finish(self.in_background(step.run_async, session, FOREVER))
        self.assertEqual(values[0].get_int64(), (True, 7))
        number = step.make_callable(session, FOREVER, None)
        self.assertTrue(session.release_callable_finish(self.in_background(session.release_callable_async, number, FOREVER)))
        self.assertTrue(session.close_finish(self.in_background(session.close_async, FOREVER)))

    def test_a_failure_is_the_finishs(self):
        session = self.create()
        result = self.in_background(session.fetch_async, "nothing:0", FOREVER)
        self.assertFails(Muster.Error.NOT_FOUND, "nothing", session.fetch_finish, result)


class Served(case.TestCase):
    def test_a_chiefs_lease_and_a_watch(self):
        scaffold = case.linreg()
        master = Muster.Master.new_for_target(self.serve())
        session = master.create_session(scaffold.graph(), None, FOREVER, None)
        result = self.in_background(session.claim_async, Muster.Claim.new("linreg", "chief:0"), FOREVER)
        lease, before = session.claim_finish(result)
        self.assertIsNone(before)
        announcement = Muster.Announcement.new()
        announcement.phase = Muster.ChiefPhase.RESTORING
        self.assertTrue(lease.announce_finish(self.in_background(lease.announce_async, announcement, FOREVER)))
        result = self.in_background(lease.announce_phase_async, Muster.ChiefPhase.PREPARED, FOREVER)
        self.assertTrue(lease.announce_phase_finish(result))
        what, readiness = Muster.WatchFor.new(), Muster.Readiness.new()
        what.ready_op = scaffold.ready_op()
        watch = session.watch(what, FOREVER)
        self.assertTrue(watch.next_finish(self.in_background(watch.next_async), readiness))
        self.assertFalse(readiness.is_ready)

    def test_a_membership(self):
        master = Muster.Master.new_for_target(self.serve())
        join = Muster.Join.new("linreg", "worker:0", 4)
        member = master.join_finish(self.in_background(master.join_async, join, FOREVER))
        self.assertTrue(member.wait_finish(self.in_background(member.wait_async, 0, FOREVER)))
        self.assertTrue(member.leave_finish(self.in_background(member.leave_async, FOREVER)))


if __name__ == "__main__":
    case.main()
