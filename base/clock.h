// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * MusterClock:
 *
 * The source of time and of random numbers (docs/decisions/0011). Nothing else in muster reads a
 * clock, sleeps or draws a random number, so a test's two-hour countdown takes microseconds with a
 * clock of its own. Instants and durations are gint64 microseconds; instants are monotonic. The
 * instant %MUSTER_WAIT_FOREVER never comes. Thread-safe.
 *
 * The instants of all clocks are on one scale, that of the machine's clock: an implementation may
 * count from any origin, and is adjusted to the machine's clock at its first reading. A deadline
 * computed with one clock therefore also bounds a call that is timed by another. If the two run at
 * different speeds, such a call's timeout is off by their drift.
 */

/**
 * MUSTER_WAIT_FOREVER:
 *
 * The deadline that never comes, and the timeout without limit.
 */
#define MUSTER_WAIT_FOREVER G_GINT64_CONSTANT (9223372036854775807)
/**
 * MUSTER_SECOND:
 *
 * The microseconds in a second.
 */
#define MUSTER_SECOND G_GINT64_CONSTANT (1000000)
/**
 * MUSTER_MILLISECOND:
 *
 * The microseconds in a millisecond.
 */
#define MUSTER_MILLISECOND G_GINT64_CONSTANT (1000)

#define MUSTER_TYPE_CLOCK (muster_clock_get_type ())
G_DECLARE_INTERFACE (MusterClock, muster_clock, MUSTER, CLOCK, GObject)

/**
 * MusterClockInterface:
 * @parent: the parent interface
 * @now_us: see [method@Clock.now_us], but on the implementation's own scale
 * @wall_us: see [method@Clock.wall_us]
 * @wait_until: see [method@Clock.wait_until], with an instant of the implementation's own scale
 * @random: see [method@Clock.random]
 *
 * What a clock implements. Implementations use a scale of their own: `now_us` returns an instant of
 * it, `wait_until` receives one. What a class lacks is the machine's clock's.
 */
struct _MusterClockInterface {
  GTypeInterface parent;
  gint64 (*now_us) (MusterClock *self);
  gint64 (*wall_us) (MusterClock *self);
  gboolean (*wait_until) (MusterClock *self, gint64 wake_us, GCancellable *cancellable,
                          GError **error);
  double (*random) (MusterClock *self);
};

/**
 * muster_clock_now_us:
 * @self: a clock
 *
 * Reads the clock, for deadlines and durations.
 *
 * Returns: the current instant in microseconds
 */
gint64 muster_clock_now_us (MusterClock *self);

/**
 * muster_clock_wall_us:
 * @self: a clock
 *
 * Reads the time of day, for display and for files; never for a deadline.
 *
 * Returns: microseconds since 1970
 */
gint64 muster_clock_wall_us (MusterClock *self);

/**
 * muster_clock_wait_until:
 * @self: a clock
 * @wake_us: an instant of this clock
 * @cancellable: (nullable): ends the wait
 *
 * Waits until @wake_us. Returns at once if the instant has passed.
 *
 * Returns: %TRUE, or %FALSE with %G_IO_ERROR_CANCELLED if @cancellable was cancelled first
 */
gboolean muster_clock_wait_until (MusterClock *self, gint64 wake_us, GCancellable *cancellable,
                                  GError **error);

/**
 * muster_clock_random:
 * @self: a clock
 *
 * Draws a random number.
 *
 * Returns: a number in [0, 1)
 */
double muster_clock_random (MusterClock *self);

/**
 * muster_system_clock:
 *
 * The machine's clock. It lives as long as the process.
 *
 * Returns: (transfer none): the clock
 */
MusterClock *muster_system_clock (void);

/**
 * muster_deadline_check:
 * @deadline_us: an instant in microseconds
 *
 * Checks that @deadline_us can be an instant of a #MusterClock, as of g_get_monotonic_time ().
 * INVALID_ARGUMENT if it is below 0, or above 0 and before this process started, as a duration
 * passed by mistake is, or more than ten years ahead, as a time of g_get_real_time () is;
 * %MUSTER_WAIT_FOREVER is valid.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_deadline_check (gint64 deadline_us, GError **error);

/**
 * muster_deadline_after:
 * @now_us: an instant in microseconds
 * @timeout_us: a duration in microseconds; below 0 it counts as 0
 *
 * Computes a deadline.
 *
 * Returns: the sum; %MUSTER_WAIT_FOREVER if either has that value or the timeout is longer than
 * five years
 */
gint64 muster_deadline_after (gint64 now_us, gint64 timeout_us);

/**
 * muster_deadline_remaining:
 * @deadline_us: an instant in microseconds
 * @now_us: the present, in microseconds
 *
 * Computes the time that remains.
 *
 * Returns: the time from @now_us to the deadline, at least 0; %MUSTER_WAIT_FOREVER stays
 */
gint64 muster_deadline_remaining (gint64 deadline_us, gint64 now_us);

/**
 * muster_format_duration:
 * @duration_us: microseconds
 *
 * Formats a duration for display: "40 µs", "0.4 ms", "3 ms", "14.2 s", "9m46s", "2h03m"; "forever".
 *
 * Returns: (transfer full): the text
 */
char *muster_format_duration (gint64 duration_us);

/**
 * muster_format_size:
 * @bytes: a number of bytes
 *
 * Formats a size for display: "64 KB", "3.4 GB" (powers of 1000).
 *
 * Returns: (transfer full): the text
 */
char *muster_format_size (guint64 bytes);

G_END_DECLS
