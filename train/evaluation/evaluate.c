// SPDX-License-Identifier: Apache-2.0
/* Evaluates a job's checkpoints beside it. follow () looks for the next one, evaluates it, and
 * waits if there is none, until the job is over. Only the marks are written to the directory, each
 * under its lock or by its version (checkpoint/state/checkpoint_mark.c), as the job's saver writes
 * there. */
#include "train/evaluation/evaluation_private.h"

#include "base/error.h"
#include "base/fields_private.h"
#include "base/require_private.h"
#include "checkpoint/state/checkpoint_check.h"
#include "checkpoint/state/checkpoint_mark_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/stores/default_storage.h"
#include "train/hooks/event_writer.h"
#include "train/training_observer_private.h"

#include <string.h>

#define DEFAULT_POLL_US MUSTER_SECOND
#define LOOK_US         (30 * MUSTER_SECOND) /* for one look at the directory */
#define MARK_US         (60 * MUSTER_SECOND)
#define RELEASE_US      (5 * MUSTER_SECOND)
#define HOLD_US         (3600 * MUSTER_SECOND) /* longer than an evaluation; it ends if that is killed */
#define MOST_FAILURES   10 /* in a row, of a master or a store that doesn't answer */
#define RESUME_US       (60 * MUSTER_SECOND) /* a job that resumes has begun by then */

MUSTER_DEFINE_OPTIONS (MusterEvaluateOptions, muster_evaluate_options)

typedef struct {
  const MusterEvaluateOptions *options; /* (not owned) */
  const char *directory;                /* (not owned) (nullable) whose checkpoints are evaluated */
  MusterClock *clock;                   /* (not owned) */
  MusterStorage *storage;               /* (not owned) */
  GCancellable *cancellable;            /* (not owned) (nullable) */
  MusterMetrics *metrics;               /* (owned) */
  MusterEvaluationRun run;              /* (owned) */
  MusterEventWriter *writer;            /* (owned) (nullable) */
  GHashTable
      *given_up;    /* (owned) (element-type utf8) muster_look_version () of those that failed */
  char *said;       /* (owned) (nullable) why it waits, as last reported */
  guint n_failures; /* in a row */
  gint64 mtime_us;  /* of the checkpoint that is evaluated; 0: it isn't known */
  double hold;      /* on it; 0: none */
  gint64 renew_us;  /* when that is renewed */
  guint n_evaluated;
  gint64 since_us; /* since when it waits for the next */
  gboolean has_looked;
  char *ended;           /* (owned) (nullable) the run that was over at the first look, whose end */
  gint64 believe_us;     /* counts from then on: a job that resumes may not have begun yet */
  MusterEvaluated *last; /* (not owned) */
} Evaluation;

static void
evaluation_clear (Evaluation *self)
{
  g_clear_pointer (&self->metrics, muster_metrics_free);
  muster_evaluation_run_clear (&self->run);
  g_clear_pointer (&self->writer, muster_event_writer_unref);
  g_clear_pointer (&self->given_up, g_hash_table_unref);
  g_free (self->said);
  g_free (self->ended);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Evaluation, evaluation_clear)

static gint64
in_us (const Evaluation *self, gint64 time_us)
{
  return muster_deadline_after (muster_clock_now_us (self->clock), time_us);
}

/* --- where the values go --- */

/* Event files are local: beside checkpoints in an object store there are none. */
static gboolean
open_writer (Evaluation *self, GError **error)
{
  const MusterEvaluateOptions *options = self->options;
  const char *summary_dir = options->training.session.summary_dir;
  const char *name = options->name != NULL ? options->name : "eval";
  g_autofree char *beside =
      self->directory != NULL && muster_storage_is_local (self->storage, self->directory)
          ? g_build_filename (self->directory, name, NULL)
          : NULL;
  const char *directory = summary_dir != NULL ? summary_dir : beside;
  if (self->writer != NULL || directory == NULL)
    return TRUE;
  self->writer = muster_event_writer_new (directory, self->clock, error);
  return self->writer != NULL;
}

static gboolean
write_summary (Evaluation *self, const MusterEvaluated *evaluated, GError **error)
{
  if (!open_writer (self, error))
    return FALSE;
  for (guint i = 0; self->writer != NULL && i < evaluated->values->len; i++)
    if (!muster_event_writer_add_scalar (self->writer, muster_metrics_tag (self->metrics, i),
                                         (float)g_array_index (evaluated->values, double, i),
                                         MAX (evaluated->step, 0), error))
      return FALSE;
  if (self->writer != NULL)
    (void)muster_event_writer_flush (self->writer, NULL); /* what stays is reported at the end */
  return TRUE;
}

static gboolean
mark (Evaluation *self, const MusterEvaluated *evaluated, GError **error)
{
  const MusterEvaluationMarks marks = {.names = (const char *const *)evaluated->metrics,
                                       .values = evaluated->values,
                                       .hold = self->hold,
                                       .mtime_us = self->mtime_us};
  return muster_checkpoint_set_evaluated (self->storage, evaluated->prefix, &marks,
                                          in_us (self, MARK_US), self->cancellable, error);
}

static void
report (Evaluation *self, MusterEvaluated *evaluated)
{
  evaluated->n_evaluated = self->n_evaluated;
  g_clear_pointer (&self->said, g_free);
  self->since_us = muster_clock_now_us (self->clock);
  muster_training_observer_evaluated (self->options->training.observer, evaluated);
  muster_evaluated_clear (self->last);
  *self->last = *evaluated;
  *evaluated = (MusterEvaluated){.step = -1};
}

/* --- one checkpoint --- */

static gboolean
is_cancelled (const GError *failure)
{
  return g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
         muster_error_is (failure, MUSTER_ERROR_CANCELLED);
}

static gboolean
is_unreachable (const GError *failure)
{
  const MusterFailure kind = muster_failure_of (failure);
  return kind == MUSTER_FAILURE_UNREACHABLE || muster_error_is (failure, MUSTER_ERROR_ABORTED) ||
         muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED); /* a store's or a lock's */
}

/* Another one of that name and another time is evaluated. */
static void
give_up (Evaluation *self, const char *prefix)
{
  if (self->mtime_us != 0)
    g_hash_table_add (self->given_up, muster_look_version (prefix, self->mtime_us));
}

/* Why a checkpoint of a directory is passed over (transfer full); NULL if it isn't its fault. */
static char *
fault_of (Evaluation *self, const char *prefix, const GError *failure)
{
  MusterCheckpointOverview overview;
  if (!muster_error_is (failure, MUSTER_ERROR_DATA_LOSS) &&
      !muster_error_is (failure, MUSTER_ERROR_NOT_FOUND))
    return NULL;
  if (!muster_checkpoint_exists (self->storage, prefix))
    return g_strdup ("it was removed before it was evaluated");
  if (!muster_error_is (failure, MUSTER_ERROR_DATA_LOSS) &&
      muster_checkpoint_inspect (self->storage, prefix, &overview, NULL))
    return NULL;
  return g_strdup_printf ("it is damaged: %s", failure->message);
}

/* Ends the hold, also after a cancellation. */
static void
release (const Evaluation *self, const char *prefix)
{
  const MusterEvaluationMarks marks = {.hold = self->hold};
  (void)muster_checkpoint_set_evaluated (self->storage, prefix, &marks, in_us (self, RELEASE_US),
                                         NULL, NULL);
}

/* A mark that fails for good is no reason to evaluate the checkpoint again. */
static gboolean
mark_or_say (Evaluation *self, MusterEvaluated *evaluated, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (mark (self, evaluated, &failure))
    return TRUE;
  if (is_cancelled (failure) || is_unreachable (failure)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  if (self->hold != 0)
    release (self, evaluated->prefix);
  give_up (self, evaluated->prefix);
  evaluated->why = g_strdup_printf ("not marked: %s", failure->message);
  return TRUE;
}

static gboolean
evaluate_held (Evaluation *self, MusterEvaluated *evaluated, GError **error)
{
  const gint64 began_us = muster_clock_now_us (self->clock);
  if (!muster_evaluation_run (&self->run, evaluated->prefix, evaluated, self->cancellable, error) ||
      !write_summary (self, evaluated, error) || !mark_or_say (self, evaluated, error))
    return FALSE;
  evaluated->took_us = muster_clock_now_us (self->clock) - began_us;
  self->n_evaluated++;
  return TRUE;
}

/* Takes a hold, or renews it. */
static gboolean
hold_on (Evaluation *self, const char *prefix, GError **error)
{
  self->renew_us = in_us (self, HOLD_US / 2);
  return muster_checkpoint_hold (self->storage, prefix, HOLD_US, &self->hold, in_us (self, MARK_US),
                                 self->cancellable, error);
}

/* Called between two batches. */
static void
keep_holding (const char *prefix, gpointer user_data)
{
  Evaluation *self = user_data;
  if (self->hold != 0 && muster_clock_now_us (self->clock) >= self->renew_us)
    (void)hold_on (self, prefix, NULL);
}

static gboolean
find_time (Evaluation *self, const char *prefix, GError **error)
{
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, in_us (self, LOOK_US), self->clock, self->cancellable);
  return muster_look_time (storage, prefix, &self->mtime_us, error);
}

/* Where nothing can be noted, the checkpoint is evaluated all the same. */
static gboolean
hold (Evaluation *self, MusterEvaluated *evaluated, GError **error)
{
  g_autoptr (GError) failure = NULL;
  self->hold = 0;
  (void)hold_on (self, evaluated->prefix, &failure);
  if (muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION)) /* retention was faster */
    evaluated->why = g_strdup (failure->message);
  if (failure == NULL || (evaluated->why == NULL && !is_cancelled (failure) &&
                          !muster_error_is (failure, MUSTER_ERROR_NOT_FOUND)))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

/* Retention keeps it meanwhile, and knows its values before it decides. */
static gboolean
evaluate (Evaluation *self, MusterEvaluated *evaluated, GError **error)
{
  if (!find_time (self, evaluated->prefix, error) || !hold (self, evaluated, error))
    return FALSE;
  if (evaluate_held (self, evaluated, error))
    return TRUE;
  g_clear_pointer (&evaluated->values, g_array_unref);
  if (self->hold != 0)
    release (self, evaluated->prefix);
  return FALSE;
}

static MusterEvaluated
begin (const Evaluation *self, const char *prefix)
{
  return (MusterEvaluated){.prefix = g_strdup (prefix),
                           .step = muster_checkpoint_step (prefix),
                           .metrics = g_strdupv ((char **)muster_metrics_names (self->metrics))};
}

static gboolean
evaluate_single (Evaluation *self, GError **error)
{
  g_auto (MusterEvaluated) evaluated = begin (self, self->options->checkpoint);
  if (!evaluate (self, &evaluated, error))
    return FALSE;
  report (self, &evaluated);
  return TRUE;
}

/* --- a directory --- */

static void
say_waiting (Evaluation *self, char *why)
{
  g_autofree char *owned = why;
  if (g_strcmp0 (why, self->said) == 0)
    return;
  g_free (self->said);
  self->said = g_steal_pointer (&owned);
  muster_training_observer_waiting (self->said, NULL, NULL, self->options->training.observer);
}

/* Pauses after a failure that may pass. */
static gboolean
pause_after (Evaluation *self, GError *failure, GError **error)
{
  if (is_cancelled (failure) || !is_unreachable (failure) || ++self->n_failures >= MOST_FAILURES) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  say_waiting (self, g_strdup_printf ("retrying: %s", failure->message));
  g_error_free (failure);
  return muster_clock_wait_until (self->clock, in_us (self, self->n_failures * MUSTER_SECOND),
                                  self->cancellable, error);
}

static gboolean
evaluate_next (Evaluation *self, const char *prefix, GError **error)
{
  g_auto (MusterEvaluated) evaluated = begin (self, prefix);
  GError *failure = NULL;
  if (evaluate (self, &evaluated, &failure)) {
    self->n_failures = 0;
    report (self, &evaluated);
    return TRUE;
  }
  if (evaluated.why == NULL)
    evaluated.why = fault_of (self, prefix, failure);
  if (evaluated.why == NULL)
    return pause_after (self, failure, error);
  g_error_free (failure);
  give_up (self, prefix);
  report (self, &evaluated);
  return TRUE;
}

/* Who saves the next one; (transfer full). */
static char *
describe_job (const MusterLook *look)
{
  return look->is_over
             ? g_strdup ("the job there was over before this; it may resume within a "
                         "minute")
             : g_strdup_printf ("%s saves there", look->chief != NULL ? look->chief : "no job");
}

static gboolean
await_next (Evaluation *self, const MusterLook *look, GError **error)
{
  const MusterEvaluateOptions *options = self->options;
  const char *newest = look->newest;
  const gint64 timeout_us = options->training.session.timeout_us;
  const gint64 poll_us = options->poll_us > 0 ? options->poll_us : DEFAULT_POLL_US;
  const gint64 until_us =
      timeout_us > 0 ? muster_deadline_after (self->since_us, timeout_us) : MUSTER_WAIT_FOREVER;
  g_autofree char *what = newest != NULL
                              ? g_strdup_printf ("a checkpoint newer than %s", newest)
                              : g_strdup_printf ("a checkpoint in '%s'", self->directory);
  g_autofree char *job = describe_job (look);
  if (muster_clock_now_us (self->clock) >= until_us) {
    g_autofree char *took = muster_format_duration (timeout_us);
    return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "no checkpoint came in %s: %s; %s",
                        took, what, job);
  }
  say_waiting (self, g_strdup_printf ("waiting for %s; %s", what, job));
  return muster_clock_wait_until (self->clock, MIN (in_us (self, poll_us), until_us),
                                  self->cancellable, error);
}

static gboolean
look (Evaluation *self, MusterLook *found, GError **error)
{
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, in_us (self, LOOK_US), self->clock, self->cancellable);
  return muster_look (found, storage, self->directory, muster_metrics_names (self->metrics),
                      self->given_up, error);
}

/* The newest was evaluated before: its marks are the result. */
static void
take_marks (Evaluation *self, MusterLook *found)
{
  g_auto (MusterEvaluated) evaluated = begin (self, found->newest);
  evaluated.values = g_steal_pointer (&found->values);
  report (self, &evaluated);
}

static void
note_first_look (Evaluation *self, const MusterLook *found)
{
  const gint64 timeout_us = self->options->training.session.timeout_us;
  if (self->has_looked)
    return;
  self->has_looked = TRUE;
  if (!found->is_over)
    return;
  self->ended = g_strdup (found->run);
  self->believe_us = muster_deadline_after (
      self->since_us, timeout_us > 0 ? MIN (timeout_us, RESUME_US) : RESUME_US);
}

static gboolean
is_over (const Evaluation *self, const MusterLook *found)
{
  return found->is_over && (g_strcmp0 (found->run, self->ended) != 0 ||
                            muster_clock_now_us (self->clock) >= self->believe_us);
}

/* Looks, and evaluates or waits. *is_done says that nothing is left. */
static gboolean
follow_once (Evaluation *self, gboolean *is_done, GError **error)
{
  g_auto (MusterLook) found = {0};
  GError *failure = NULL;
  if (!look (self, &found, &failure))
    return pause_after (self, failure, error);
  note_first_look (self, &found);
  const gboolean once = self->options->once;
  if (once && found.values != NULL) {
    take_marks (self, &found);
    *is_done = TRUE;
    return TRUE;
  }
  if (found.next != NULL) {
    const guint before = self->n_evaluated;
    const gboolean goes_on = evaluate_next (self, found.next, error);
    *is_done = once && self->n_evaluated > before;
    return goes_on;
  }
  self->n_failures = 0;
  *is_done = is_over (self, &found);
  return *is_done || await_next (self, &found, error);
}

static gboolean
follow (Evaluation *self, GError **error)
{
  gboolean is_done = FALSE;
  while (!is_done)
    if (!follow_once (self, &is_done, error))
      return FALSE;
  return TRUE;
}

/* --- what is called --- */

static MusterStorage *
storage_of (const MusterEvaluateOptions *options)
{
  MusterStorage *storage = options->training.saver.storage;
  return storage != NULL ? storage : muster_default_storage ();
}

static gboolean
check (const MusterEvaluateOptions *options, GError **error)
{
  const MusterSessionManagerOptions *manager = &options->training.session.manager;
  const char *directory = options->training.session.saving.checkpoint_dir;
  const char *wrong = NULL;
  if (directory == NULL && options->checkpoint == NULL)
    wrong = "set checkpoint_dir, whose checkpoints are evaluated, or a single checkpoint";
  else if (options->checkpoint != NULL && options->once)
    wrong = "a single checkpoint is evaluated once; don't set once, too";
  else if (options->name != NULL && (*options->name == '\0' || strchr (options->name, '/') != NULL))
    wrong = "invalid name of an evaluation (use a word such as eval or test, without '/')";
  else if (manager->local_init_op != NULL || manager->ready_op != NULL ||
           manager->ready_for_local_init_op != NULL || manager->meta_graph != NULL ||
           manager->will_run != NULL || manager->will_feed != NULL)
    wrong = "the ops and the meta graph of an evaluation's manager are the scaffold's; don't set "
            "them";
  if (wrong != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", wrong);
  MusterStorage *storage = storage_of (options);
  return (directory == NULL ||
          muster_storage_check_path (storage, "checkpoint directory", directory, error)) &&
         (options->checkpoint == NULL ||
          muster_storage_check_path (storage, "checkpoint", options->checkpoint, error));
}

static gboolean
run (const MusterEvaluateOptions *options, MusterEvaluated *evaluated, GCancellable *cancellable,
     GError **error)
{
  MusterClock *clock = options->training.session.manager.clock;
  g_auto (Evaluation)
      self = {.options = options,
              .directory = options->training.session.saving.checkpoint_dir,
              .clock = clock != NULL ? clock : muster_system_clock (),
              .storage = storage_of (options),
              .cancellable = cancellable,
              .given_up = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
              .last = evaluated};
  self.since_us = muster_clock_now_us (self.clock);
  self.metrics = muster_metrics_new (options, error);
  if (self.metrics == NULL || !muster_evaluation_run_init (&self.run, options, self.metrics, error))
    return FALSE;
  self.run.between = keep_holding;
  self.run.between_data = &self;
  return options->checkpoint != NULL ? evaluate_single (&self, error) : follow (&self, error);
}

gboolean
muster_evaluate (const MusterEvaluateOptions *options, MusterEvaluated *evaluated,
                 GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, options);
  const MusterTraining *training = &options->training;
  muster_require (error, FALSE, training->session.scaffold, training->session.master);
  muster_require_array (error, FALSE, training->feeds, training->n_feeds);

  g_auto (MusterEvaluated) own = {0};
  MusterEvaluateOptions with = *options;
  if (evaluated == NULL)
    evaluated = &own;
  *evaluated = (MusterEvaluated){.step = -1};
  if (!check (options, error))
    return FALSE;
  g_autoptr (MusterScaffold) scaffold =
      muster_scaffold_with_saver (training->session.scaffold, error);
  if (scaffold == NULL)
    return FALSE;
  with.training.session.scaffold = scaffold;
  return run (&with, evaluated, cancellable, error);
}
