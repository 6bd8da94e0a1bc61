#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A process that is forked from one with a served master's session, as by multiprocessing: it sends nothing."""
import multiprocessing
import os
import subprocess
import sys

import case
from case import GLib, Muster


def soon():
    return Muster.deadline_after(Muster.system_clock().now_us(), 30 * Muster.SECOND)


def ones():
    builder = Muster.GraphBuilder.new()
    builder.constant("one", case.tensor("f", [1], []))
    return builder.end()


class Job:
    """A session with its lease, its membership and another session."""

    def __init__(self, target):
        self.master = Muster.Master.new_for_target(target)
        self.sessions = [self.master.create_session(ones(), None, soon(), None) for _ in range(2)]
        self.lease = self.sessions[0].claim(Muster.Claim.new("job", "chief:0"), soon(), None)[0]
        self.member = self.master.join(Muster.Join.new("job", "worker:0", 4), soon(), None)

    def run(self):
        return case.values(self.sessions[0].fetch("one:0", soon(), None))[0]


def expect_refusals(job):
    """In a child."""
    for call in (job.run, lambda: job.master.list_devices(soon(), None),
                 lambda: job.master.create_session(ones(), None, soon(), None),
                 lambda: job.sessions[0].watch(Muster.WatchFor(), soon())):
        try:
            call()
        except GLib.Error as error:
            assert error.matches(Muster.error_quark(), Muster.Error.FAILED_PRECONDITION), error
            assert "forked" in error.message, error
        else:
            raise AssertionError("nothing was refused")


def parent(target):
    """Forks children that end in each way; exits with 0 if it goes on."""
    job = Job(target)
    assert job.run() == 1
    children = [multiprocessing.get_context("fork").Process(target=expect_refusals, args=[job])]
    children[0].start()
    children[0].join(30)
    assert children[0].exitcode == 0, children[0].exitcode
    if os.fork() == 0:
        expect_refusals(job)
        job.sessions[0].close(soon(), None)
        job.sessions[1].give_up()
        del job
        sys.exit(0)  # through the interpreter's end, with all that it frees
    assert os.wait()[1] == 0
    for _ in range(3):
        assert job.run() == 1
    assert job.lease.check()
    job.member.report(1)
    job.sessions[1].give_up()
    job.sessions[0].close(soon(), None)


class Fork(case.TestCase):
    def test_a_child_takes_nothing_from_its_parent(self):
        process = subprocess.run([sys.executable, __file__, "parent", self.serve()], timeout=120, check=False,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(process.returncode, 0, process.stdout)


if __name__ == "__main__":
    if sys.argv[1:2] == ["parent"]:
        parent(sys.argv[2])
    else:
        case.main()
