// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job.h"
#include "jobs/job_saver_private.h"

G_BEGIN_DECLS

/* A node of a job's checkpoints. */
typedef struct {
  char *node;         /* (owned) in the cluster */
  char *name;         /* (owned) in file names */
  char **names;       /* (owned) (nullable) the variables it saves, once listed */
  gint64 listed_from; /* the epoch whose checkpoint listed them, or MUSTER_NO_EPOCH: the session */
  char *mark;         /* (owned) (nullable) identifies that checkpoint's save */
  MusterJobSaver *saver;         /* (owned) (nullable) for those variables */
  MusterJobSaver *partial_saver; /* (owned) (nullable) for the last partial load */
  /* The last timed task: */
  MusterJobOutput *span; /* (owned) (nullable) */
  char *path;            /* (owned) (nullable) */
  gint64 epoch;
  gint64 staged_from_us; /* when the staging of the last save began */
} MusterJobEntry;

/* The arguments of a checkpoint's task, which owns them. */
typedef struct {
  GObject *checkpoint;    /* (owned) the entry's checkpoint object */
  MusterJobEntry *entry;  /* (not owned) */
  MusterClock *clock;     /* (not owned) the checkpoint's */
  MusterStorage *storage; /* (owned) */
  char *path;             /* (owned) the node's checkpoint */
  gint64 epoch;
  char **names;            /* (owned) (nullable) for a partial load */
  MusterJobOutput *output; /* (not owned) (nullable) the task's */
  char *mark;              /* (owned) (nullable) identifies a save; the same on all nodes */
  gint64 started_us;
} MusterJobCheckpointWork;

/* The tasks' functions, and creating a task with one of them. */
gboolean muster_job_checkpoint_work_list (MusterClusterNode *node, gint64 deadline_us,
                                          GCancellable *cancellable, gpointer work, GError **error);
gboolean muster_job_checkpoint_work_save (MusterClusterNode *node, gint64 deadline_us,
                                          GCancellable *cancellable, gpointer work, GError **error);
gboolean muster_job_checkpoint_work_stage (MusterClusterNode *node, gint64 deadline_us,
                                           GCancellable *cancellable, gpointer work,
                                           GError **error);
gboolean muster_job_checkpoint_work_load (MusterClusterNode *node, gint64 deadline_us,
                                          GCancellable *cancellable, gpointer work, GError **error);
gboolean muster_job_checkpoint_work_load_some (MusterClusterNode *node, gint64 deadline_us,
                                               GCancellable *cancellable, gpointer work,
                                               GError **error);
gboolean muster_job_checkpoint_work_exists (MusterClusterNode *node, gint64 deadline_us,
                                            GCancellable *cancellable, gpointer work,
                                            GError **error);

/* A task with that name on node. If timed, its duration is its last output, and reported in the
 * node's stats. */
MusterJobTask *muster_job_checkpoint_work_make (const MusterJobCheckpointWork *work,
                                                const char *name, const char *node,
                                                MusterJobFunc func, gboolean timed);
/* The same, with an output that func sets. */
MusterJobTask *muster_job_checkpoint_work_make_with_output (MusterJobCheckpointWork work,
                                                            const char *name, const char *node,
                                                            MusterJobFunc func, gboolean timed,
                                                            MusterJobOutput **output);

G_END_DECLS
