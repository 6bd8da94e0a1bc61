// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/saver_observer.h"

G_BEGIN_DECLS

/* --- the signals "saved", "copied" and "save-failed", of a saver's and of a training's observer
 * ---
 */

/* Combines what a signal's handlers return: TRUE if one does, and all of them are called. */
gboolean muster_observer_any (GSignalInvocationHint *hint, GValue *sum, const GValue *one,
                              gpointer unused);
/* For a class_init. */
void muster_save_signals_install (GType type);
/* observer (nullable) */
void muster_save_signals_saved (gpointer observer, const MusterSaved *saved);
void muster_save_signals_copied (gpointer observer, const MusterTierCopied *copied);
void muster_save_signals_failed (gpointer observer, gint64 step, const GError *why,
                                 guint n_in_a_row, guint n_left_out);
/* TRUE if somebody is told of saves. */
gboolean muster_save_signals_has_listener (gpointer observer);

/* --- those of a saver's observer; self (nullable) --- */

void muster_saver_observer_begin (MusterSaverObserver *self);
void muster_saver_observer_before_save (MusterSaverObserver *self, MusterSession *session,
                                        gint64 step, gint64 deadline_us, GCancellable *cancellable);
/* TRUE if a handler requests a stop. */
gboolean muster_saver_observer_after_save (MusterSaverObserver *self, MusterSession *session,
                                           const MusterSaved *saved, gint64 deadline_us,
                                           GCancellable *cancellable);
void muster_saver_observer_end (MusterSaverObserver *self, MusterSession *session, gint64 step,
                                gint64 deadline_us, GCancellable *cancellable);

G_END_DECLS
