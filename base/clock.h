// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterClock is the source of time and of random numbers (docs/decisions/0011). Nothing else in
 * muster reads a clock, sleeps or draws a random number, so a test's two-hour countdown takes
 * microseconds (tests/doubles/fake_clock.h). Instants and durations are gint64 microseconds;
 * instants are monotonic. The instant MUSTER_WAIT_FOREVER never comes. Thread-safe.
 *
 * The instants of all clocks are on one scale, that of the machine's clock: an implementation may
 * count from any origin, and is adjusted to the machine's clock at its first reading. A deadline
 * computed with one clock therefore also bounds a call that is timed by another. If the two run at
 * different speeds, such a call's timeout is off by their drift. */

/* Literals that g-ir-scanner can parse. */
#define MUSTER_WAIT_FOREVER G_GINT64_CONSTANT (9223372036854775807)
#define MUSTER_SECOND       G_GINT64_CONSTANT (1000000)
#define MUSTER_MILLISECOND  G_GINT64_CONSTANT (1000)

#define MUSTER_TYPE_CLOCK (muster_clock_get_type ())
G_DECLARE_INTERFACE (MusterClock, muster_clock, MUSTER, CLOCK, GObject)

/* Implementations use a scale of their own: now_us returns an instant of it, wait_until receives
 * one. */
struct _MusterClockInterface {
  GTypeInterface parent;
  gint64 (*now_us) (MusterClock *self);
  gint64 (*wall_us) (MusterClock *self);
  gboolean (*wait_until) (MusterClock *self, gint64 wake_us, GCancellable *cancellable,
                          GError **error);
  double (*random) (MusterClock *self);
};

/* The current instant. */
gint64 muster_clock_now_us (MusterClock *self);

/* Microseconds since 1970, for display and for files; never for a deadline. */
gint64 muster_clock_wall_us (MusterClock *self);

/* Waits until wake_us. If cancellable (nullable) is cancelled first, it returns FALSE with
 * G_IO_ERROR_CANCELLED. Returns at once if the instant has passed. */
gboolean muster_clock_wait_until (MusterClock *self, gint64 wake_us, GCancellable *cancellable,
                                  GError **error);

/* A random number in [0, 1). */
double muster_clock_random (MusterClock *self);

/**
 * muster_system_clock:
 *
 * The machine's clock; (transfer none), lives as long as the process.
 *
 * Returns: (transfer none)
 */
MusterClock *muster_system_clock (void);

/* Returns FALSE with INVALID_ARGUMENT if no clock can have returned deadline_us: it is below 0, or
 * above 0 and before this process started, as a duration passed by mistake is. */
gboolean muster_deadline_check (gint64 deadline_us, GError **error);

/* Returns now_us + timeout_us, or MUSTER_WAIT_FOREVER if either has that value or the sum would
 * overflow. A timeout below 0 counts as 0. */
gint64 muster_deadline_after (gint64 now_us, gint64 timeout_us);

/* The time from now_us to the deadline, at least 0; MUSTER_WAIT_FOREVER stays. */
gint64 muster_deadline_remaining (gint64 deadline_us, gint64 now_us);

/* A duration for display: "40 µs", "0.4 ms", "3 ms", "14.2 s", "9m46s", "2h03m"; "forever". */
char *muster_format_duration (gint64 duration_us);

/* A size for display: "64 KB", "3.4 GB" (powers of 1000). */
char *muster_format_size (guint64 bytes);

G_END_DECLS
