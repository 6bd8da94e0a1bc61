// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* MusterCoordinator stops several threads together (behaviours MON.52 to MON.61). Any thread may
 * request a stop, with or without an error. The threads check whether they should stop, and the
 * code that started them joins them. Blocking calls take the coordinator's cancellable, which a
 * stop cancels. Any thread. */

#define MUSTER_TYPE_COORDINATOR (muster_coordinator_get_type ())
G_DECLARE_FINAL_TYPE (MusterCoordinator, muster_coordinator, MUSTER, COORDINATOR, GObject)

/* clock NULL: the machine's. With end_of_input_is_clean, an OUT_OF_RANGE reported by a thread is a
 * stop without an error, as when a queue's input ends (MON.54). */
MusterCoordinator *muster_coordinator_new (MusterClock *clock, gboolean end_of_input_is_clean);

/* Requests a stop. The first error is kept for join; an error after a stop without one is logged
 * and dropped. After join an error is returned to its reporter: FALSE with *failure set (MON.55).
 * reason may be NULL. */
gboolean muster_coordinator_request_stop (MusterCoordinator *self, const GError *reason,
                                          GError **failure);
gboolean muster_coordinator_should_stop (MusterCoordinator *self);
/* TRUE once a stop is requested, FALSE if timeout_us has passed or cancellable was cancelled
 * before. */
gboolean muster_coordinator_wait_for_stop (MusterCoordinator *self, gint64 timeout_us,
                                           GCancellable *cancellable);
/* Cancelled by a stop; borrowed from the coordinator. clear_stop replaces it. */
GCancellable *muster_coordinator_cancellable (MusterCoordinator *self);
/* The kept error, or NULL: (transfer full). */
GError *muster_coordinator_error (MusterCoordinator *self);
/* Resets the stop, its error and the joined state. */
void muster_coordinator_clear_stop (MusterCoordinator *self);

/* A thread's work. FALSE with an error stops all. */
typedef gboolean (*MusterCoordinated) (MusterCoordinator *self, gpointer user_data, GError **error);

/* Runs work on a new thread until it returns. name is for messages. */
void muster_coordinator_start (MusterCoordinator *self, const char *name, MusterCoordinated work,
                               gpointer user_data);
/* Runs work repeatedly until a stop: at once, then every interval_us, at fixed instants (late calls
 * are made up for without waiting); 0: without pauses. An error is reported, and ends the thread
 * (MON.60). */
void muster_coordinator_start_looper (MusterCoordinator *self, const char *name, gint64 interval_us,
                                      MusterCoordinated work, gpointer user_data);

/* Waits until all threads have ended, or a stop is requested; then grace_us more for those that
 * still run. FALSE with the reported error, or with ABORTED and the names of threads that still
 * run, unless ignore_live, which only logs them. Afterwards no thread is registered.
 *
 * deadline_us (on the coordinator's clock) and cancellable end the wait for a stop with
 * DEADLINE_EXCEEDED or G_IO_ERROR_CANCELLED: then nothing is joined, and the call can be repeated.
 * During the grace they end the grace. */
gboolean muster_coordinator_join (MusterCoordinator *self, gint64 grace_us, gboolean ignore_live,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);
/* TRUE once join has returned, with any result except DEADLINE_EXCEEDED or G_IO_ERROR_CANCELLED of
 * its wait; until clear_stop. */
gboolean muster_coordinator_is_joined (MusterCoordinator *self);

G_END_DECLS
