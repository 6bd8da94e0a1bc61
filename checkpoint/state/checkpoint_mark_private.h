// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/state/checkpoint_mark.h"

G_BEGIN_DECLS

/* What an evaluator notes, each in one change of the side file; errors as for
 * muster_checkpoint_set_metric (). */

/* Retention keeps the checkpoint for so long, in any store. *hold is the caller's: 0, or the one in
 * whose place this comes. FAILED_PRECONDITION if it is being removed already. */
gboolean muster_checkpoint_hold (MusterStorage *storage, const char *prefix, gint64 for_us,
                                 double *hold, gint64 deadline_us, GCancellable *cancellable,
                                 GError **error);

typedef struct {
  const char *const *names;
  const GArray *values; /* (nullable) (element-type gdouble) one for each of names */
  double hold;          /* the evaluator's, which ends; 0: none */
  gint64 mtime_us;      /* of the index that was evaluated; 0: whichever */
} MusterEvaluationMarks;

/* Gives the checkpoint values, and ends a hold. FAILED_PRECONDITION if another one is there by its
 * name. */
gboolean muster_checkpoint_set_evaluated (MusterStorage *storage, const char *prefix,
                                          const MusterEvaluationMarks *marks, gint64 deadline_us,
                                          GCancellable *cancellable, GError **error);

G_END_DECLS
