// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_group.h"

G_BEGIN_DECLS

/* A step of the job's own. */
typedef struct {
  char *name;        /* (owned) (nullable) */
  char **targets;    /* (owned) (nullable) */
  MusterFeed *feeds; /* (owned) names and tensors too */
  gsize n_feeds;
  guint64 repeat;
  gboolean until_end;
  MusterJobFunc func;
  gpointer user_data;
  GDestroyNotify destroy;
} MusterJobWork;

struct _MusterJobSetup {
  GObject parent;
  MusterJobWork *init; /* (owned) (nullable) */
  MusterJobWork *exit; /* (owned) (nullable) */
};

struct _MusterJobOutput {
  GObject parent;
  char **tensors; /* (owned) (nullable) NULL: a function sets it */
  gsize n;
  GMutex lock;
  GPtrArray *values;      /* (owned) (nullable) guarded by lock */
  MusterSession *session; /* (owned) (nullable) of the last run; guarded by lock */
};

struct _MusterJobTask {
  GObject parent;
  char *name;      /* (owned) (nullable) */
  char *full_name; /* (owned) (nullable) once it is in a group */
  char *node;      /* (owned) */
  guint n_instances;
  MusterJobWork *step;        /* (owned) (nullable) */
  GPtrArray *setups;          /* (owned) (element-type MusterJobSetup) */
  GPtrArray *instance_setups; /* (owned) (element-type MusterJobSetup) */
  GPtrArray *outputs;         /* (owned) (element-type MusterJobOutput) */
  gboolean is_used;
};

/* A setup or a report of a node. */
typedef struct {
  char *node;            /* (owned) */
  MusterJobSetup *setup; /* (owned) (nullable) */
  MusterJobWork *report; /* (owned) (nullable) */
  gint64 interval_us;
} MusterJobBeside;

struct _MusterJobGroup {
  GObject parent;
  GPtrArray *tasks;   /* (owned) (element-type MusterJobTask) */
  GHashTable *names;  /* (owned) a set of its tasks' full names; strings are theirs */
  GPtrArray *beside;  /* (owned) (element-type MusterJobBeside) */
  GPtrArray *parts;   /* (owned) (nullable) (element-type MusterJobPart) once regrouped */
  GHashTable *mapped; /* (owned) (nullable) with these names of nodes */
  char *compiled_for; /* (owned) (nullable) the graphs that its names were looked up in */
  gboolean is_used;
};

MusterJobWork *muster_job_work_new (const MusterJobStep *step);
void muster_job_work_free (gpointer work);

/* What the output's values are from now on; the session is that of its node. */
void muster_job_output_take (MusterJobOutput *self, MusterSession *session, GPtrArray *values);

G_END_DECLS
