// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* MusterFakeClock is a clock whose time passes only because somebody waits: wait_until () jumps to
 * its instant and, on the way, runs the events that the test has put there, in order. So a story of
 * hours is told on one thread in microseconds: at 95 s, cancel; at 1 h, the chief initialises. An
 * event may itself wait, run verbs and add events.
 *
 * For stories with real threads, hold it: then a wait blocks its thread until the test, having seen
 * that everybody waits (wait_for_waiters), cranks the clock to the next instant. */

#define MUSTER_TYPE_FAKE_CLOCK (muster_fake_clock_get_type ())
G_DECLARE_FINAL_TYPE (MusterFakeClock, muster_fake_clock, MUSTER, FAKE_CLOCK, GObject)

typedef void (*MusterFakeEvent) (gpointer user_data);

MusterFakeClock *muster_fake_clock_new (void);

/* Runs func when the clock comes to after_us from its start; an instant that has passed comes with
 * the next wait. */
void muster_fake_clock_at (MusterFakeClock *self, gint64 after_us, MusterFakeEvent func,
                           gpointer user_data);
void muster_fake_clock_cancel_at (MusterFakeClock *self, gint64 after_us,
                                  GCancellable *cancellable);

/* How far it has come since it was made, and how often somebody waited for a later instant. */
gint64 muster_fake_clock_elapsed_us (MusterFakeClock *self);
guint muster_fake_clock_n_waits (MusterFakeClock *self);

/* What chance says from now on: every number drawn is value (0.5 until set). */
void muster_fake_clock_set_random (MusterFakeClock *self, double value);

/* Sets the time of day ahead by so much, or behind if it is below 0, from now on. */
void muster_fake_clock_set_wall (MusterFakeClock *self, gint64 ahead_us);

/* Lets time pass, as work does that takes that long; runs events on the way. */
void muster_fake_clock_pass (MusterFakeClock *self, gint64 duration_us);

/* Goes to the next event, or to wake_us if that comes first; FALSE when cancelled. For doubles that
 * wait for something to change. */
gboolean muster_fake_clock_wait_event (MusterFakeClock *self, gint64 wake_us,
                                       GCancellable *cancellable, GError **error);

/* From now on waits block their threads until cranked. */
void muster_fake_clock_hold (MusterFakeClock *self);
/* Waits (in real time, at most 30 s) until at least n threads wait. */
void muster_fake_clock_wait_for_waiters (MusterFakeClock *self, guint n);
/* Goes to the next instant that somebody waits for (or the next event) and lets those go on whose
 * instant has come. */
void muster_fake_clock_crank (MusterFakeClock *self);

G_END_DECLS
