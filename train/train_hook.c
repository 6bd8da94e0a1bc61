// SPDX-License-Identifier: Apache-2.0
/* The hook of muster_train (): counts and reports steps, announces progress, watches the loss,
 * notes that a restored checkpoint is good, and announces the end of the job. */
#include "train/hooks/saver_observer_private.h"
#include "train/train_hook_private.h"
#include "train/training_observer_private.h"

#include "base/error.h"
#include "base/log_private.h"
#include "base/safe_text_private.h"
#include "saver/restore.h"
#include "saver/tiered.h"
#include "train/monitored/run_context_private.h"
#include "train/position/position.h"
#include "train/preemption/preemption.h"

#include <math.h>
#include <string.h>

/* The interval and time limit of progress announcements. */
#define ANNOUNCE_EVERY_US MUSTER_SECOND
#define ANNOUNCE_US       (5 * MUSTER_SECOND)
/* The end of the job must be announced, as tasks that start late would wait for it. Of this a
 * coordinator gets three quarters, and the chief's own master the rest. */
#define ANNOUNCE_OVER_US (40 * MUSTER_SECOND)
#define ANNOUNCE_LOSS_US (2 * MUSTER_SECOND)
#define LONGEST_LOSS     200 /* bytes of why */
/* A run that trains this long shows that the checkpoint it restored is good. */
#define GOOD_AFTER_US   (10 * MUSTER_SECOND)
#define REPORT_EVERY_US (MUSTER_SECOND / 20)
#define RATE_WINDOW_US  MUSTER_SECOND /* the rate is measured over the last one or two of these */
#define READ_STEP_US    (30 * MUSTER_SECOND)

#define MUSTER_TYPE_TRAINING_HOOK (muster_training_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterTrainingHook, muster_training_hook, MUSTER, TRAINING_HOOK, MusterHook)

typedef struct {
  gint64 at_us;
  gint64 step;
} Mark;

struct _MusterTrainingHook {
  MusterHook parent;
  const MusterTraining *training; /* (not owned) */
  MusterTrained *trained;         /* (not owned) */
  MusterSaver *saver;             /* (owned) (nullable) */
  MusterClock *clock;             /* (owned) */
  MusterGoodputMeter *meter;      /* (owned) from before begin on */
  MusterLease *lease;             /* (owned) (nullable) the session's */
  char *lost;                     /* (owned) (nullable) why there is no session, as announced */
  gboolean is_lost;               /* there is no session; lease is the last one's */
  MusterHook *position;           /* (owned) (nullable) trains so many batches instead of steps */
  gint64 n_batches;
  MusterTrainingState state;
  char *paused;             /* (owned) (nullable) that of state */
  gboolean is_held;         /* by a hook, which is why it is paused */
  MusterTimeUse use_before; /* of a pause */
  Mark older, newer;        /* the marks that the rate is computed from */
  gint64 report_due_us;
  gint64 announce_due_us;
  gint64 good_at_us;   /* when the restored checkpoint counts as good */
  gint64 settled_step; /* the step of the last save, including skipped ones */
  guint loss_at;
  gboolean saves_loss; /* it is the saver's metric */
  gboolean in_step;    /* a failure now is caused by the step */
  gboolean is_done;
  gboolean input_ended;
};

G_DEFINE_FINAL_TYPE (MusterTrainingHook, muster_training_hook, MUSTER_TYPE_HOOK)

static gint64
now_us (MusterTrainingHook *self)
{
  return muster_clock_now_us (self->clock);
}

static gint64
in_us (MusterTrainingHook *self, gint64 timeout_us)
{
  return muster_deadline_after (now_us (self), timeout_us);
}

/* If the record can't be written, that is tried again; at worst a good checkpoint gets one death
 * too many. */
static void
mark_checkpoint_good (MusterTrainingHook *self)
{
  self->good_at_us = G_MAXINT64;
  if (self->saver != NULL)
    (void)muster_saver_mark_good (self->saver, NULL);
}

/* --- announcements --- */

static gboolean
announce (MusterTrainingHook *self, MusterChiefPhase phase, gint64 deadline_us,
          GCancellable *cancellable, GError **error)
{
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  g_auto (MusterSaveStatus) saves = MUSTER_SAVE_STATUS_INIT;
  MusterGoodput goodput = MUSTER_GOODPUT_INIT;
  muster_goodput_meter_read (self->meter, &goodput);
  if (phase == MUSTER_CHIEF_OVER)
    goodput.end = MUSTER_RUN_FINISHED;
  announcement.goodput = &goodput;
  announcement.phase = phase;
  announcement.step = self->state.step;
  if (self->saver != NULL) {
    muster_saver_status (self->saver, &saves);
    announcement.saves = &saves;
  }
  return muster_lease_announce (self->lease, &announcement, deadline_us, cancellable, error);
}

/* TensorFlow's errors of several tasks begin with a line of "=", and go on with what is for its own
 * people. (transfer full) */
static char *
describe_loss (const GError *why)
{
  const char *begin = why->message + strspn (why->message, "= \n");
  const char *end = strstr (begin, "\nAdditional GRPC error");
  return muster_safe_text (begin, end != NULL ? end - begin : -1, LONGEST_LOSS);
}

/* On a cluster the job's coordinator, or the gateway, may outlast what the session was lost with.
 */
static void
announce_loss (MusterTrainingHook *self, const GError *why)
{
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  g_autofree char *text = describe_loss (why);
  if (self->lease == NULL || !self->training->session.own_masters ||
      g_strcmp0 (text, self->lost) == 0)
    return;
  g_free (self->lost);
  self->lost = g_steal_pointer (&text);
  announcement.phase = MUSTER_CHIEF_TRAINING;
  announcement.detail = self->lost;
  (void)muster_lease_announce (self->lease, &announcement, in_us (self, ANNOUNCE_LOSS_US), NULL,
                               NULL);
}

/* Announces the progress if due. Returns FALSE only if the lease is lost; an announcement that
 * doesn't reach the master is repeated the next time. */
static gboolean
announce_progress (MusterTrainingHook *self, MusterRunContext *context, GError **error)
{
  gint64 deadline_us = MIN (in_us (self, ANNOUNCE_US), muster_run_context_deadline_us (context));
  g_autoptr (GError) failure = NULL;
  if (self->lease == NULL)
    return TRUE;
  if (!muster_lease_check (self->lease, error))
    return FALSE;
  gint64 at_us = now_us (self);
  if (at_us < self->announce_due_us)
    return TRUE;
  self->announce_due_us = at_us + ANNOUNCE_EVERY_US;
  if (announce (self, MUSTER_CHIEF_TRAINING, deadline_us, muster_run_context_cancellable (context),
                &failure) ||
      !muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* --- progress --- */

static void
restart_rate (MusterTrainingHook *self)
{
  self->older = self->newer = (Mark){now_us (self), self->state.step};
  self->state.steps_per_second = 0;
  self->state.left_us = -1;
}

static void
take_rate (MusterTrainingHook *self, gint64 at_us)
{
  gint64 step = self->state.step;
  if (at_us - self->newer.at_us >= RATE_WINDOW_US) {
    self->older = self->newer;
    self->newer = (Mark){at_us, step};
  }
  gint64 took_us = at_us - self->older.at_us;
  if (took_us <= 0 || step <= self->older.step)
    return;
  self->state.steps_per_second =
      (double)(step - self->older.step) * MUSTER_SECOND / (double)took_us;
  double left = (double)MAX (self->state.until_step - step, 0) / self->state.steps_per_second;
  self->state.left_us = left < 1e9 ? (gint64)(left * MUSTER_SECOND) : -1;
}

static double
number_of (const MusterTensor *tensor)
{
  double value;
  return muster_tensor_get_double (tensor, &value, NULL) ? value : NAN;
}

static void
take_awaited (MusterTrainingHook *self, gint64 at_us)
{
  MusterAwaited awaited = {0};
  if (self->position != NULL && muster_position_hook_awaits (self->position, &awaited)) {
    self->state.awaits = awaited.task;
    self->state.awaits_us = MAX (at_us - awaited.since_us, 0);
  } else {
    self->state.awaits = NULL;
    self->state.awaits_us = 0;
  }
}

static gboolean
report_progress (MusterTrainingHook *self, gint64 at_us)
{
  g_auto (MusterSaveStatus) saves = MUSTER_SAVE_STATUS_INIT;
  self->report_due_us = at_us + REPORT_EVERY_US;
  if (!muster_training_observer_has_listener (self->training->observer))
    return TRUE;
  take_rate (self, at_us);
  take_awaited (self, at_us);
  MusterTrainingState state = self->state;
  if (self->saver != NULL) {
    muster_saver_status (self->saver, &saves);
    state.saves = &saves;
  }
  muster_goodput_meter_read (self->meter, &state.goodput);
  return !muster_training_observer_progress (self->training->observer, &state);
}

/* --- the hook --- */

static gint64
read_step (MusterTrainingHook *self, MusterSession *session, gint64 deadline_us,
           GCancellable *cancellable, GError **error)
{
  return muster_read_global_step (session, self->training->session.scaffold,
                                  MIN (in_us (self, READ_STEP_US), deadline_us), cancellable,
                                  error);
}

/* Fences out earlier chiefs of the directory now, not only at the first save. */
static gboolean
claim_directory (MusterTrainingHook *self, gint64 deadline_us, GCancellable *cancellable,
                 GError **error)
{
  if (self->saver == NULL || self->lease == NULL)
    return TRUE;
  muster_saver_set_lease (self->saver, self->lease);
  return muster_saver_claim_directory (self->saver, self->training->session.saving.checkpoint_dir,
                                       deadline_us, cancellable, error);
}

static void
training_measure (MusterHook *hook, MusterGoodputMeter *meter)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  muster_goodput_meter_unref (self->meter);
  self->meter = muster_goodput_meter_ref (meter);
}

static gboolean
is_durable (MusterTrainingHook *self, guint tier)
{
  return self->saver == NULL || tier == muster_saver_n_fast_tiers (self->saver);
}

static void
note_restored (MusterTrainingHook *self, const char *prefix, gint64 step)
{
  self->settled_step = step;
  if (self->saver == NULL || is_durable (self, muster_saver_tier_of (self->saver, prefix)))
    self->state.durable_step = step;
}

/* The chief before may have saved this very step; no further one is made of it. */
static void
note_continued (MusterTrainingHook *self, gint64 step)
{
  g_autofree char *latest =
      self->saver != NULL ? muster_saver_latest_checkpoint (
                                self->saver, self->training->session.saving.checkpoint_dir, NULL)
                          : NULL;

  if (latest != NULL && muster_checkpoint_step (latest) == step)
    note_restored (self, latest, step);
}

static gboolean
training_after_create (MusterHook *hook, MusterSession *session,
                       MusterCoordinator *coordinator G_GNUC_UNUSED, gint64 deadline_us,
                       GCancellable *cancellable, GError **error)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  g_set_object (&self->lease, muster_session_manager_lease (session));
  g_clear_pointer (&self->lost, g_free);
  self->is_lost = FALSE;
  gint64 step = read_step (self, session, deadline_us, cancellable, error);
  if (step < 0 || !claim_directory (self, deadline_us, cancellable, error))
    return FALSE;
  self->state.step = self->trained->step = step;
  self->is_done = self->position == NULL && step >= self->state.until_step;
  self->good_at_us = in_us (self, GOOD_AFTER_US);
  self->announce_due_us = 0;
  self->report_due_us = 0; /* the first step shows that the training goes on */
  restart_rate (self);
  if (self->trained->report.restored_from != NULL)
    note_restored (self, self->trained->report.restored_from, step);
  else if (self->trained->report.continued)
    note_continued (self, step);
  muster_training_observer_ready (self->training->observer, &self->trained->report, step);
  return TRUE;
}

/* A hook after this one, or before it in the next run, lets no step begin for a while. */
static void
on_hold (const char *why, gpointer user_data)
{
  MusterTrainingHook *self = user_data;
  self->is_held = TRUE;
  muster_training_hook_set_paused (user_data, why);
  (void)report_progress (self, now_us (self));
}

static gboolean
training_before_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  muster_run_context_set_hold_func (context, on_hold, self);
  if (self->is_held)
    muster_training_hook_set_paused (hook, NULL);
  self->is_held = FALSE;
  if (!announce_progress (self, context, error))
    return FALSE;
  if (self->training->loss != NULL)
    self->loss_at = muster_run_context_fetch (context, self->training->loss);
  self->in_step = TRUE;
  return TRUE;
}

/* The step is read concurrently with the update, before or after it, and another task may have
 * stepped too: it is a count, not an identifier. */
static gboolean
training_after_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  gint64 at_us = now_us (self);
  self->in_step = FALSE;
  self->state.step = self->trained->step = muster_run_context_global_step (context);
  if (at_us >= self->good_at_us)
    mark_checkpoint_good (self);
  if (self->training->loss != NULL)
    self->state.loss = number_of (muster_run_context_value (context, self->loss_at));
  if (self->saves_loss)
    muster_saver_set_metric (self->saver, self->state.loss);
  if (at_us < self->report_due_us)
    return TRUE;
  if (!report_progress (self, at_us))
    muster_run_context_request_stop (context);
  return TRUE;
}

/* Returns FALSE if the last state couldn't be saved: then the job isn't over. Another task may have
 * trained beyond the last step since that was saved. */
static gboolean
is_reached (MusterTrainingHook *self)
{
  const gboolean has_last = self->position == NULL && !self->input_ended;
  const gint64 last = has_last ? MIN (self->state.step, self->state.until_step) : self->state.step;
  if (self->saver != NULL && self->settled_step < last)
    return FALSE;
  return self->input_ended ||
         (self->position != NULL ? muster_position_hook_is_over (self->position)
                                 : self->state.step >= self->state.until_step);
}

/* Others would take an end without a word for a crash. The account of the job's time is in the last
 * save, which knows that the run was stopped. */
static void
announce_end (MusterTrainingHook *self, gint64 deadline_us, GCancellable *cancellable)
{
  static char preempted[] = "preempted", finished[] = "finished";
  MusterPreemption *preemption = self->training->session.saving.preemption;
  MusterAnnouncement announcement = MUSTER_ANNOUNCEMENT_INIT;
  if (self->trained->is_reached)
    announcement.ended = finished;
  else if (preemption != NULL && muster_preemption_is_requested (preemption))
    announcement.ended = preempted;
  if (self->lease == NULL || announcement.ended == NULL)
    return;
  (void)muster_lease_announce (self->lease, &announcement,
                               MIN (in_us (self, ANNOUNCE_US), deadline_us), cancellable, NULL);
}

/* Those who see only the directory wait on if it can't be noted there. */
static void
note_end (MusterTrainingHook *self, gint64 deadline_us, GCancellable *cancellable)
{
  const char *directory = self->training->session.saving.checkpoint_dir;
  g_autoptr (GError) failure = NULL;
  if (self->saver == NULL || directory == NULL ||
      muster_saver_end_run (self->saver, directory, self->state.step,
                            MIN (in_us (self, ANNOUNCE_OVER_US), deadline_us), cancellable,
                            &failure))
    return;
  muster_log (G_LOG_LEVEL_WARNING, "end-not-noted", "MESSAGE",
              "can't note in '%s' that the job is over: %s", directory, failure->message);
}

static gboolean
end_job (MusterTrainingHook *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (!self->training->ends_job || !self->trained->is_reached) {
    announce_end (self, deadline_us, cancellable);
    return TRUE;
  }
  note_end (self, deadline_us, cancellable);
  if (self->lease == NULL ||
      announce (self, MUSTER_CHIEF_OVER, MIN (in_us (self, ANNOUNCE_OVER_US), deadline_us),
                cancellable, error))
    return TRUE;
  g_prefix_error (error, "announcing that the job is over: ");
  return FALSE;
}

static gboolean
finish (MusterTrainingHook *self, MusterSession *session, gint64 deadline_us,
        GCancellable *cancellable, GError **error)
{
  gint64 step = read_step (self, session, deadline_us, cancellable, error);
  if (step < 0)
    return FALSE;
  self->state.step = self->trained->step = step;
  mark_checkpoint_good (self);
  (void)report_progress (self, now_us (self));
  self->trained->is_reached = is_reached (self);
  return end_job (self, deadline_us, cancellable, error);
}

/* A failed save or a lost master isn't the checkpoint's fault. */
static gboolean
is_from_outside (MusterTrainingHook *self, const GError *failure)
{
  return g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
         muster_error_is (failure, MUSTER_ERROR_CANCELLED) ||
         muster_failure_of (failure) == MUSTER_FAILURE_UNREACHABLE ||
         muster_error_is (failure, MUSTER_ERROR_ABORTED) ||
         muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) ||
         (self->lease != NULL && !muster_lease_check (self->lease, NULL));
}

static void
training_on_error (MusterHook *hook, const GError *failure)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  if (self->saver != NULL && (!self->in_step || is_from_outside (self, failure)))
    (void)muster_saver_clear_crash_loop (self->saver, NULL);
}

static void
training_finalize (GObject *object)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (object);
  g_clear_object (&self->saver);
  g_clear_object (&self->lease);
  g_clear_object (&self->position);
  g_clear_pointer (&self->meter, muster_goodput_meter_unref);
  g_clear_object (&self->clock);
  g_free (self->paused);
  g_free (self->lost);
  G_OBJECT_CLASS (muster_training_hook_parent_class)->finalize (object);
}

static void
muster_training_hook_class_init (MusterTrainingHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = training_finalize;
  MUSTER_HOOK_CLASS (klass)->measure = training_measure;
  MUSTER_HOOK_CLASS (klass)->after_create_session = training_after_create;
  MUSTER_HOOK_CLASS (klass)->before_run = training_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = training_after_run;
  MUSTER_HOOK_CLASS (klass)->on_error = training_on_error;
}

static void
muster_training_hook_init (MusterTrainingHook *self)
{
  self->state = (MusterTrainingState){
      .step = -1, .loss = NAN, .left_us = -1, .durable_step = -1, .goodput = MUSTER_GOODPUT_INIT};
  self->settled_step = -1;
}

MusterHook *
muster_training_hook_new (const MusterTraining *training, MusterSaver *saver,
                          MusterTrained *trained)
{
  MusterTrainingHook *self = g_object_new (MUSTER_TYPE_TRAINING_HOOK, NULL);
  self->training = training;
  self->trained = trained;
  self->saver = saver != NULL ? g_object_ref (saver) : NULL;
  /* The hook that saves comes after this one: a tensor of that name takes precedence. */
  self->saves_loss = saver != NULL && training->loss != NULL &&
                     g_strcmp0 (muster_saver_metric (saver), "loss") == 0;
  self->clock = g_object_ref (training->session.manager.clock ? training->session.manager.clock
                                                              : muster_system_clock ());
  self->state.until_step = training->until_step > 0 ? training->until_step
                           : training->epochs > 0
                               ? training->epochs * muster_batches_per_epoch (training->batches)
                               : G_MAXINT64;
  return MUSTER_HOOK (self);
}

void
muster_training_hook_set_epochs (MusterHook *hook, MusterHook *position, gint64 n_batches)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  g_set_object (&self->position, position);
  self->n_batches = n_batches;
  self->state.until_step = n_batches;
}

void
muster_training_hook_set_input_ended (MusterHook *hook)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  self->input_ended = self->position == NULL;
}

/* --- a pause --- */

void
muster_training_hook_set_paused (MusterHook *hook, const char *why)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  if (g_strcmp0 (why, self->paused) == 0)
    return;
  g_free (self->paused);
  self->state.paused = self->paused = g_strdup (why);
  self->report_due_us = 0;
}

void
muster_training_hook_begin_pause (MusterHook *hook)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  self->use_before = muster_goodput_meter_enter (self->meter, MUSTER_TIME_PAUSED);
}

void
muster_training_hook_end_pause (MusterHook *hook)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (hook);
  (void)muster_goodput_meter_enter (self->meter, self->use_before);
}

/* --- the end --- */

#define MUSTER_TYPE_TRAINING_ENDING_HOOK (muster_training_ending_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterTrainingEndingHook, muster_training_ending_hook, MUSTER,
                      TRAINING_ENDING_HOOK, MusterHook)

struct _MusterTrainingEndingHook {
  MusterHook parent;
  MusterTrainingHook *training; /* (owned) */
};

G_DEFINE_FINAL_TYPE (MusterTrainingEndingHook, muster_training_ending_hook, MUSTER_TYPE_HOOK)

static gboolean
ending_end (MusterHook *hook, MusterSession *session, gint64 deadline_us, GCancellable *cancellable,
            GError **error)
{
  return finish (MUSTER_TRAINING_ENDING_HOOK (hook)->training, session, deadline_us, cancellable,
                 error);
}

static void
ending_finalize (GObject *object)
{
  g_clear_object (&MUSTER_TRAINING_ENDING_HOOK (object)->training);
  G_OBJECT_CLASS (muster_training_ending_hook_parent_class)->finalize (object);
}

static void
muster_training_ending_hook_class_init (MusterTrainingEndingHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ending_finalize;
  MUSTER_HOOK_CLASS (klass)->end = ending_end;
}

static void
muster_training_ending_hook_init (MusterTrainingEndingHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_training_hook_new_ending (MusterHook *training)
{
  MusterTrainingEndingHook *self = g_object_new (MUSTER_TYPE_TRAINING_ENDING_HOOK, NULL);
  self->training = g_object_ref (MUSTER_TRAINING_HOOK (training));
  return MUSTER_HOOK (self);
}

gboolean
muster_training_hook_is_done (MusterHook *self)
{
  return MUSTER_TRAINING_HOOK (self)->is_done;
}

/* A lease that was lost with the session says nothing: the next session's claim takes it from its
 * own process, and a claim that another chief refuses fails as that. */
static gboolean
has_lease (MusterTrainingHook *self, GError **error)
{
  return self->lease == NULL || self->is_lost || muster_lease_check (self->lease, error);
}

gboolean
muster_training_hook_is_replaced (MusterHook *hook)
{
  return !has_lease (MUSTER_TRAINING_HOOK (hook), NULL);
}

GError *
muster_training_hook_blame (MusterHook *hook, GError *failure)
{
  GError *lost = NULL;
  if (has_lease (MUSTER_TRAINING_HOOK (hook), &lost))
    return failure;
  g_error_free (failure);
  return lost;
}

/* --- callbacks --- */

static void
on_made (MusterSessionObserver *observer G_GNUC_UNUSED, MusterSessionReport *report,
         const GError *error G_GNUC_UNUSED, gpointer user_data)
{
  MusterSessionReport *own = &MUSTER_TRAINING_HOOK (user_data)->trained->report;
  muster_session_report_clear (own);
  *own = *report;
  *report = (MusterSessionReport){.final_step = -1};
}

/* A run that ended with its master doesn't count as a death. */
static void
on_lost (MusterSessionObserver *observer G_GNUC_UNUSED, const GError *why, guint n, gint64 pause_us,
         gpointer user_data)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (user_data);
  self->trained->n_recoveries = n;
  self->is_lost = TRUE;
  announce_loss (self, why);
  if (self->saver != NULL)
    (void)muster_saver_clear_crash_loop (self->saver, NULL);
  muster_training_observer_lost (self->training->observer, why, n, pause_us);
}

void
muster_training_hook_follow_sessions (MusterHook *self, MusterSessionObserver *observer)
{
  g_signal_connect (observer, "made", G_CALLBACK (on_made), self);
  g_signal_connect (observer, "lost", G_CALLBACK (on_lost), self);
}

static void
on_saved (MusterSaverObserver *observer G_GNUC_UNUSED, const MusterSaved *saved, gpointer user_data)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (user_data);
  self->settled_step = saved->step;
  if (!saved->skipped) {
    if (is_durable (self, saved->tier))
      self->state.durable_step = saved->step;
    mark_checkpoint_good (self);
  }
  muster_save_signals_saved (self->training->observer, saved);
}

static void
on_copied (MusterSaverObserver *observer G_GNUC_UNUSED, const MusterTierCopied *copied,
           gpointer user_data)
{
  MusterTrainingHook *self = MUSTER_TRAINING_HOOK (user_data);
  if (copied->why == NULL && is_durable (self, copied->tier))
    self->state.durable_step = MAX (self->state.durable_step, copied->step);
  muster_save_signals_copied (self->training->observer, copied);
}

static void
on_save_failed (MusterSaverObserver *observer G_GNUC_UNUSED, gint64 step, const GError *why,
                guint n_in_a_row, guint n_left_out, gpointer user_data)
{
  muster_save_signals_failed (MUSTER_TRAINING_HOOK (user_data)->training->observer, step, why,
                              n_in_a_row, n_left_out);
}

void
muster_training_hook_follow_saves (MusterHook *self, MusterSaverObserver *observer)
{
  g_signal_connect (observer, "saved", G_CALLBACK (on_saved), self);
  g_signal_connect (observer, "copied", G_CALLBACK (on_copied), self);
  g_signal_connect (observer, "save-failed", G_CALLBACK (on_save_failed), self);
}
