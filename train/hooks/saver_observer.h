// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/**
 * MusterSaverObserver:
 *
 * Emits signals around each save of a checkpoint hook, on the training thread. Set it in
 * [struct@CheckpointSaverOptions] or [struct@MonitoredTrainingOptions]. Work in the session must
 * end by the signal's deadline and cancellable.
 */
#define MUSTER_TYPE_SAVER_OBSERVER (muster_saver_observer_get_type ())
G_DECLARE_FINAL_TYPE (MusterSaverObserver, muster_saver_observer, MUSTER, SAVER_OBSERVER, GObject)

/**
 * MusterSaverObserver::begin:
 * @self: the observer
 *
 * Emitted at the beginning, before the first session.
 */

/**
 * MusterSaverObserver::before-save:
 * @self: the observer
 * @session: the session, which runs without hooks
 * @step: the step to save
 * @deadline_us: of work in the session
 * @cancellable: (nullable): likewise
 *
 * A save begins.
 */

/**
 * MusterSaverObserver::after-save:
 * @self: the observer
 * @session: the session, which runs without hooks
 * @step: the saved step
 * @prefix: the checkpoint
 * @deadline_us: of work in the session
 * @cancellable: (nullable): likewise
 *
 * A save has succeeded.
 *
 * Returns: TRUE to request a stop; the other handlers are still called
 */

/**
 * MusterSaverObserver::saved:
 * @self: the observer
 * @saved: its result
 *
 * A save has ended without a failure; before [signal@SaverObserver::after-save]. A save that was
 * skipped for lack of space (its `why`) is a failure if no handler is connected.
 */

/**
 * MusterSaverObserver::copied:
 * @self: the observer
 * @copied: where it is now
 *
 * A checkpoint of a fast tier has been copied to a lower one.
 */

/**
 * MusterSaverObserver::save-failed:
 * @self: the observer
 * @step: the step that was to be saved
 * @why: the failure
 * @n_in_a_row: consecutive failures, including this one
 * @n_left_out: failures since the last one that was reported, but for this one
 *
 * A save or a copy has failed, and training continues. Emitted at most every ten seconds.
 */

/**
 * MusterSaverObserver::end:
 * @self: the observer
 * @session: the session, which runs without hooks
 * @step: the last step
 * @deadline_us: of work in the session
 * @cancellable: (nullable): likewise
 *
 * A clean end.
 */

/**
 * muster_saver_observer_new:
 *
 * An observer without handlers.
 *
 * Returns: (transfer full): the observer
 */
MusterSaverObserver *muster_saver_observer_new (void);

G_END_DECLS
