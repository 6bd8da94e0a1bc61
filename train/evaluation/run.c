// SPDX-License-Identifier: Apache-2.0
/* One evaluation: restores a checkpoint into a session of its own, and runs all data through it. */
#include "train/evaluation/evaluation_private.h"

#include "base/error.h"
#include "base/log_private.h"
#include "checkpoint/state/quarantine.h"
#include "graph/graph_nodes_private.h"
#include "train/completion/train_ops_private.h"
#include "train/hooks/hooks_private.h"
#include "train/monitored/monitored_session_private.h"
#include "train/monitored/run_context.h"
#include "train/position/batches_private.h"
#include "train/round_private.h"

#define MANY_BATCHES 10000

/* --- before there is a session --- */

static gboolean
check_feeds (const MusterTraining *training, const MusterMetrics *metrics, GError **error)
{
  g_auto (GStrv) needed = muster_metrics_all (metrics);
  for (gsize i = 0; i < training->n_feeds; i++)
    if (!muster_hook_need_node (training->session.scaffold, training->feeds[i], error))
      return FALSE;
  return muster_train_check_needs (training, "evaluation", (const char *const *)needed,
                                   g_strv_length (needed), error);
}

static MusterSessionManager *
make_manager (const MusterTraining *training, const MusterMetrics *metrics, GError **error)
{
  MusterScaffold *scaffold = training->session.scaffold;
  g_auto (GStrv) will_run = muster_metrics_all (metrics);
  g_autofree const char **will_feed = g_new0 (const char *, training->n_feeds + 1);
  MusterSessionManagerOptions manager =
      muster_monitored_manager_options (scaffold, &training->session.manager);
  for (gsize i = 0; i < training->n_feeds; i++)
    will_feed[i] = training->feeds[i];
  manager.will_run = (const char *const *)will_run;
  manager.will_feed = will_feed;
  return muster_session_manager_new (muster_scaffold_graph (scaffold), &manager, error);
}

gboolean
muster_evaluation_run_init (MusterEvaluationRun *self, const MusterEvaluateOptions *options,
                            MusterMetrics *metrics, GError **error)
{
  const MusterTraining *training = &options->training;
  const MusterMonitoredTrainingOptions *session = &training->session;
  const MusterSaverOptions saver = {.storage = training->saver.storage,
                                    .clock = session->manager.clock};
  self->training = training;
  self->max_batches = options->max_batches;
  self->metrics = metrics;
  if (!check_feeds (training, metrics, error))
    return FALSE;
  self->saver = muster_saver_new (muster_scaffold_meta_graph (session->scaffold), &saver, error);
  self->manager = self->saver != NULL ? make_manager (training, metrics, error) : NULL;
  return self->manager != NULL;
}

void
muster_evaluation_run_clear (MusterEvaluationRun *self)
{
  g_clear_object (&self->saver);
  g_clear_object (&self->manager);
}

/* --- the session --- */

/* A job that has begun there since has another global step. */
static gboolean
is_still_ours (const MusterEvaluationRun *self, MusterSession *session, gint64 deadline_us,
               GCancellable *cancellable)
{
  return self->is_ours &&
         (self->step < 0 || muster_read_global_step (session, self->training->session.scaffold,
                                                     deadline_us, cancellable, NULL) == self->step);
}

/* Called before a master is reset that has values of the model: they may be a job's. */
static gboolean
guard (MusterSession *session, gint64 deadline_us, GCancellable *cancellable, gpointer user_data,
       GError **error)
{
  const MusterEvaluationRun *self = user_data;
  return self->training->session.overwrite ||
         is_still_ours (self, session, deadline_us, cancellable) ||
         muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "the master has values of the model already, which an evaluation would "
                      "overwrite; evaluate on a master of its own, such as local, or use "
                      "--overwrite");
}

static void
note_restoring (guint64 done G_GNUC_UNUSED, guint64 total G_GNUC_UNUSED, gpointer user_data)
{
  MusterEvaluationRun *self = user_data;
  self->is_ours = TRUE;
  self->step = -1;
}

static MusterMonitoredSession *
open_session (MusterEvaluationRun *self, const char *prefix, GCancellable *cancellable,
              GError **error)
{
  const MusterMonitoredTrainingOptions *session = &self->training->session;
  const MusterRestoreOptions restore = {.progress = note_restoring, .user_data = self};
  const MusterPrepareOptions prepare = {.saver = self->saver,
                                        .checkpoint_filename = prefix,
                                        .restore = &restore,
                                        .overwrite = session->overwrite,
                                        .reset_master = TRUE,
                                        .quiesce_func = guard,
                                        .quiesce_func_data = self};
  const MusterMonitoredSessionOptions monitored = {.scaffold = session->scaffold,
                                                   .master = session->master,
                                                   .manager = self->manager,
                                                   .prepare = &prepare,
                                                   .never_recover = TRUE,
                                                   .clock = session->manager.clock};
  return muster_monitored_session_new (&monitored, NULL, cancellable, error);
}

/* --- the data --- */

/* One run of all data. */
typedef struct {
  const MusterEvaluationRun *owner;
  const char *prefix;
  MusterSession *session;
  GCancellable *cancellable; /* (nullable) */
  MusterFeed *feeds;         /* (owned) n_feeds; tensors are owned */
  gboolean ends;             /* the graph's own input does; without one there is one batch */
  gint64 n_rows;
} Data;

static void
drop_feeds (Data *self)
{
  for (gsize i = 0; i < self->owner->training->n_feeds; i++)
    g_clear_pointer (&self->feeds[i].tensor, muster_tensor_unref);
}

static void
data_clear (Data *self)
{
  drop_feeds (self);
  g_free (self->feeds);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Data, data_clear)

/* Sets the feeds of the next step: returns the number of its rows, or 1 if it has none; 0 behind
 * the last. */
static gint64
next_feeds (Data *self)
{
  const MusterTraining *training = self->owner->training;
  g_autofree MusterTensor **batch = g_new0 (MusterTensor *, training->n_feeds + 1);
  gint64 n = 1;
  drop_feeds (self);
  if (muster_training_has_rows (training))
    n = muster_batches_rows (training->batches, self->n_rows, batch);
  else if (self->n_rows > 0 && !self->ends)
    return 0;
  else
    for (gsize i = 0; i < training->n_feeds; i++)
      batch[i] = muster_tensor_ref (muster_batches_array (training->batches, i));
  for (gsize i = 0; i < training->n_feeds; i++)
    self->feeds[i] = (MusterFeed){training->feeds[i], batch[i]};
  return n;
}

/* A placeholder of a fixed number of rows takes no fewer. */
static gboolean
takes_rows (const MusterTraining *training, gint64 n_rows)
{
  MusterGraph *graph = muster_scaffold_graph (training->session.scaffold);
  for (gsize i = 0; i < training->n_feeds; i++) {
    gint64 dims[MUSTER_MAX_DIMS], n = -1;
    const gssize at = muster_graph_find_named (graph, training->feeds[i]);
    (void)muster_batches_fed (training->batches, i, &n);
    if (n >= 0 && at >= 0 &&
        muster_graph_placeholder_dtype (graph, training->feeds[i]) != MUSTER_INVALID &&
        muster_graph_feed_shape (graph, muster_graph_node (graph, (gsize)at), dims,
                                 MUSTER_MAX_DIMS) > 0 &&
        dims[0] >= 0 && dims[0] != n_rows)
      return FALSE;
  }
  return TRUE;
}

static gboolean
run_step (Data *self, gint64 n_rows, GError **error)
{
  MusterMetrics *metrics = self->owner->metrics;
  const char *const *fetches = muster_metrics_fetches (metrics);
  const char *const *targets = muster_metrics_targets (metrics);
  const MusterStep step = {.feeds = self->feeds,
                           .n_feeds = self->owner->training->n_feeds,
                           .fetches = fetches,
                           .n_fetches = g_strv_length ((char **)fetches),
                           .targets = targets,
                           .n_targets = g_strv_length ((char **)targets),
                           .deadline_us = MUSTER_WAIT_FOREVER};
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, step.n_fetches + 1);
  if (!muster_session_run (self->session, &step, fetched, NULL, self->cancellable, error))
    return FALSE;
  const gboolean is_added = muster_metrics_add (metrics, fetched, n_rows, error);
  for (gsize i = 0; i < step.n_fetches; i++)
    muster_tensor_unref (fetched[i]);
  self->n_rows += n_rows;
  return is_added;
}

/* Training graphs often repeat their input for ever. */
static void
warn_of_no_end (const Data *self, gint64 n)
{
  if (self->ends && self->owner->max_batches == 0 && n == MANY_BATCHES)
    muster_log (G_LOG_LEVEL_WARNING, "no-end", "MESSAGE",
                "the graph's own input hasn't ended after %d batches; if it repeats forever, set "
                "--max-batches (max_batches)",
                MANY_BATCHES);
}

static gboolean
run_data (Data *self, GError **error)
{
  const MusterTraining *training = self->owner->training;
  for (gint64 n = 0; self->owner->max_batches == 0 || n < self->owner->max_batches; n++) {
    g_autoptr (GError) failure = NULL;
    const gint64 n_rows = next_feeds (self);
    if (n_rows == 0)
      break;
    warn_of_no_end (self, n);
    if (muster_training_has_rows (training) && n > 0 && !takes_rows (training, n_rows)) {
      muster_log (G_LOG_LEVEL_MESSAGE, "rows-left-out", "MESSAGE",
                  "the last %" G_GINT64_FORMAT " rows are left out: the graph takes full batches",
                  n_rows);
      break;
    }
    if (run_step (self, n_rows, &failure)) {
      if (self->owner->between != NULL)
        self->owner->between (self->prefix, self->owner->between_data);
      continue;
    }
    if (self->ends && n > 0 && muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE))
      break;
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  return TRUE;
}

static gboolean
takes_input (const MusterEvaluationRun *self)
{
  g_auto (GStrv) names = muster_metrics_all (self->metrics);
  g_autoptr (GPtrArray) ops = g_ptr_array_new ();
  for (char **name = names; *name != NULL; name++)
    g_ptr_array_add (ops, *name);
  return muster_train_ops_take_input (muster_scaffold_meta_graph (self->training->session.scaffold),
                                      ops);
}

static gboolean
evaluate (MusterEvaluationRun *self, const char *prefix, MusterSession *session,
          MusterEvaluated *evaluated, GCancellable *cancellable, GError **error)
{
  MusterScaffold *scaffold = self->training->session.scaffold;
  g_auto (Data) data = {.owner = self,
                        .prefix = prefix,
                        .session = session,
                        .cancellable = cancellable,
                        .feeds = g_new0 (MusterFeed, self->training->n_feeds + 1),
                        .ends = self->max_batches > 0 || takes_input (self)};
  evaluated->step =
      muster_scaffold_global_step (scaffold) != NULL
          ? muster_read_global_step (session, scaffold, MUSTER_WAIT_FOREVER, cancellable, error)
          : muster_checkpoint_step (prefix);
  if (evaluated->step < 0 && muster_scaffold_global_step (scaffold) != NULL)
    return FALSE;
  if (muster_scaffold_global_step (scaffold) != NULL)
    self->step = evaluated->step;
  muster_metrics_begin (self->metrics);
  if (!run_data (&data, error))
    return FALSE;
  evaluated->n_rows = data.n_rows;
  evaluated->values = muster_metrics_end (self->metrics, session, cancellable, error);
  return evaluated->values != NULL;
}

gboolean
muster_evaluation_run (MusterEvaluationRun *self, const char *prefix, MusterEvaluated *evaluated,
                       GCancellable *cancellable, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterMonitoredSession) session = open_session (self, prefix, cancellable, error);
  if (session == NULL)
    return FALSE;
  if (evaluate (self, prefix, muster_monitored_session_session (session), evaluated, cancellable,
                &failure))
    return muster_monitored_session_finish (session, NULL, MUSTER_WAIT_FOREVER, error);
  (void)muster_monitored_session_finish (session, failure, MUSTER_WAIT_FOREVER, NULL);
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}
