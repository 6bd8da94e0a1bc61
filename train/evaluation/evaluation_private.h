// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "train/evaluation/evaluate.h"

G_BEGIN_DECLS

/* The parts of an evaluation: its metrics, the look at the directory, and one run. */

/* --- metrics.c --- */

typedef struct _MusterMetrics MusterMetrics;

/* The metrics of options, found in the graph; names are NAME/METRIC. INVALID_ARGUMENT. */
MusterMetrics *muster_metrics_new (const MusterEvaluateOptions *options, GError **error);
void muster_metrics_free (MusterMetrics *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterMetrics, muster_metrics_free)

/* How the checkpoint is marked with them (NULL-terminated), and the tags of their curves: borrowed.
 */
const char *const *muster_metrics_names (const MusterMetrics *self);
const char *muster_metrics_tag (const MusterMetrics *self, gsize i);
/* What each step of a run fetches and runs, (NULL-terminated) borrowed. */
const char *const *muster_metrics_fetches (const MusterMetrics *self);
const char *const *muster_metrics_targets (const MusterMetrics *self);
/* All that a run needs: (transfer full) */
char **muster_metrics_all (const MusterMetrics *self);

void muster_metrics_begin (MusterMetrics *self);
/* Adds what a step fetched, for a number of rows. */
gboolean muster_metrics_add (MusterMetrics *self, MusterTensor *const *fetched, gint64 n_rows,
                             GError **error);
/* The value of each (transfer full) (element-type gdouble). */
GArray *muster_metrics_end (MusterMetrics *self, MusterSession *session, GCancellable *cancellable,
                            GError **error);

/* --- look.c --- */

typedef struct {
  char *newest;     /* (owned) (nullable) the newest checkpoint that can be evaluated */
  char *next;       /* (owned) (nullable) the newest of those that aren't marked */
  GArray *values;   /* (owned) (nullable) what the newest is marked with: of all metrics */
  char *chief;      /* (owned) (nullable) who saves there */
  char *run;        /* (owned) (nullable) the run that saves there, or that has ended */
  gboolean is_over; /* it has, and every checkpoint of it is listed */
} MusterLook;

void muster_look_clear (MusterLook *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterLook, muster_look_clear)

/* *self must be zero. given_up (element-type utf8) has what muster_look_version () says of those
 * to pass over. */
gboolean muster_look (MusterLook *self, MusterStorage *storage, const char *directory,
                      const char *const *names, GHashTable *given_up, GError **error);
/* The time of a checkpoint's index, which another one of its name doesn't have; 0: it isn't there.
 */
gboolean muster_look_time (MusterStorage *storage, const char *prefix, gint64 *mtime_us,
                           GError **error);
/* Both in a word (transfer full). */
char *muster_look_version (const char *prefix, gint64 mtime_us);

/* --- run.c --- */

typedef struct {
  const MusterTraining *training; /* (not owned) its scaffold is complete */
  gint64 max_batches;
  MusterMetrics *metrics;        /* (not owned) */
  MusterSaver *saver;            /* (owned) */
  MusterSessionManager *manager; /* (owned) */
  gboolean is_ours;              /* what the master has is of a run before, */
  gint64 step;                   /* of this step; -1: of none, or it isn't known */
  /* (nullable) called after each step */
  void (*between) (const char *prefix, gpointer user_data);
  gpointer between_data;
} MusterEvaluationRun;

/* Checks everything before there is a session. *self must be zero. */
gboolean muster_evaluation_run_init (MusterEvaluationRun *self,
                                     const MusterEvaluateOptions *options, MusterMetrics *metrics,
                                     GError **error);
void muster_evaluation_run_clear (MusterEvaluationRun *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterEvaluationRun, muster_evaluation_run_clear)

/* Restores a checkpoint and runs all data through it: sets step, values and n_rows. */
gboolean muster_evaluation_run (MusterEvaluationRun *self, const char *prefix,
                                MusterEvaluated *evaluated, GCancellable *cancellable,
                                GError **error);

G_END_DECLS
