// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* Runs work in the consistent cut, and repeats it if the model changed meanwhile; runs it once
 * without a cut. *step (nullable) is set to the cut's step, if it has one. */
typedef gboolean (*MusterSaverWork) (gpointer data, GError **error);
gboolean muster_saver_work_in_consistent_cut (MusterSaver *self, MusterSession *session,
                                              MusterSaverWork work, gpointer data, gint64 *step,
                                              gint64 deadline_us, GCancellable *cancellable,
                                              GError **error);

/* Whether the model is still that of the last save: of use while its cut is kept, since a task may
 * begin one more step before it hears of the cut. TRUE without a cut. */
gboolean muster_saver_check_cut (MusterSaver *self, MusterSession *session, gboolean *is_unchanged,
                                 gint64 deadline_us, GCancellable *cancellable, GError **error);

G_END_DECLS
