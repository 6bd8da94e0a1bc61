// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_mark.h"

G_BEGIN_DECLS

/* What an evaluator notes, each in one change of the side file; errors as for
 * muster_checkpoint_set_metric (). */

/* Retention keeps the checkpoint for so long, in any store. FAILED_PRECONDITION if it is being
 * removed already. */
gboolean muster_checkpoint_hold (MusterStorage *storage, const char *prefix, gint64 for_us,
                                 gint64 deadline_us, GCancellable *cancellable, GError **error);
/* Gives it the values (nullable: none) of names, and ends the hold. */
gboolean muster_checkpoint_set_evaluated (MusterStorage *storage, const char *prefix,
                                          const char *const *names, const GArray *values,
                                          gint64 deadline_us, GCancellable *cancellable,
                                          GError **error);

G_END_DECLS
