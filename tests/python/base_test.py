#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clocks, errors, versions and goodput from Python."""
import case
from case import Gio, GLib, GObject, Muster


class Ticking(GObject.Object, Muster.Clock):
    """A clock of the program's own, which doesn't wait."""

    def __init__(self):
        super().__init__()
        self.us = 5 * Muster.SECOND

    def do_now_us(self):
        return self.us

    def do_wall_us(self):
        return 1000 * self.us

    def do_wait_until(self, wake_us, cancellable):
        self.us = max(self.us, wake_us)
        return True

    def do_random(self):
        return 0.25


class Clock(case.TestCase):
    def test_the_machines_clock(self):
        clock = Muster.system_clock()
        self.assertLess(clock.now_us(), clock.now_us() + 1)
        self.assertGreater(clock.wall_us(), 1_600_000_000 * Muster.SECOND)
        self.assertTrue(0 <= clock.random() < 1)
        self.assertTrue(clock.wait_until(clock.now_us(), None))

    def test_a_wait_ends_by_cancellation(self):
        cancellable = Gio.Cancellable()
        cancellable.cancel()
        with self.assertRaises(GLib.Error) as caught:
            Muster.system_clock().wait_until(Muster.WAIT_FOREVER, cancellable)
        self.assertTrue(caught.exception.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CANCELLED))

    def test_a_clock_written_in_python(self):
        clock = Ticking()
        before = clock.now_us()
        self.assertTrue(clock.wait_until(before + 7, None))
        self.assertEqual(clock.now_us(), before + 7)
        self.assertEqual(clock.wall_us(), 5000 * Muster.SECOND + 7000)
        self.assertEqual(clock.random(), 0.25)

    def test_deadlines(self):
        now = Muster.system_clock().now_us()
        self.assertTrue(Muster.deadline_check(now))
        self.assertFails(Muster.Error.INVALID_ARGUMENT, "deadline", Muster.deadline_check, 3)
        self.assertEqual(Muster.deadline_after(now, -1), now)
        self.assertEqual(Muster.deadline_after(now, Muster.WAIT_FOREVER), Muster.WAIT_FOREVER)
        self.assertEqual(Muster.deadline_remaining(now + 5, now), 5)

    def test_formats(self):
        self.assertEqual(Muster.format_duration(14_200 * Muster.MILLISECOND), "14.2 s")
        self.assertEqual(Muster.format_size(64_000), "64 KB")


class Errors(case.TestCase):
    def test_codes(self):
        self.assertEqual(Muster.error_name(4), "deadline exceeded")
        self.assertEqual(Muster.error_from_wire(5), Muster.Error.NOT_FOUND)
        self.assertEqual(Muster.error_from_wire(99), Muster.Error.UNKNOWN)

    def test_an_error_is_told_by_its_code(self):
        error = GLib.Error.new_literal(Muster.error_quark(), "gone", Muster.Error.ABORTED)
        self.assertTrue(Muster.error_is(error, Muster.Error.ABORTED))
        self.assertFalse(Muster.error_is(error, Muster.Error.NOT_FOUND))
        self.assertEqual(Muster.error_to_wire(error), 10)
        self.assertEqual(Muster.error_to_wire(GLib.Error.new_literal(Gio.io_error_quark(), "no", Gio.IOErrorEnum.NO_SPACE)), 8)


class Log(case.TestCase):
    def test_has_a_level(self):
        Muster.log_set_level(GLib.LogLevelFlags.LEVEL_INFO)
        Muster.log_set_level(GLib.LogLevelFlags.LEVEL_WARNING)


class Version(case.TestCase):
    def test_the_headers_and_the_library_agree(self):
        numbers = (Muster.MAJOR_VERSION, Muster.MINOR_VERSION, Muster.MICRO_VERSION)
        self.assertEqual(Muster.VERSION, "%d.%d.%d" % numbers)
        self.assertEqual(Muster.version(), Muster.VERSION)

    def test_a_version_is_compared_by_number(self):
        major, minor, micro = Muster.MAJOR_VERSION, Muster.MINOR_VERSION, Muster.MICRO_VERSION
        self.assertTrue(Muster.check_version(major, minor, micro))
        self.assertFalse(Muster.check_version(major, minor, micro + 1))
        self.assertFalse(Muster.check_version(major, minor + 1, 0))
        self.assertFalse(Muster.check_version(major + 1, 0, 0))


class Goodput(case.TestCase):
    def test_an_account_of_time(self):
        goodput = Muster.Goodput.new()
        self.assertEqual(goodput.step, -1)
        self.assertEqual((goodput.total_us(), goodput.lost_us(), goodput.share()), (0, 0, 1))
        self.assertEqual(list(goodput.spent_us), [0] * 8)
        goodput.steps_again = 61000
        self.assertEqual(goodput.copy().steps_again, 61000)
        self.assertIn("no step trained yet", goodput.text())
        self.assertEqual(Muster.time_use_name(Muster.TimeUse.TIME_SAVING), "saving")


if __name__ == "__main__":
    case.main()
