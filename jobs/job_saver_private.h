// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/cluster.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterJobSaver saves and restores some of a node's variables, with a saver built for them whose
 * nodes are added to the node's session. One thread. */
typedef struct _MusterJobSaver MusterJobSaver;

/* The tensor of a job's checkpoint that lists its variables. */
#define MUSTER_JOB_LIST "blob_names/list"
/* The tensor that identifies the save; the same on all nodes. */
#define MUSTER_JOB_SAVE "blob_names/save"

/* For these variables (NULL-terminated, may be empty), in the node's current session. */
MusterJobSaver *muster_job_saver_new (MusterClusterNode *node, const char *const *names,
                                      gint64 deadline_us, GCancellable *cancellable,
                                      GError **error);
void muster_job_saver_free (MusterJobSaver *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterJobSaver, muster_job_saver_free)

/* TRUE if it is for these variables in the node's current session. */
gboolean muster_job_saver_is_for (MusterJobSaver *self, MusterClusterNode *node,
                                  const char *const *names);

/* Publishes the checkpoint path, with the list and the mark. Its directory must exist. */
gboolean muster_job_saver_save (MusterJobSaver *self, MusterStorage *storage, const char *path,
                                const char *mark, gint64 deadline_us, GCancellable *cancellable,
                                GError **error);
/* The same in two parts: stage returns once the node's variables may change again, and finish, on
 * any thread, once the checkpoint is durable. A model that can't be saved in the background is
 * saved by stage. Each stage that succeeded needs a finish before the next one. */
gboolean muster_job_saver_stage (MusterJobSaver *self, MusterStorage *storage, const char *path,
                                 const char *mark, gint64 deadline_us, GCancellable *cancellable,
                                 GError **error);
gboolean muster_job_saver_finish (MusterJobSaver *self, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);
gboolean muster_job_saver_load (MusterJobSaver *self, MusterStorage *storage, const char *path,
                                gint64 deadline_us, GCancellable *cancellable, GError **error);

/* The names of the node's global variables that have a value now (transfer full); a partitioned one
 * by its own name, if all its parts have. */
char **muster_job_saver_list_session (MusterClusterNode *node, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);
/* The names that a checkpoint lists (transfer full); *mark (transfer full) identifies its save. */
char **muster_job_saver_list_file (MusterStorage *storage, const char *path, char **mark,
                                   GError **error);

G_END_DECLS
