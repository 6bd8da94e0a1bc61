// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/restore.h"

G_BEGIN_DECLS

/* What a restore that has failed means for others. */
typedef struct {
  gboolean is_masters; /* the checkpoint is whole and fits, and what failed is the master's */
  gboolean is_torn;    /* some variables may have got their values from it */
} MusterRestoreFailure;

/* Restores one checkpoint. */
gboolean muster_saver_restore_one (MusterSaver *self, MusterSession *session, const char *prefix,
                                   const MusterRestoreOptions *options, MusterRestored *restored,
                                   MusterRestoreFailure *meaning, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error);

G_END_DECLS
