// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* Functions for use before and after a restore; muster_saver_restore () is in saver/saver.h. */

/* Sets *found to TRUE if the directory has a checkpoint whose data files are all there, without
 * reading them, among those that a restore with these options (nullable) would try. */
gboolean muster_saver_has_whole_checkpoint (MusterSaver *self, const char *directory,
                                            const MusterRestoreOptions *options, gboolean *found,
                                            GError **error);

/* A model on a master whose chief is gone. */
typedef struct {
  const char *holder;  /* (nullable) as that chief announced it */
  const char *durable; /* (nullable) its last durable checkpoint, of this step */
  gint64 durable_step;
  gint64 step; /* the model's, now */
} MusterLivingModel;

/* Sets *may to TRUE if a chief may continue with the model instead of restoring a checkpoint of the
 * directory: the model's chief was the last that held it, its checkpoints weren't changed since,
 * and no run has died there right after it began. With count_deaths, this run counts as one that
 * restored the durable checkpoint. */
gboolean muster_saver_continue (MusterSaver *self, const char *directory,
                                const MusterLivingModel *model, gboolean count_deaths,
                                gboolean *may, GError **error);

/* With count_deaths, a run that restored a checkpoint and ends without calling either of these
 * counts as a death. They fail if the record can't be written, and do nothing if there is no such
 * run. */
gboolean muster_saver_mark_good (MusterSaver *self,
                                 GError **error); /* the checkpoint is good: no deaths */
gboolean muster_saver_clear_crash_loop (MusterSaver *self,
                                        GError **error); /* the run ends for another reason */

G_END_DECLS
