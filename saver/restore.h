// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/* Functions for use before and after a restore; muster_saver_restore () is in saver/saver.h. */

/**
 * muster_saver_has_whole_checkpoint:
 * @self: a saver
 * @directory: a directory of checkpoints
 * @options: (nullable): as for the restore
 * @found: (out): whether there is one
 * @error: return location for an error
 *
 * Whether a directory has a checkpoint whose data files are all there, without reading them, among
 * those that a restore with these options would try.
 *
 * Returns: `TRUE` if @found was set
 */
gboolean muster_saver_has_whole_checkpoint (MusterSaver *self, const char *directory,
                                            const MusterRestoreOptions *options, gboolean *found,
                                            GError **error);

/**
 * MusterLivingModel:
 * @holder: (nullable): the chief, as it announced itself
 * @durable: (nullable): its last durable checkpoint
 * @durable_step: that checkpoint's step
 * @step: the model's step now
 *
 * A model on a master whose chief is gone.
 */
typedef struct {
  const char *holder;
  const char *durable;
  gint64 durable_step;
  gint64 step;
} MusterLivingModel;

#define MUSTER_TYPE_LIVING_MODEL (muster_living_model_get_type ())
GType muster_living_model_get_type (void);

/**
 * muster_living_model_new:
 * @holder: (nullable): the chief, as it announced itself
 * @durable: (nullable): its last durable checkpoint
 * @durable_step: that checkpoint's step
 * @step: the model's step now
 *
 * A model that owns its texts.
 *
 * Returns: (transfer full): the model
 */
MusterLivingModel *muster_living_model_new (const char *holder, const char *durable,
                                            gint64 durable_step, gint64 step);

/**
 * muster_saver_continue:
 * @self: a saver
 * @directory: the directory of its checkpoints
 * @model: the model on the master
 * @count_deaths: count this run as one that restored the durable checkpoint
 * @may: (out): whether a chief may continue with the model
 * @error: return location for an error
 *
 * Whether a chief may continue with a model instead of restoring a checkpoint of the directory: the
 * model's chief was the last that held it, its checkpoints weren't changed since, and no run has
 * died there right after it began.
 *
 * Returns: `TRUE` if @may was set
 */
gboolean muster_saver_continue (MusterSaver *self, const char *directory,
                                const MusterLivingModel *model, gboolean count_deaths,
                                gboolean *may, GError **error);

/**
 * muster_saver_mark_good:
 * @self: a saver
 * @error: return location for an error
 *
 * Notes that the checkpoint that this run restored is good: it has caused no deaths. With
 * count_deaths, a run that restored a checkpoint and ends without calling this or
 * [method@Saver.clear_crash_loop] counts as a death. Does nothing if there is no such run.
 *
 * Returns: `FALSE` if the record can't be written
 */
gboolean muster_saver_mark_good (MusterSaver *self, GError **error);

/**
 * muster_saver_clear_crash_loop:
 * @self: a saver
 * @error: return location for an error
 *
 * Notes that the run ends for another reason than the checkpoint that it restored, so that it
 * doesn't count as a death. Does nothing if there is no such run.
 *
 * Returns: `FALSE` if the record can't be written
 */
gboolean muster_saver_clear_crash_loop (MusterSaver *self, GError **error);

G_END_DECLS
