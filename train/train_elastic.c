// SPDX-License-Identifier: Apache-2.0
#include "train/train_elastic_private.h"

#include "base/error.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/stores/default_storage.h"
#include "train/preemption/preemption_private.h"
#include "train/train_round_private.h"

#define DEFAULT_WAIT_US (7200 * MUSTER_SECOND)
/* Longer than a process that runs holds the directory's lock. */
#define LOCK_US (200 * MUSTER_MILLISECOND)

static gboolean
check (const MusterTraining *training, GError **error)
{
  const char *wrong = NULL;
  if (training->model == NULL)
    wrong = "an elastic job needs the model's name; set 'model' in the training";
  else if (training->max_tasks > 0 && training->min_tasks > training->max_tasks)
    wrong =
        "min_tasks is above max_tasks; set it to the number of tasks that the job needs to start";
  else if (training->min_tasks > muster_train_n_slots (training))
    wrong = "min_tasks is above 64; set max_tasks, too";
  else if (training->overwrite)
    wrong = "overwrite can't be combined with an elastic job, whose tasks may start at any time; "
            "overwrite the model with `muster prepare --overwrite` before";
  return wrong == NULL || muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", wrong);
}

/* A chief that sleeps may hold the directory's lock, and with it whatever the next one begins with.
 * Any other trouble is reported by the round itself. */
static gboolean
may_lead (gpointer data, GError **error)
{
  const MusterTraining *training = data;
  MusterStorage *storage = training->saver != NULL ? training->saver->storage : NULL;
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  GError *failure = NULL;
  if (training->checkpoint_dir == NULL)
    return TRUE;
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      storage != NULL ? storage : muster_default_storage (), training->checkpoint_dir,
      muster_deadline_after (now_us, LOCK_US), NULL, NULL, &failure);
  if (lock != NULL || !muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED)) {
    g_clear_error (&failure);
    return TRUE;
  }
  g_propagate_prefixed_error (error, failure, "no chief, so no checkpoints are written: ");
  return FALSE;
}

static MusterElastic *
make_elastic (const MusterTraining *training)
{
  const MusterTrainingListener *listener = training->listener;
  const MusterElasticOptions options = {
      .master = training->master,
      .model = training->model,
      .task = training->task,
      .n_slots = muster_train_n_slots (training),
      .min_tasks = training->min_tasks,
      .max_tasks = training->max_tasks,
      .timeout_us = training->timeout_us > 0 ? training->timeout_us : DEFAULT_WAIT_US,
      .waiting = listener != NULL ? listener->waiting : NULL,
      .waiting_data = listener != NULL ? listener->waiting_data : NULL,
      .may_lead = may_lead,
      .user_data = (gpointer)training,
  };
  return muster_elastic_new (&options);
}

/* The rounds of a task. */
typedef struct {
  const MusterTraining *training;
  MusterElastic *elastic;
  MusterTrained *trained;
  GCancellable *cancellable; /* (nullable) */
  guint n_cut;
  gboolean was_chief; /* in the round before */
  gint slot_before;   /* likewise; -1: there was none */
} Rounds;

/* A round for another reason isn't news. */
static void
tell_role (Rounds *self, gboolean is_chief)
{
  const MusterTrainingListener *listener = self->training->listener;
  const guint slot = muster_elastic_slot (self->elastic);
  const gboolean is_news = self->was_chief != is_chief || self->slot_before != (gint)slot;
  self->was_chief = is_chief;
  self->slot_before = (gint)slot;
  if (is_news && listener != NULL && listener->role != NULL)
    listener->role (is_chief, slot, listener->user_data);
}

static gboolean
run_round (Rounds *self, MusterElasticRole role, MusterRoundEnd *end, GError **error)
{
  MusterTraining with = *self->training;
  MusterRestoreOptions restore = with.restore != NULL ? *with.restore : (MusterRestoreOptions){0};
  with.is_worker = role == MUSTER_ELASTIC_WORKER;
  with.timeout_us = muster_elastic_timeout (self->elastic, with.timeout_us);
  /* The others train the model that a takeover continues: a chief that dies soon says nothing of
   * it. */
  restore.count_deaths = restore.count_deaths && !muster_elastic_is_takeover (self->elastic);
  with.restore = &restore;
  tell_role (self, !with.is_worker);
  return muster_train_round (&with, self->elastic, self->trained, end,
                             muster_elastic_cancellable (self->elastic), error);
}

/* FALSE: the training has ended, well unless there is an error. */
static gboolean
train_round (Rounds *self, MusterElasticRole role, GError **error)
{
  MusterTrained *trained = self->trained;
  MusterRoundEnd end = {0};
  GError *failure = NULL;
  (void)run_round (self, role, &end, &failure);
  if (failure != NULL && trained->report.outcome == MUSTER_OUTCOME_OVER) {
    trained->step = MAX (trained->step, trained->report.final_step);
    trained->is_reached = TRUE;
    g_clear_error (&failure);
  }
  gboolean goes_on =
      muster_elastic_goes_on (self->elastic, end.is_replaced, failure) && !trained->is_reached;
  const gboolean is_stopped = muster_train_is_stopped (self->training, self->cancellable);
  if (failure != NULL &&
      muster_train_goes_on (self->training, &end, &self->n_cut, failure, self->cancellable)) {
    trained->is_reached = FALSE;
    goes_on = TRUE;
  }
  if (goes_on && !is_stopped) {
    g_clear_error (&failure);
    return TRUE;
  }
  if (failure != NULL)
    g_propagate_error (error, failure);
  else if (!trained->is_reached && !is_stopped)
    (void)muster_elastic_check_pause (self->elastic, error);
  return FALSE;
}

/* Why there was no round. */
static void
note_reasons (Rounds *self)
{
  MusterSessionReport *report = &self->trained->report;
  g_clear_pointer (&report->reasons, g_ptr_array_unref);
  report->reasons = muster_elastic_reasons (self->elastic);
}

gboolean
muster_train_elastic (const MusterTraining *training, MusterTrained *trained,
                      GCancellable *cancellable, GError **error)
{
  if (!check (training, error))
    return FALSE;
  g_autoptr (MusterElastic) elastic = make_elastic (training);
  const gint64 timeout_us = training->timeout_us > 0 ? training->timeout_us : DEFAULT_WAIT_US;
  Rounds rounds = {.training = training,
                   .elastic = elastic,
                   .trained = trained,
                   .cancellable = cancellable,
                   .slot_before = -1};
  GError *failure = NULL;

  for (;;) {
    MusterElasticRole role;
    if (!muster_elastic_next (elastic, timeout_us, cancellable, &role, &failure)) {
      note_reasons (&rounds);
      break;
    }
    if (role == MUSTER_ELASTIC_OVER) {
      trained->is_reached = TRUE;
      return TRUE;
    }
    if (!train_round (&rounds, role, &failure))
      break;
    if (training->preemption != NULL)
      muster_preemption_begin_again (training->preemption);
  }
  if (failure != NULL)
    g_propagate_error (error, failure);
  return failure == NULL;
}
