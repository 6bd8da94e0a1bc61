// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"

G_BEGIN_DECLS

/**
 * MusterCoordinator:
 *
 * Stops several threads together, like TensorFlow's `Coordinator` (behaviours MON.52 to MON.61).
 * Any thread may request a stop, with or without an error. The threads check whether they should
 * stop, and the code that started them joins them. Blocking calls take the coordinator's
 * cancellable, which a stop cancels. Any thread may use it.
 */
#define MUSTER_TYPE_COORDINATOR (muster_coordinator_get_type ())
G_DECLARE_FINAL_TYPE (MusterCoordinator, muster_coordinator, MUSTER, COORDINATOR, GObject)

/**
 * muster_coordinator_new:
 * @clock: (nullable): the clock of its deadlines; NULL: the machine's
 * @end_of_input_is_clean: TRUE: an OUT_OF_RANGE reported by a thread is a stop without an error, as
 *   when a queue's input ends (MON.54)
 *
 * A coordinator without threads.
 *
 * Returns: (transfer full): the coordinator
 */
MusterCoordinator *muster_coordinator_new (MusterClock *clock, gboolean end_of_input_is_clean);

/**
 * muster_coordinator_request_stop:
 * @self: the coordinator
 * @reason: (nullable): the error that stops all; NULL: a stop without an error
 * @failure: where to return @reason after join
 *
 * Requests a stop. The first error is kept for [method@Coordinator.join]; an error after a stop
 * without one is logged and dropped. After join an error is returned to its reporter (MON.55).
 *
 * Returns: FALSE with @failure set after join
 */
gboolean muster_coordinator_request_stop (MusterCoordinator *self, const GError *reason,
                                          GError **failure);

/**
 * muster_coordinator_stop:
 * @self: the coordinator
 *
 * Requests a stop without an error; [method@Coordinator.request_stop] for other languages.
 */
void muster_coordinator_stop (MusterCoordinator *self);

/**
 * muster_coordinator_should_stop:
 * @self: the coordinator
 *
 * Whether a stop was requested.
 *
 * Returns: TRUE from a stop to [method@Coordinator.clear_stop]
 */
gboolean muster_coordinator_should_stop (MusterCoordinator *self);

/**
 * muster_coordinator_wait_for_stop:
 * @self: the coordinator
 * @timeout_us: how long, in microseconds
 * @cancellable: (nullable): ends the wait
 *
 * Waits until a stop is requested.
 *
 * Returns: TRUE once a stop is requested; FALSE if @timeout_us has passed or @cancellable was
 *   cancelled before
 */
gboolean muster_coordinator_wait_for_stop (MusterCoordinator *self, gint64 timeout_us,
                                           GCancellable *cancellable);

/**
 * muster_coordinator_cancellable:
 * @self: the coordinator
 *
 * What a stop cancels. [method@Coordinator.clear_stop] replaces it.
 *
 * Returns: (transfer none): the cancellable, borrowed from the coordinator
 */
GCancellable *muster_coordinator_cancellable (MusterCoordinator *self);

/**
 * muster_coordinator_error:
 * @self: the coordinator
 *
 * The kept error.
 *
 * Returns: (transfer full) (nullable): the first reported error; NULL: none
 */
GError *muster_coordinator_error (MusterCoordinator *self);

/**
 * muster_coordinator_clear_stop:
 * @self: the coordinator
 *
 * Resets the stop, its error and the joined state.
 */
void muster_coordinator_clear_stop (MusterCoordinator *self);

/**
 * MusterCoordinated:
 * @self: the coordinator
 * @user_data: the caller's
 * @error: set it to stop all
 *
 * A thread's work.
 *
 * Returns: FALSE with an error stops all
 */
typedef gboolean (*MusterCoordinated) (MusterCoordinator *self, gpointer user_data, GError **error);

/**
 * muster_coordinator_start:
 * @self: the coordinator
 * @name: the thread's name, for messages
 * @work: (scope notified) (closure user_data) (destroy destroy): what it does
 * @user_data: passed to @work
 * @destroy: (nullable): frees @user_data when the thread has ended
 *
 * Runs work on a new thread until it returns.
 */
void muster_coordinator_start (MusterCoordinator *self, const char *name, MusterCoordinated work,
                               gpointer user_data, GDestroyNotify destroy);

/**
 * muster_coordinator_start_looper:
 * @self: the coordinator
 * @name: the thread's name, for messages
 * @interval_us: microseconds between two calls; 0: without pauses
 * @work: (scope notified) (closure user_data) (destroy destroy): what it does
 * @user_data: passed to @work
 * @destroy: (nullable): frees @user_data when the thread has ended
 *
 * Runs work repeatedly until a stop: at once, then every @interval_us, at fixed instants (late
 * calls are made up for without waiting). An error is reported, and ends the thread (MON.60).
 */
void muster_coordinator_start_looper (MusterCoordinator *self, const char *name, gint64 interval_us,
                                      MusterCoordinated work, gpointer user_data,
                                      GDestroyNotify destroy);

/**
 * muster_coordinator_join:
 * @self: the coordinator
 * @grace_us: how long threads may run after a stop, in microseconds
 * @ignore_live: TRUE: threads that still run then are only logged
 * @deadline_us: on the coordinator's clock: ends the wait for a stop
 * @cancellable: (nullable): ends the wait, too
 *
 * Waits until all threads have ended, or a stop is requested; then @grace_us more for those that
 * still run. Afterwards no thread is registered.
 *
 * If @deadline_us or @cancellable end the wait for a stop (DEADLINE_EXCEEDED or
 * `G_IO_ERROR_CANCELLED`), nothing is joined, and the call can be repeated. During the grace they
 * end the grace.
 *
 * Returns: FALSE with the reported error, or with ABORTED and the names of threads that still run
 */
gboolean muster_coordinator_join (MusterCoordinator *self, gint64 grace_us, gboolean ignore_live,
                                  gint64 deadline_us, GCancellable *cancellable, GError **error);

/**
 * muster_coordinator_is_joined:
 * @self: the coordinator
 *
 * Whether join has returned, with any result except DEADLINE_EXCEEDED or `G_IO_ERROR_CANCELLED` of
 * its wait.
 *
 * Returns: TRUE from then to [method@Coordinator.clear_stop]
 */
gboolean muster_coordinator_is_joined (MusterCoordinator *self);

G_END_DECLS
