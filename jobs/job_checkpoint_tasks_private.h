// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job.h"
#include "jobs/job_saver_private.h"

G_BEGIN_DECLS

/* One node of a job's checkpoints. */
typedef struct {
  char *node;            /* (owned) in the cluster */
  char *name;            /* (owned) in file names */
  char **names;          /* (owned) (nullable) what it saves, once listed */
  gint64 listed_from;    /* the checkpoint that told them, or MUSTER_NO_EPOCH: the session */
  char *mark;            /* (owned) (nullable) of which save that checkpoint is */
  MusterJobSaver *saver; /* (owned) (nullable) for them */
  MusterJobSaver *partial_saver; /* (owned) (nullable) for the last partial load */
  /* The last timed task: */
  MusterJobOutput *span; /* (owned) (nullable) */
  char *path;            /* (owned) (nullable) */
  gint64 epoch;
} MusterJobEntry;

/* What a checkpoint's task does; all of it is the work's own. */
typedef struct {
  GObject *checkpoint;    /* (owned) whose the entry is */
  MusterJobEntry *entry;  /* (not owned) */
  MusterClock *clock;     /* (not owned) the checkpoint's */
  MusterStorage *storage; /* (owned) */
  char *path;             /* (owned) the node's checkpoint */
  gint64 epoch;
  char **names;            /* (owned) (nullable) of a partial load */
  MusterJobOutput *output; /* (not owned) (nullable) its task's */
  char *mark;              /* (owned) (nullable) a save's: the same on all nodes */
  gint64 started_us;
} MusterJobCheckpointWork;

/* The functions of tasks, and a task around one of them. */
gboolean muster_job_checkpoint_work_list (MusterClusterNode *node, gint64 deadline_us,
                                          GCancellable *cancellable, gpointer work, GError **error);
gboolean muster_job_checkpoint_work_save (MusterClusterNode *node, gint64 deadline_us,
                                          GCancellable *cancellable, gpointer work, GError **error);
gboolean muster_job_checkpoint_work_load (MusterClusterNode *node, gint64 deadline_us,
                                          GCancellable *cancellable, gpointer work, GError **error);
gboolean muster_job_checkpoint_work_load_some (MusterClusterNode *node, gint64 deadline_us,
                                               GCancellable *cancellable, gpointer work,
                                               GError **error);
gboolean muster_job_checkpoint_work_exists (MusterClusterNode *node, gint64 deadline_us,
                                            GCancellable *cancellable, gpointer work,
                                            GError **error);

/* A task of that name on node that does it; timed: its span is the last output, and what stats
 * tells of the node. */
MusterJobTask *muster_job_checkpoint_work_make (const MusterJobCheckpointWork *work,
                                                const char *name, const char *node,
                                                MusterJobFunc func, gboolean timed);
/* The same, with an output that func sets. */
MusterJobTask *muster_job_checkpoint_work_make_with_output (MusterJobCheckpointWork work,
                                                            const char *name, const char *node,
                                                            MusterJobFunc func, gboolean timed,
                                                            MusterJobOutput **output);

G_END_DECLS
