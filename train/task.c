// SPDX-License-Identifier: Apache-2.0
/* The life of a task, from top to bottom.
 *
 *             slot lost
 *           +----------+
 *           v          |
 *   begin: JOIN --> CLAIM --> OPEN --> STEP <--> PAUSE
 *           ^          |        |       | ^        |
 *           |          |        |       v |        |
 *           |          |        |     RECOVER <----+
 *           |          |        |       |          |
 *           |          |        v       v          |
 *           +----------|------ END <---------------+   (STEP, too, goes to END)
 *        another round |        |
 *                      v        |
 *                    LEAVE <----+
 *
 *   JOIN     becomes a member of the job, which has a slot
 *   CLAIM    waits for a role: the chief's if there is no chief and this task is the next to try
 *   OPEN     prepares the model as the chief, or waits for it as a worker
 *   STEP     runs one step
 *   PAUSE    runs no step while the job has too few tasks; hooks still save, and see the job's end
 *   RECOVER  creates another session in place of one that STEP or PAUSE has lost; a chief at a
 *            master of its own tries for a while only, then another task may lead
 *   END      ends the session: the last save, the job's end; and decides whether a round follows
 *   LEAVE    gives the slot back
 *
 * CLAIM to END is a round, which has one role (docs/decisions/0027). A task whose role is given is
 * no member: JOIN and CLAIM pass. Another round follows for one of three reasons:
 *
 *   - The roster says so: the slot was lost, or the model has no chief and this worker is the
 *     next to try. A thread of the client hears that and stops the session. STEP sees it, so a
 *     round ends between two steps; only a wait in OPEN or RECOVER is interrupted.
 *   - Another task is the chief (is_replaced): the claim in OPEN was refused, or a chief's step,
 *     save or announcement. Only members go on as a worker.
 *   - All steps were done, but the session was lost before the end was (is_cut).
 *
 * So a takeover reads like this. The chief dies, and the server sends a roster without a chief. The
 * worker in the lowest slot goes through STEP, END, JOIN and CLAIM, with its membership, to OPEN,
 * where it claims the model and continues with what the master has. The worker in the next slot
 * does the same 250 ms later, unless the roster has a chief again by then; if its claim is refused,
 * END leads it back to CLAIM, and it is a worker. All others stay in STEP.
 *
 * A save that holds the steps, a drain of the master and a preemption aren't states: hooks act on
 * them around a run. */
#include "train/monitored/monitored_session_private.h"
#include "train/position/position_private.h"
#include "train/preemption/preemption_private.h"
#include "train/round_private.h"
#include "train/train.h"
#include "train/train_hook_private.h"
#include "train/training_observer_private.h"

#include "base/error.h"
#include "base/log_private.h"
#include "base/require_private.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/stores/default_storage.h"

#define DEFAULT_WAIT_US (7200 * MUSTER_SECOND)
/* Longer than a process that runs holds the directory's lock. */
#define LOCK_US (200 * MUSTER_MILLISECOND)
/* Rounds in a row whose end is repeated in another. */
#define MOST_CUT 20

typedef enum { JOIN, CLAIM, OPEN, STEP, PAUSE, RECOVER, END, LEAVE, LEFT } State;

typedef struct {
  const MusterTraining *training; /* (not owned) */
  MusterTrained *trained;         /* (not owned) of all rounds */
  GCancellable *cancellable;      /* (not owned) (nullable) */
  MusterElastic *elastic;         /* (owned) (nullable) NULL: the role is given */
  gint64 until_us;                /* when JOIN and CLAIM give up */
  gboolean was_chief;             /* in the round before */
  gint slot_before;               /* likewise; -1: there was none */
  guint n_cut;                    /* rounds in a row that were */
  MusterRound round;
  guint64 seen;         /* the version of the roster at the last look for a pause */
  gboolean is_replaced; /* how a round has failed: another chief has the model */
  gboolean is_cut; /* likewise: all steps were done, but the session was lost before the end was */
  GError *failure; /* (owned) (nullable) the round's, and at last the task's */
} Task;

/* --- what it needs --- */

static gboolean
check_elastic (const MusterTraining *training, GError **error)
{
  const char *wrong = NULL;
  if (training->session.manager.model == NULL)
    wrong = "an elastic job needs the model's name; set session.manager.model";
  else if (training->max_tasks > 0 && training->min_tasks > training->max_tasks)
    wrong =
        "min_tasks is above max_tasks; set it to the number of tasks that the job needs to start";
  else if (training->min_tasks > muster_round_n_slots (training))
    wrong = training->session.own_masters ? "min_tasks is above the number of tasks"
                                          : "min_tasks is above 64; set max_tasks, too";
  else if (training->session.overwrite)
    wrong = "overwrite can't be combined with an elastic job, whose tasks may start at any time; "
            "overwrite the model with `muster prepare --overwrite` before";
  return wrong == NULL || muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s", wrong);
}

static gint64
wait_us (const MusterTraining *training)
{
  return training->session.timeout_us > 0 ? training->session.timeout_us : DEFAULT_WAIT_US;
}

static MusterElastic *
make_elastic (const MusterTraining *training)
{
  const MusterElasticOptions options = {
      .master = training->session.master,
      .model = training->session.manager.model,
      .task = training->session.manager.task,
      .n_slots = muster_round_n_slots (training),
      .slot = training->session.own_masters ? (gint)training->task_number : -1,
      .never_leads = training->session.is_worker && training->session.saving.checkpoint_dir == NULL,
      .is_apart = training->session.own_masters,
      .min_tasks = training->min_tasks,
      .max_tasks = training->max_tasks,
      .timeout_us = wait_us (training),
      .waiting = training->observer != NULL ? muster_training_observer_waiting : NULL,
      .waiting_data = training->observer,
  };
  return muster_elastic_new (&options);
}

static gboolean
is_stopped (const Task *self)
{
  MusterPreemption *preemption = self->training->session.saving.preemption;
  return g_cancellable_is_cancelled (self->cancellable) ||
         (preemption != NULL && muster_preemption_is_requested (preemption));
}

/* --- join --- */

/* From the start, or for another round. */
static State
begin (Task *self)
{
  self->until_us = muster_deadline_after (muster_clock_now_us (muster_system_clock ()),
                                          wait_us (self->training));
  return JOIN;
}

/* There is no round. */
static State
give_up (Task *self)
{
  MusterSessionReport *report = &self->trained->report;
  g_clear_pointer (&report->reasons, g_ptr_array_unref);
  report->reasons = muster_elastic_reasons (self->elastic);
  return LEAVE;
}

static State
join (Task *self)
{
  return self->elastic == NULL || muster_elastic_join (self->elastic, self->until_us,
                                                       self->cancellable, &self->failure)
             ? CLAIM
             : give_up (self);
}

/* --- claim --- */

/* A chief that sleeps may hold the directory's lock, and with it whatever the next one begins with.
 * Any other trouble is reported by the round itself. */
static gboolean
can_lock_directory (const MusterTraining *training, GError **error)
{
  MusterStorage *storage = training->saver.storage;
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  g_autoptr (GError) failure = NULL;
  if (training->session.saving.checkpoint_dir == NULL)
    return TRUE;
  g_autoptr (MusterDirectoryLock) lock =
      muster_directory_lock (storage != NULL ? storage : muster_default_storage (),
                             training->session.saving.checkpoint_dir,
                             muster_deadline_after (now_us, LOCK_US), NULL, NULL, &failure);
  if (lock != NULL || !muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED))
    return TRUE;
  g_propagate_prefixed_error (error, g_steal_pointer (&failure),
                              "no chief, so no checkpoints are written: ");
  return FALSE;
}

static gboolean
may_lead (Task *self)
{
  g_autoptr (GError) failure = NULL;
  const gboolean may = can_lock_directory (self->training, &failure);
  muster_elastic_note_may_lead (self->elastic, failure);
  return may;
}

/* A round for another reason isn't news. */
static void
tell_role (Task *self, gboolean is_chief)
{
  const guint slot = muster_elastic_slot (self->elastic);
  const gboolean is_news = self->was_chief != is_chief || self->slot_before != (gint)slot;
  self->was_chief = is_chief;
  self->slot_before = (gint)slot;
  if (is_news)
    muster_training_observer_role (self->training->observer, is_chief, slot);
}

static void
begin_round (Task *self)
{
  self->round = (MusterRound){
      .training = *self->training,
      .elastic = self->elastic,
      .trained = {.step = -1, .goodput = MUSTER_GOODPUT_INIT, .report.final_step = -1}};
  self->is_replaced = self->is_cut = FALSE;
}

static void
take_role (Task *self, MusterElasticRole role)
{
  MusterMonitoredTrainingOptions *session = &self->round.training.session;
  muster_elastic_begin_round (self->elastic, role, self->cancellable);
  const gboolean is_takeover = muster_elastic_is_takeover (self->elastic);
  session->is_worker = role == MUSTER_ELASTIC_WORKER;
  session->timeout_us = muster_elastic_timeout (self->elastic, session->timeout_us);
  /* Without positions nobody undoes a step that was cut off, whoever made it. */
  session->continue_without_positions |= session->own_masters && is_takeover;
  /* The others train the model that a takeover continues: a chief that dies soon says nothing of
   * it. */
  session->restore.count_deaths = session->restore.count_deaths && !is_takeover;
  tell_role (self, !session->is_worker);
}

static State
claim (Task *self)
{
  MusterElasticRole role;
  begin_round (self);
  if (self->elastic == NULL)
    return OPEN;
  if (!muster_elastic_find_role (self->elastic, self->until_us, self->cancellable, &role,
                                 &self->failure))
    return give_up (self);
  if (role == MUSTER_ELASTIC_LOST)
    return JOIN;
  if (role == MUSTER_ELASTIC_OVER) {
    self->trained->is_reached = TRUE;
    return LEAVE;
  }
  if (role == MUSTER_ELASTIC_CHIEF && !may_lead (self))
    role = MUSTER_ELASTIC_WORKER;
  take_role (self, role);
  return OPEN;
}

/* --- open --- */

/* There is a session. A worker that is held by a chief that has gone is still in OPEN or RECOVER.
 */
static void
begin_steps (Task *self)
{
  MusterMonitoredSession *session = self->round.session;
  if (self->elastic != NULL)
    muster_elastic_set_session (self->elastic, muster_monitored_session_coordinator (session));
}

static State
open_round (Task *self)
{
  GCancellable *cancellable =
      self->elastic != NULL ? muster_elastic_cancellable (self->elastic) : self->cancellable;
  if (!muster_round_open (&self->round, cancellable, &self->failure))
    return END;
  muster_monitored_session_recover_when_told (self->round.session);
  begin_steps (self);
  return muster_training_hook_is_done (self->round.hook) ? END : STEP;
}

/* --- step --- */

/* Whether the round ends here. A task that trains without a chief tries again to be it. */
static void
look_at_roster (Task *self, gboolean has_trained)
{
  if (self->elastic == NULL)
    return;
  if (muster_elastic_is_leader_due (self->elastic))
    (void)may_lead (self);
  if (!muster_elastic_may_step (self->elastic, has_trained))
    muster_monitored_session_request_stop (self->round.session);
}

/* A task that was held as it was preempted ends without another step. */
static gboolean
ends_held (const Task *self)
{
  return is_stopped (self) && muster_error_is (self->failure, MUSTER_ERROR_CANCELLED) &&
         muster_monitored_session_is_stopping (self->round.session);
}

/* The roster may have ended the round in the step that lost the session: then no other session is
 * waited for in this role. */
static State
fail_step (Task *self)
{
  if (!muster_monitored_session_is_lost (self->round.session)) {
    if (ends_held (self))
      g_clear_error (&self->failure);
    return END;
  }
  if (self->elastic != NULL && !muster_elastic_may_step (self->elastic, FALSE))
    return END;
  g_clear_error (&self->failure);
  return RECOVER;
}

static gboolean
should_pause (Task *self)
{
  MusterHook *position = self->round.position;
  g_autofree char *why =
      self->elastic != NULL && position != NULL && muster_position_may_pause (position)
          ? muster_elastic_why_paused (self->elastic, &self->seen)
          : NULL;
  if (position != NULL)
    muster_training_hook_set_paused (self->round.hook, why);
  return why != NULL;
}

static State
run_step (Task *self)
{
  const MusterRound *round = &self->round;
  const char *train_op = muster_scaffold_train_op (round->scaffold);
  const MusterStep step = {
      .targets = &train_op, .n_targets = 1, .deadline_us = MUSTER_WAIT_FOREVER};
  gboolean has_trained = round->position == NULL;
  if (muster_monitored_session_should_stop (round->session))
    return END;
  if (should_pause (self))
    return PAUSE;
  if (!(round->position != NULL
            ? muster_position_run (round->position, round->session, &step, NULL, &has_trained,
                                   &self->failure)
            : muster_monitored_session_run (round->session, &step, NULL, NULL, &self->failure)))
    return fail_step (self);
  look_at_roster (self, has_trained);
  return STEP;
}

/* --- pause --- */

/* Hooks run around a run without a step: saves that are due are made, a lost session is found, and
 * a stop is heard. */
static State
pause_steps (Task *self)
{
  const MusterRound *round = &self->round;
  if (!muster_position_run_idle (round->position, round->session, &self->failure))
    return fail_step (self);
  look_at_roster (self, FALSE);
  muster_training_hook_begin_pause (round->hook);
  muster_elastic_pause (self->elastic, self->seen,
                        muster_monitored_session_coordinator (round->session));
  muster_training_hook_end_pause (round->hook);
  return STEP;
}

/* --- recover --- */

/* No call lasts longer than the chief leads, but one may end a little earlier. */
static gboolean
is_given_up (const Task *self, gint64 until_us)
{
  return muster_clock_now_us (muster_system_clock ()) >= until_us ||
         (until_us != MUSTER_WAIT_FOREVER &&
          muster_error_is (self->failure, MUSTER_ERROR_DEADLINE_EXCEEDED));
}

/* A chief that gives up has another round, without the lease. */
static State
recover (Task *self)
{
  gint64 until_us = MUSTER_WAIT_FOREVER;
  if (self->elastic != NULL) {
    muster_elastic_set_session (self->elastic, NULL);
    until_us = muster_elastic_leads_until (self->elastic);
  }
  if (muster_monitored_session_recover (self->round.session, until_us, &self->failure)) {
    begin_steps (self);
    return STEP;
  }
  if (is_given_up (self, until_us))
    muster_elastic_give_way (self->elastic);
  return END;
}

/* --- end --- */

/* The end of a training isn't repeated in another session, as a step is. */
static gboolean
is_lost (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) ||
         muster_error_is (failure, MUSTER_ERROR_ABORTED);
}

/* Ends the session. The failure is the steps' before, and the round's behind. */
static void
finish (Task *self)
{
  MusterRound *round = &self->round;
  g_autoptr (GError) failure = g_steal_pointer (&self->failure);
  const gboolean is_done = failure == NULL;
  if (muster_error_is (failure, MUSTER_ERROR_OUT_OF_RANGE) ||
      muster_monitored_session_end_of_input (round->session) != NULL)
    muster_training_hook_set_input_ended (round->hook);
  const gboolean is_well = muster_monitored_session_finish (round->session, failure,
                                                            MUSTER_WAIT_FOREVER, &self->failure);
  muster_monitored_session_goodput (round->session, &round->trained.goodput);
  if (is_well && round->trained.report.outcome == MUSTER_OUTCOME_OVER)
    self->failure = g_steal_pointer (&failure); /* not the end of the input */
  if (self->failure == NULL)
    return;
  self->is_cut = is_done && is_lost (self->failure);
  self->is_replaced = muster_training_hook_is_replaced (round->hook);
  self->failure = muster_training_hook_blame (round->hook, self->failure);
}

/* Without a session, another may have become chief since this one was told that it is. */
static void
end_round (Task *self)
{
  const MusterRound *round = &self->round;
  if (round->session != NULL)
    finish (self);
  self->is_replaced =
      self->is_replaced ||
      (self->failure != NULL && (round->trained.report.outcome == MUSTER_OUTCOME_FENCED ||
                                 muster_saver_is_taken_over (self->failure)));
  self->is_cut = self->is_cut && !self->is_replaced;
}

/* What a round adds to those before it. */
static void
add_up (MusterTrained *trained, MusterTrained *round)
{
  const MusterTrained before = *trained;
  muster_session_report_clear (&trained->report);
  *trained = *round;
  round->report = (MusterSessionReport){.final_step = -1};
  if (trained->step < 0) /* there was no session */
    trained->step = before.step;
  trained->n_recoveries += before.n_recoveries;
}

/* TRUE if another round is to do the rest of one that was cut, from what the master has or the last
 * checkpoint. */
static gboolean
is_repeated (Task *self)
{
  self->n_cut = self->is_cut ? self->n_cut + 1 : 0;
  if (!self->is_cut || self->failure == NULL || self->n_cut > MOST_CUT)
    return FALSE;
  muster_log (G_LOG_LEVEL_MESSAGE, "end-repeated", "MESSAGE",
              "lost the session while training ended; ending it in another: %s",
              self->failure->message);
  self->trained->is_reached = FALSE;
  return TRUE;
}

/* TRUE if the round ended since the task should have another role, or another slot. */
static gboolean
is_changing (Task *self)
{
  MusterTrained *trained = self->trained;
  if (self->elastic == NULL)
    return FALSE;
  if (self->failure != NULL && trained->report.outcome == MUSTER_OUTCOME_OVER) {
    trained->step = MAX (trained->step, trained->report.final_step);
    trained->is_reached = TRUE;
    g_clear_error (&self->failure);
  }
  return muster_elastic_goes_on (self->elastic, self->is_replaced, self->failure) &&
         !trained->is_reached;
}

static State
end (Task *self)
{
  end_round (self);
  add_up (self->trained, &self->round.trained);
  muster_round_clear (&self->round);
  const gboolean changes = is_changing (self);
  const gboolean stops = is_stopped (self);
  if (!stops && (is_repeated (self) || changes)) {
    g_clear_error (&self->failure);
    if (self->training->session.saving.preemption != NULL)
      muster_preemption_begin_again (self->training->session.saving.preemption);
    return begin (self);
  }
  if (self->elastic != NULL && self->failure == NULL && !self->trained->is_reached && !stops)
    (void)muster_elastic_check_pause (self->elastic, &self->failure);
  return LEAVE;
}

/* --- leave --- */

static State
leave (Task *self)
{
  g_clear_pointer (&self->elastic, muster_elastic_free);
  return LEFT;
}

/* --- the task --- */

static void
live (Task *self)
{
  for (State state = begin (self); state != LEFT;)
    switch (state) {
    case JOIN:
      state = join (self);
      break;
    case CLAIM:
      state = claim (self);
      break;
    case OPEN:
      state = open_round (self);
      break;
    case STEP:
      state = run_step (self);
      break;
    case PAUSE:
      state = pause_steps (self);
      break;
    case RECOVER:
      state = recover (self);
      break;
    case END:
      state = end (self);
      break;
    case LEAVE:
    case LEFT:
      state = leave (self);
      break;
    }
}

gboolean
muster_train (const MusterTraining *training, MusterTrained *trained, GCancellable *cancellable,
              GError **error)
{
  muster_require (error, FALSE, training);
  muster_require (error, FALSE, training->session.scaffold, training->session.master);
  muster_require_array (error, FALSE, training->feeds, training->n_feeds);

  g_auto (MusterTrained) own = {0};
  MusterTraining with = *training;

  g_autoptr (MusterScaffold) scaffold =
      muster_scaffold_complete (training->session.scaffold, error);
  if (scaffold == NULL)
    return FALSE;
  with.session.scaffold = scaffold;
  if (trained == NULL)
    trained = &own;
  *trained = (MusterTrained){.step = -1, .goodput = MUSTER_GOODPUT_INIT, .report.final_step = -1};
  if (cancellable == NULL && training->session.saving.preemption != NULL)
    cancellable = muster_preemption_cancellable (training->session.saving.preemption);
  if (with.is_elastic && !check_elastic (&with, error))
    return FALSE;
  Task task = {.training = &with,
               .trained = trained,
               .cancellable = cancellable,
               .elastic = with.is_elastic ? make_elastic (&with) : NULL,
               .slot_before = -1};
  live (&task);
  if (task.failure != NULL)
    g_propagate_error (error, task.failure);
  return task.failure == NULL;
}
