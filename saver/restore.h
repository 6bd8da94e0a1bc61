// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/restore_options.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* A restore that differs from the plain one, and what it did. */

/* Clear it. */
typedef struct {
  char *prefix; /* (nullable) NULL: there was nothing to restore */
  guint n_tensors;
  guint64 bytes;
  char **initialised; /* (nullable) variables that the checkpoint lacks */
  char *warning;      /* (nullable) what is unusual about it: lines */
  char *passed_over;  /* (nullable) newer checkpoints that weren't whole, and why: lines */
} MusterRestored;

void muster_restored_clear (MusterRestored *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterRestored, muster_restored_clear)

/* muster_saver_restore () with options (nullable); fills restored (nullable). Everything is read
 * and checked before the first variable changes, also by a master that reads for itself: what it
 * alone finds damaged is DATA_LOSS, too. While it runs, the checkpoint is kept from being removed.
 * INVALID_ARGUMENT for a prefix that is NULL or "". */
gboolean muster_saver_restore_with (MusterSaver *self, MusterSession *session, const char *prefix,
                                    const MusterRestoreOptions *options, MusterRestored *restored,
                                    gint64 deadline_us, GCancellable *cancellable, GError **error);

/* muster_saver_restore_latest () with options (nullable); fills restored (nullable). A checkpoint
 * that a saver at work removes before it is locked doesn't count: the directory is looked at again,
 * until the deadline, and what it names now is taken. */
gboolean muster_saver_restore_latest_with (MusterSaver *self, MusterSession *session,
                                           const char *directory,
                                           const MusterRestoreOptions *options,
                                           MusterRestored *restored, gint64 deadline_us,
                                           GCancellable *cancellable, GError **error);

/* Whether a directory has a checkpoint with all of its data, as far as can be told without reading
 * that, among those that a restore with these options (nullable) would try. */
gboolean muster_saver_has_whole_checkpoint (MusterSaver *self, const char *directory,
                                            const MusterRestoreOptions *options, gboolean *found,
                                            GError **error);

/* A life that began with a checkpoint (count_deaths) and ends without either of these was a death.
 * What failed to be noted is an error; without a life there is nothing to do. */
gboolean muster_saver_mark_good (MusterSaver *self, GError **error); /* it is good: no deaths */
gboolean muster_saver_clear_crash_loop (MusterSaver *self,
                                        GError **error); /* its end says nothing of it */

G_END_DECLS
