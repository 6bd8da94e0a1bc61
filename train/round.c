// SPDX-License-Identifier: Apache-2.0
/* What a round is made of: the model with its positions, the saver, the hooks and the session. */
#include "train/completion/completion.h"
#include "train/completion/sync_replicas_private.h"
#include "train/completion/trainable_private.h"
#include "train/hooks/hook_scalar_private.h"
#include "train/hooks/hooks_private.h"
#include "train/monitored/run_context_private.h"
#include "train/position/position_private.h"
#include "train/preemption/preemption_private.h"
#include "train/round_private.h"
#include "train/train_hook_private.h"
#include "train/training_observer_private.h"

#include "base/error.h"

#define DEFAULT_SLOTS 64

guint
muster_round_n_slots (const MusterTraining *training)
{
  return training->session.own_masters ? MAX (training->session.n_tasks, 1)
                                       : MAX (training->max_tasks, DEFAULT_SLOTS);
}

gboolean
muster_training_has_rows (const MusterTraining *training)
{
  return training->batches != NULL && muster_batches_per_epoch (training->batches) > 0;
}

static gboolean
is_synchronised (const MusterTraining *training)
{
  return muster_graph_has_node (muster_scaffold_graph (training->session.scaffold),
                                MUSTER_SYNC_TOKENS);
}

/* Replicas that wait for one another's gradients can't be held between two steps. */
static gboolean
has_positions (const MusterTraining *training)
{
  return muster_training_has_rows (training) && !training->without_positions &&
         !is_synchronised (training);
}

/* Tasks with masters of their own have a part of the rows each, whoever is present. */
static gboolean
is_dealt (const MusterTraining *training)
{
  return training->is_elastic && !training->session.own_masters;
}

static gboolean
sets_own (const MusterMonitoredTrainingOptions *session)
{
  return session->saving.saver != NULL || session->n_hooks > 0 || session->n_chief_only_hooks > 0 ||
         session->saving.saver_observer != NULL || session->observer != NULL ||
         session->manager.will_run != NULL || session->manager.will_feed != NULL;
}

static gboolean
check (const MusterTraining *training, GError **error)
{
  const char *wrong = NULL;
  if (!muster_trainable_check (muster_scaffold_meta_graph (training->session.scaffold), error))
    return FALSE;
  if (muster_scaffold_global_step (training->session.scaffold) == NULL)
    wrong = "the model has no global step; create it with tf.compat.v1.train.create_global_step ()";
  else if (training->until_step < 0 || training->epochs < 0)
    wrong = "until_step and epochs must be 1 or more, or 0 for the other";
  else if (training->until_step == 0 && training->epochs == 0 &&
           !muster_meta_graph_has_own_input (
               muster_scaffold_meta_graph (training->session.scaffold)))
    wrong = "nothing ends the training; set until_step, the global step to reach, or epochs";
  else if (training->epochs > 0 && !muster_training_has_rows (training))
    wrong = "epochs need batches to feed; set a step to train until instead";
  else if (training->epochs > 0 && training->until_step > 0)
    wrong = "set either a final step or a number of epochs, not both";
  else if (is_dealt (training) && !has_positions (training))
    wrong = "an elastic job needs batches with positions, which its tasks deal among themselves";
  else if (training->is_elastic && training->min_tasks > 0 && !has_positions (training))
    wrong = "min_tasks needs batches with positions, as tasks without them don't wait between "
            "steps; feed batches and leave without_positions unset, or unset min_tasks";
  else if (!has_positions (training) &&
           muster_position_n_tasks (muster_scaffold_meta_graph (training->session.scaffold)) > 0)
    wrong = "the graph has positions, as a training with them wrote it, but this one has none; "
            "feed rows of batches with positions, or use the graph without them";
  else if (sets_own (&training->session))
    wrong = "a training has hooks, observers, a saver, will_run, will_feed and waiting of its own; "
            "don't set those of its session";
  if (wrong != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", wrong);
  return muster_train_check_feeds (training, error);
}

/* Creates the scaffold; its model has positions if batches are fed. */
static gboolean
take_scaffold (MusterRound *self, GError **error)
{
  const MusterTraining *training = &self->training;
  const MusterScaffoldOptions same = {.copy_from = training->session.scaffold};
  if (!has_positions (training)) {
    self->scaffold = muster_scaffold_ref (training->session.scaffold);
    return TRUE;
  }
  MusterMetaGraph *plain = muster_scaffold_meta_graph (training->session.scaffold);
  g_autoptr (MusterMetaGraph) extended =
      is_dealt (training)
          ? muster_position_add_dealt (plain, muster_round_n_slots (training), error)
          : muster_position_add (plain, MAX (training->session.n_tasks, 1), error);
  if (extended != NULL)
    self->scaffold = muster_scaffold_new_with (extended, &same, error);
  return self->scaffold != NULL;
}

/* The chief's saver; its checkpoints are this job's. */
static gboolean
take_saver (MusterRound *self, GError **error)
{
  const MusterTraining *training = &self->training;
  MusterMetaGraph *meta_graph = muster_scaffold_meta_graph (self->scaffold);
  MusterSaverOptions options = training->saver;
  g_autoptr (GError) failure = NULL;
  if (training->session.is_worker || training->session.saving.checkpoint_dir == NULL)
    return TRUE;
  if (options.clock == NULL)
    options.clock = training->session.manager.clock;
  self->saver = muster_saver_new (meta_graph, &options, error);
  if (self->saver == NULL)
    return FALSE;
  /* the restore reports an unreadable file */
  g_autofree char *latest = muster_saver_latest_checkpoint (
      self->saver, training->session.saving.checkpoint_dir, &failure);
  return latest == NULL ||
         muster_position_check (meta_graph, muster_saver_storage (self->saver), latest, error);
}

static gboolean
next_batch (MusterTensor **feeds, gint64 deadline_us G_GNUC_UNUSED,
            GCancellable *cancellable G_GNUC_UNUSED, gpointer user_data,
            GError **error G_GNUC_UNUSED)
{
  muster_batches_next (user_data, feeds);
  return TRUE;
}

static MusterHook *
feeding_hook (const MusterTraining *training)
{
  g_auto (GStrv) names = g_new0 (char *, training->n_feeds + 1);
  for (gsize i = 0; i < training->n_feeds; i++)
    names[i] = g_strdup (training->feeds[i]);
  return muster_feed_func_hook_new ((const char *const *)names, next_batch, training->batches,
                                    NULL);
}

/* The number of batches of all tasks; 0: training doesn't end by epochs. */
static gint64
n_batches (const MusterTraining *training)
{
  gint64 per_epoch = training->epochs > 0 ? muster_batches_per_epoch (training->batches) : 0;
  return per_epoch > 0 && training->epochs > G_MAXINT64 / per_epoch ? G_MAXINT64
                                                                    : training->epochs * per_epoch;
}

static MusterHook *
position_hook (const MusterTraining *training, MusterElastic *elastic, GError **error)
{
  const gboolean is_alone =
      (!training->is_elastic && training->session.n_tasks <= 1) || training->session.own_masters;
  const MusterPositionOptions options = {
      .task = elastic != NULL ? muster_elastic_slot (elastic) : training->task_number,
      .slots = is_dealt (training) ? muster_elastic_slots (elastic) : NULL,
      .settle_us = is_dealt (training) ? training->session.step_timeout_us : 0,
      .name = training->session.manager.task,
      .is_worker = training->session.is_worker,
      .master = is_alone ? NULL : training->session.master, /* a reset could affect other jobs */
      .own_masters = training->session.own_masters,
      .batches = training->batches,
      .feeds = training->feeds,
      .n_feeds = training->n_feeds,
      .n_batches = n_batches (training),
      .clock = training->session.manager.clock};
  MusterPreemption *preemption = training->session.saving.preemption;
  MusterHook *hook = muster_position_hook_new (&options, error);
  if (hook != NULL && preemption != NULL)
    muster_position_hook_set_preempted (hook, muster_preemption_requested (preemption));
  return hook;
}

/* Adds the batches and their end. */
static gboolean
add_input (MusterRound *self, GError **error)
{
  const MusterTraining *training = &self->training;
  gint64 until_step = training->until_step;
  MusterHook *input = NULL;
  if (has_positions (training))
    input = self->position = position_hook (training, self->elastic, error);
  else if (training->batches != NULL)
    input = feeding_hook (training);
  if (input != NULL)
    g_ptr_array_add (self->last, input);
  else if (training->batches != NULL)
    return FALSE;
  if (training->epochs > 0 && has_positions (training))
    muster_training_hook_set_epochs (self->hook, input, n_batches (training));
  else if (training->epochs > 0)
    until_step = n_batches (training);
  if (until_step > 0)
    g_ptr_array_add (self->last, muster_stop_at_step_hook_new (0, until_step, NULL));
  return TRUE;
}

/* Finds a NaN loss before it is saved. */
static gboolean
add_hooks (MusterRound *self, GError **error)
{
  const MusterTraining *training = &self->training;
  GPtrArray *first = training->session.is_worker ? self->last : self->first;
  if (self->elastic != NULL)
    g_ptr_array_add (first, muster_elastic_hook_new (self->elastic));
  if (training->loss != NULL)
    g_ptr_array_add (first, muster_nan_hook_new (training->loss, TRUE));
  if (training->loss != NULL && first == self->first)
    g_ptr_array_add (first, muster_scalar_hook_new (training->loss));
  g_ptr_array_add (first, g_object_ref (self->hook));
  if (!add_input (self, error))
    return FALSE;
  g_ptr_array_add (self->last, muster_training_hook_new_ending (self->hook));
  return TRUE;
}

static gboolean
assemble (MusterRound *self, GError **error)
{
  const MusterTraining *training = &self->training;
  if (!check (training, error) || !take_scaffold (self, error) || !take_saver (self, error))
    return FALSE;
  self->first = g_ptr_array_new_with_free_func (g_object_unref);
  self->last = g_ptr_array_new_with_free_func (g_object_unref);
  self->hook = muster_training_hook_new (training, self->saver, &self->trained);
  return add_hooks (self, error);
}

static void
on_waiting (MusterSessionObserver *observer G_GNUC_UNUSED, const char *message,
            const MusterReadiness *readiness, GPtrArray *reasons, gpointer user_data)
{
  muster_training_observer_waiting (message, readiness, reasons, user_data);
}

static MusterMonitoredSession *
open_session (const MusterRound *self, GCancellable *cancellable, GError **error)
{
  const MusterTraining *training = &self->training;
  const char *const will_run[] = {muster_scaffold_train_op (self->scaffold), training->loss, NULL};
  g_autofree const char **will_feed = g_new0 (const char *, training->n_feeds + 1);
  g_autoptr (MusterSessionObserver) observer = muster_session_observer_new ();
  g_autoptr (MusterSaverObserver) saves = muster_saver_observer_new ();
  muster_training_hook_follow_sessions (self->hook, observer);
  if (training->observer != NULL)
    g_signal_connect_object (observer, "waiting", G_CALLBACK (on_waiting), training->observer, 0);
  muster_training_hook_follow_saves (self->hook, saves);
  for (gsize i = 0; i < training->n_feeds; i++)
    will_feed[i] = training->feeds[i];
  MusterMonitoredTrainingOptions options = training->session;
  options.scaffold = self->scaffold;
  options.saving.saver = self->saver;
  options.manager.will_run = will_run;
  options.manager.will_feed = will_feed;
  options.hooks = (MusterHook *const *)self->last->pdata;
  options.n_hooks = self->last->len;
  options.chief_only_hooks = (MusterHook *const *)self->first->pdata;
  options.n_chief_only_hooks = self->first->len;
  options.n_tasks = training->without_positions || options.own_masters ? 0 : options.n_tasks;
  options.saving.saver_observer = saves;
  options.observer = observer;
  return muster_monitored_training_session_new (&options, NULL, cancellable, error);
}

/* What looks at the store before there is a session, by operations that take no cancellable, ends
 * with a preemption too. */
gboolean
muster_round_open (MusterRound *self, GCancellable *cancellable, GError **error)
{
  MusterPreemption *preemption = self->training.session.saving.preemption;
  if (preemption != NULL)
    g_cancellable_push_current (muster_preemption_cancellable (preemption));
  self->session = assemble (self, error) ? open_session (self, cancellable, error) : NULL;
  if (preemption != NULL)
    g_cancellable_pop_current (muster_preemption_cancellable (preemption));
  return self->session != NULL;
}

void
muster_round_clear (MusterRound *self)
{
  g_clear_object (&self->session);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  g_clear_object (&self->saver);
  g_clear_object (&self->hook);
  g_clear_pointer (&self->first, g_ptr_array_unref);
  g_clear_pointer (&self->last, g_ptr_array_unref);
  muster_trained_clear (&self->trained);
}
