// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterClock is where time and chance come from (docs/decisions/0011). Nothing else in muster
 * reads a clock, sleeps or draws a random number, so that a test's two-hour countdown takes
 * microseconds (tests/doubles/fake_clock.h). Instants and durations are gint64 microseconds;
 * instants are monotonic. An instant of MUSTER_WAIT_FOREVER never comes. Any thread may use a
 * clock.
 *
 * All clocks' instants are on one scale, the machine's: a clock of one's own may count from
 * anywhere, and is set by the machine's when it is first asked. So what was reckoned by one clock
 * bounds a call that is timed by another. Where the two run at different speeds, such a call has
 * the more or the less time by what they have moved apart. */

/* Written so that g-ir-scanner can read them, too. */
#define MUSTER_WAIT_FOREVER G_GINT64_CONSTANT (9223372036854775807)
#define MUSTER_SECOND       G_GINT64_CONSTANT (1000000)
#define MUSTER_MILLISECOND  G_GINT64_CONSTANT (1000)

#define MUSTER_TYPE_CLOCK (muster_clock_get_type ())
G_DECLARE_INTERFACE (MusterClock, muster_clock, MUSTER, CLOCK, GObject)

/* What a kind of clock implements, on a scale of its own: now_us says an instant, wait_until gets
 * one. */
struct _MusterClockInterface {
  GTypeInterface parent;
  gint64 (*now_us) (MusterClock *self);
  gint64 (*wall_us) (MusterClock *self);
  gboolean (*wait_until) (MusterClock *self, gint64 wake_us, GCancellable *cancellable,
                          GError **error);
  double (*random) (MusterClock *self);
};

/* The present instant. */
gint64 muster_clock_now_us (MusterClock *self);

/* Microseconds since 1970, for what people and files read; never for a deadline. */
gint64 muster_clock_wall_us (MusterClock *self);

/* Waits until wake_us, or until cancellable (nullable) is cancelled: then FALSE with
 * G_IO_ERROR_CANCELLED. Returns at once for an instant that has passed. */
gboolean muster_clock_wait_until (MusterClock *self, gint64 wake_us, GCancellable *cancellable,
                                  GError **error);

/* A number in [0, 1). */
double muster_clock_random (MusterClock *self);

/**
 * muster_system_clock:
 *
 * The machine's clock; (transfer none), lives as long as the process.
 *
 * Returns: (transfer none)
 */
MusterClock *muster_system_clock (void);

/* FALSE with INVALID_ARGUMENT for what no clock has said: an instant below 0, or above 0 and before
 * this process began, as a duration is that stands where a deadline belongs. */
gboolean muster_deadline_check (gint64 deadline_us, GError **error);

/* now_us + timeout_us; MUSTER_WAIT_FOREVER where either is that or the sum would overflow. A
 * timeout below 0 counts as 0. */
gint64 muster_deadline_after (gint64 now_us, gint64 timeout_us);

/* What is left at now_us, never below 0; MUSTER_WAIT_FOREVER stays. */
gint64 muster_deadline_remaining (gint64 deadline_us, gint64 now_us);

/* A duration as people read it: "40 µs", "0.4 ms", "3 ms", "14.2 s", "9m46s", "2h03m"; "forever".
 */
char *muster_format_duration (gint64 duration_us);

/* A size as people read it: "64 KB", "3.4 GB" (powers of 1000). */
char *muster_format_size (guint64 bytes);

G_END_DECLS
