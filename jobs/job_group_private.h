// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "jobs/job_group.h"

G_BEGIN_DECLS

struct _MusterJobSetup {
  GObject parent;
  MusterJobStep *init; /* (owned) (nullable) */
  MusterJobStep *exit; /* (owned) (nullable) */
};

struct _MusterJobOutput {
  GObject parent;
  char **tensors; /* (owned) (nullable) NULL: set by a function */
  gsize n;
  GMutex lock;
  GPtrArray *values;      /* (owned) (nullable) guarded by lock */
  MusterSession *session; /* (owned) (nullable) of the last run; guarded by lock */
};

struct _MusterJobTask {
  GObject parent;
  char *name;      /* (owned) (nullable) */
  char *full_name; /* (owned) (nullable) set when it is added to a group */
  char *node;      /* (owned) */
  guint n_instances;
  MusterJobStep *step;        /* (owned) (nullable) */
  GPtrArray *setups;          /* (owned) (element-type MusterJobSetup) */
  GPtrArray *instance_setups; /* (owned) (element-type MusterJobSetup) */
  GPtrArray *outputs;         /* (owned) (element-type MusterJobOutput) */
  gboolean is_used;
};

/* A node's setup or report. */
typedef struct {
  char *node;            /* (owned) */
  MusterJobSetup *setup; /* (owned) (nullable) */
  MusterJobStep *report; /* (owned) (nullable) */
  gint64 interval_us;
} MusterJobBeside;

struct _MusterJobGroup {
  GObject parent;
  GPtrArray *tasks;   /* (owned) (element-type MusterJobTask) */
  GHashTable *names;  /* (owned) a set of the tasks' full names; the tasks own the strings */
  GPtrArray *beside;  /* (owned) (element-type MusterJobBeside) */
  GPtrArray *parts;   /* (owned) (nullable) (element-type MusterJobPart) by node */
  GHashTable *mapped; /* (owned) (nullable) the map of node names used for parts */
  char *compiled_for; /* (owned) (nullable) the graphs that it was compiled for */
  gboolean is_used;
};

/* Sets the output's values; session is its node's. */
void muster_job_output_take (MusterJobOutput *self, MusterSession *session, GPtrArray *values);

G_END_DECLS
