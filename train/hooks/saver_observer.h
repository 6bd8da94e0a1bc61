// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/**
 * MusterFailedSave:
 * @step: the step that was to be saved
 * @why: the failure; borrowed
 * @n_in_a_row: consecutive failures, including this one
 * @n_left_out: failures since the last one that was reported, but for this one
 *
 * A save or a copy that has failed.
 */
typedef struct {
  gint64 step;
  const GError *why;
  guint n_in_a_row;
  guint n_left_out;
} MusterFailedSave;

/**
 * MusterSaverListener:
 * @begin: at the beginning, before the first session
 * @before_save: before each save
 * @after_save: after each save that succeeded. FALSE requests a stop; the other listeners are still
 *   called
 * @end: at a clean end
 * @saved: the full result of a save, before after_save; also of one skipped for lack of space,
 *   which isn't a failure if this is set
 * @copied: a checkpoint of a fast tier has been copied to a lower one
 * @failed: a save or a copy has failed, and training continues; called, as it is logged, at most
 *   every ten seconds
 * @user_data: passed to each function
 *
 * Functions that a checkpoint hook calls around each save, on the training thread; each may be
 * NULL. Work in the session must end by the deadline and the cancellable (nullable) of the hook's
 * function.
 */
typedef struct {
  void (*begin) (gpointer user_data);
  void (*before_save) (MusterSession *session, gint64 step, gint64 deadline_us,
                       GCancellable *cancellable, gpointer user_data);
  gboolean (*after_save) (MusterSession *session, gint64 step, const char *prefix,
                          gint64 deadline_us, GCancellable *cancellable, gpointer user_data);
  void (*end) (MusterSession *session, gint64 step, gint64 deadline_us, GCancellable *cancellable,
               gpointer user_data);
  void (*saved) (const MusterSaved *saved, gpointer user_data);
  void (*copied) (const MusterTierCopied *copied, gpointer user_data);
  void (*failed) (const MusterFailedSave *failed, gpointer user_data);
  gpointer user_data;
} MusterSaverListener;

/**
 * MusterSaverObserver:
 *
 * Emits signals around each save of a checkpoint hook, on the training thread:
 * [struct@SaverListener] as an object. Set it in [struct@CheckpointSaverOptions] or
 * [struct@MonitoredTrainingOptions].
 */
#define MUSTER_TYPE_SAVER_OBSERVER (muster_saver_observer_get_type ())
G_DECLARE_FINAL_TYPE (MusterSaverObserver, muster_saver_observer, MUSTER, SAVER_OBSERVER, GObject)

/**
 * MusterSaverObserver::before-save:
 * @self: the observer
 * @session: the session, which runs without hooks
 * @step: the step to save
 *
 * A save begins.
 */

/**
 * MusterSaverObserver::after-save:
 * @self: the observer
 * @session: the session, which runs without hooks
 * @step: the saved step
 * @prefix: the checkpoint
 *
 * A save has succeeded.
 *
 * Returns: TRUE to request a stop
 */

/**
 * MusterSaverObserver::saved:
 * @self: the observer
 * @prefix: (nullable): the checkpoint; NULL: it was skipped, for lack of space
 * @step: its step
 * @took_us: how long it took, in microseconds
 * @why: (nullable): why it was skipped; otherwise what failed after the checkpoint was saved
 *
 * A save has ended without a failure; before [signal@SaverObserver::after-save].
 */

/**
 * MusterSaverObserver::copied:
 * @self: the observer
 * @prefix: where it is now
 * @step: its step
 * @why: (nullable): why the copy was skipped, for lack of space
 *
 * A checkpoint of a fast tier has been copied to a lower one.
 */

/**
 * MusterSaverObserver::save-failed:
 * @self: the observer
 * @step: the step that was to be saved
 * @why: the failure
 * @n_in_a_row: consecutive failures, including this one
 *
 * A save or a copy has failed, and training continues. Emitted at most every ten seconds.
 */

/**
 * MusterSaverObserver::end:
 * @self: the observer
 * @session: the session, which runs without hooks
 * @step: the last step
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

/**
 * muster_saver_observer_listener:
 * @self: the observer
 *
 * The functions that emit its signals, for an API that takes a listener.
 *
 * Returns: (transfer none): a listener, valid as long as @self
 */
const MusterSaverListener *muster_saver_observer_listener (MusterSaverObserver *self);

G_END_DECLS
