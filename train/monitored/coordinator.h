// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/* MusterCoordinator ends several threads together (behaviours MON.52 to MON.61): any of them, or
 * whoever else, requests a stop, with an error or without; all look whether they should stop, and
 * whoever started them joins them. What blocks is given the coordinator's cancellable, which a stop
 * cancels. Any thread. */

#define MUSTER_TYPE_COORDINATOR (muster_coordinator_get_type ())
G_DECLARE_FINAL_TYPE (MusterCoordinator, muster_coordinator, MUSTER, COORDINATOR, GObject)

/* clock NULL: the machine's. With end_of_input_is_clean an OUT_OF_RANGE that a thread reports is a
 * plain stop, as a queue runs dry at the end of its input (MON.54). */
MusterCoordinator *muster_coordinator_new (MusterClock *clock, gboolean end_of_input_is_clean);

/* Asks all to stop. The first error is kept for join; one that comes after a plain stop is logged
 * and dropped. After join an error goes straight back to who reports it: FALSE with *failure set
 * (MON.55). reason may be NULL. */
gboolean muster_coordinator_request_stop (MusterCoordinator *self, const GError *reason,
                                          GError **failure);
gboolean muster_coordinator_should_stop (MusterCoordinator *self);
/* TRUE once a stop is requested, FALSE when timeout_us has passed or cancellable was cancelled
 * first. */
gboolean muster_coordinator_wait_for_stop (MusterCoordinator *self, gint64 timeout_us,
                                           GCancellable *cancellable);
/* Cancelled by a stop; borrowed from the coordinator. clear_stop puts a new one in its place. */
GCancellable *muster_coordinator_cancellable (MusterCoordinator *self);
/* The error that is kept, or NULL: (transfer full). */
GError *muster_coordinator_error (MusterCoordinator *self);
/* Forgets the stop, its error and that it was joined. */
void muster_coordinator_clear_stop (MusterCoordinator *self);

/* A thread's work; FALSE with an error stops all. */
typedef gboolean (*MusterCoordinated) (MusterCoordinator *self, gpointer user_data, GError **error);

/* Runs work on a thread of its own until it returns. name is for messages. */
void muster_coordinator_start (MusterCoordinator *self, const char *name, MusterCoordinated work,
                               gpointer user_data);
/* Runs work again and again until there is a stop: at once, and then every interval_us, at fixed
 * instants (late calls are caught up without waiting); 0: back to back. An error is reported, and
 * ends the thread (MON.60). */
void muster_coordinator_start_looper (MusterCoordinator *self, const char *name, gint64 interval_us,
                                      MusterCoordinated work, gpointer user_data);

/* Waits until all threads have ended, or a stop is requested; then another grace_us for those that
 * still run. FALSE with the error that was reported; else with ABORTED and the names of those that
 * still run, unless ignore_live, which only logs them. Afterwards no thread is registered.
 *
 * deadline_us (on the coordinator's clock) and cancellable end the wait for a stop with
 * DEADLINE_EXCEEDED or G_IO_ERROR_CANCELLED: then nothing is joined, and the call can be repeated.
 * Where they come during the grace, that ends. */
gboolean muster_coordinator_join (MusterCoordinator *self, gint64 grace_us, gboolean ignore_live,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);
/* TRUE once join has returned, whatever it returned, but for an end of its own wait; until
 * clear_stop. */
gboolean muster_coordinator_is_joined (MusterCoordinator *self);

G_END_DECLS
