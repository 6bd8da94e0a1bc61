// SPDX-License-Identifier: Apache-2.0
/* What a master's status tells of its models, their chiefs, tasks and saves. */
#include "base/version.h"
#include "cli/doctor/looks.h"
#include "master/announcement.h"
#include "master/goodput_message_private.h"
#include "master/save_status_message_private.h"
#include "status/status.h"

#include <string.h>

#define AS_LONG_AS_OTHERS 10                     /* times the usual duration of a step or a save */
#define AS_LONG_AS_EVER   2                      /* times the longest duration of a step */
#define OLD_US            (3600 * MUSTER_SECOND) /* the last durable checkpoint */
#define RECENT_US         (600 * MUSTER_SECOND)  /* what was lost */
#define CLOCKS_US         (60 * MUSTER_SECOND)   /* by which clocks may differ */
#define LEAST_GOODPUT     0.5
#define LEAST_TOTAL_US    (600 * MUSTER_SECOND) /* before goodput counts */

typedef struct {
  const MusterDoctor *doctor;
  const char *target;
  const Muster__StatusResponse *status;
  GHashTable *explained; /* (owned) (element-type utf8) the models of which it is known why their
                            tasks wait, or make no step */
} Look;

static gboolean
has (const char *text)
{
  return *text != '\0';
}

MusterHolder *
muster_holder_new (const char *text, gboolean is_alive)
{
  MusterHolder *self = g_new (MusterHolder, 1);
  *self = (MusterHolder){g_strdup (text), is_alive};
  return self;
}

void
muster_holder_free (gpointer self)
{
  g_free (((MusterHolder *)self)->text);
  g_free (self);
}

/* "chief:0 (host:71)" (transfer full) */
static char *
name_of (const char *task, const char *who)
{
  if (has (task) && has (who))
    return g_strdup_printf ("%s (%s)", task, who);
  return g_strdup (has (task) ? task : has (who) ? who : "a task");
}

/* (transfer full) */
static char *
where_is (const Look *self, const char *model)
{
  return has (model) ? g_strdup_printf ("%s at %s", model, self->target) : g_strdup (self->target);
}

static void
explain (Look *self, const char *model)
{
  g_hash_table_add (self->explained, (gpointer)model);
}

static const Muster__Members *
job_of (const Look *self, const char *model)
{
  for (gsize i = 0; i < self->status->n_jobs; i++)
    if (strcmp (self->status->jobs[i]->model, model) == 0)
      return self->status->jobs[i];
  return NULL;
}

/* --- the server --- */

static void
check_server (Look *self)
{
  const Muster__StatusResponse *status = self->status;
  MusterFindings *findings = self->doctor->findings;
  if (strcmp (status->version, MUSTER_VERSION) != 0)
    muster_findings_add (findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_VERSION, self->target,
                         "upgrade the older one",
                         "the server is muster %s, this command is muster %s", status->version,
                         MUSTER_VERSION);
  if (status->draining_us > 0) {
    g_autofree char *left = muster_format_duration (status->draining_us);
    muster_findings_add (findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_MASTER, self->target,
                         "start the next server at this address; chiefs save, then all tasks wait "
                         "for it",
                         "the server stops in %s at the latest", left);
  }
}

static void
check_master (Look *self)
{
  if (has (self->status->master_failure))
    muster_findings_add (
        self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_MASTER, self->target,
        "start the master, or correct the gateway's --master and --master-… options",
        "the gateway can't use its master, '%s': %s", self->status->master,
        self->status->master_failure);
}

static void
check_limits (Look *self)
{
  for (gsize i = 0; i < self->status->n_limits; i++) {
    const Muster__Limit *limit = self->status->limits[i];
    if (limit->refused > 0 && limit->used >= limit->limit - limit->limit / 10)
      muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_LIMIT,
                           self->target, "end what uses it, or raise the limit of `muster serve`",
                           "the limit of %s was reached: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT
                           " in use, refused %" G_GINT64_FORMAT " times",
                           limit->name, limit->used, limit->limit, limit->refused);
  }
}

/* --- a model's chief --- */

static gboolean
is_gone (const Muster__Announcement *model)
{
  const gboolean has_left = model->phase == MUSTER__PHASE__PREPARED && model->prepared;
  return !model->alive && !has_left && model->phase != MUSTER__PHASE__OVER &&
         !muster_status_has_finished (model);
}

static void
check_gone (Look *self, const Muster__Announcement *model)
{
  const Muster__Members *job = job_of (self, model->model);
  const gboolean is_elastic = job != NULL && job->n > 0;
  if (is_elastic && (job->waiting || model->lost_age_us < self->doctor->patience_us))
    return; /* another task takes over */
  g_autofree char *where = where_is (self, model->model);
  g_autofree char *who = name_of (model->task, model->who);
  g_autofree char *end = muster_status_chief (model);
  explain (self, model->model);
  muster_findings_add (
      self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHIEF, where,
      model->failed        ? "fix the cause, and start the chief again; its log has more"
      : has (model->ended) ? "run the chief's command again; it resumes"
      : is_elastic         ? "start another task with `muster train --task=auto`"
                   : "run the chief's command again; if its machine is gone, on another one",
      "there is no chief: %s, %s", who, end);
}

static void
check_preparing (Look *self, const Muster__Announcement *model)
{
  explain (self, model->model);
  if (model->phase_age_us < self->doctor->patience_us)
    return;
  g_autofree char *where = where_is (self, model->model);
  g_autofree char *who = name_of (model->task, model->who);
  g_autofree char *phase = muster_status_chief (model);
  muster_findings_add (
      self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_CHIEF, where,
      model->phase == MUSTER__PHASE__RESTORING
          ? "wait if the checkpoint is large or its store is slow; otherwise check the chief's log "
            "and "
            "stack"
          : "wait if its init ops take that long; otherwise check the chief's log and stack",
      "the chief has not prepared the model yet: %s is %s", who, phase);
}

/* One that waits says what is missing. */
static gboolean
has_waiter (const Look *self, const char *model)
{
  for (gsize i = 0; i < self->status->n_waiters; i++)
    if (strcmp (self->status->waiters[i]->model, model) == 0 &&
        has (self->status->waiters[i]->waits_for))
      return TRUE;
  return FALSE;
}

static void
check_prepared (Look *self, const Muster__Announcement *model)
{
  const gboolean was_reset = model->alive && model->phase == MUSTER__PHASE__UNKNOWN;
  const gint64 age_us = model->alive ? model->phase_age_us : model->lost_age_us;
  const Muster__Members *job = job_of (self, model->model);
  if (model->ready || age_us < self->doctor->patience_us || has_waiter (self, model->model) ||
      (job != NULL && job->waiting))
    return;
  g_autofree char *where = where_is (self, model->model);
  g_autofree char *remedy =
      was_reset
          ? g_strdup (
                "check the chief's log and stack; it prepares the model again with its next step")
          : g_strdup_printf ("`muster wait --meta-graph=FILE --master=%s` names what is "
                             "missing",
                             self->target);
  muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHIEF, where,
                       remedy,
                       was_reset ? "the model isn't ready: the master was reset, and its chief "
                                   "hasn't prepared it since"
                                 : "the model isn't ready, although its chief has prepared it");
}

static void
check_chief (Look *self, const Muster__Announcement *model)
{
  if (model->phase == MUSTER__PHASE__OVER)
    return;
  if (is_gone (model))
    check_gone (self, model);
  else if (model->alive && muster_chief_phase_is_preparing ((MusterChiefPhase)model->phase))
    check_preparing (self, model);
  else
    check_prepared (self, model);
}

/* --- its saves --- */

/* The last save that ended isn't durable. TRUE if so. */
static gboolean
check_failed_saves (Look *self, const Muster__Announcement *model, const MusterSaveStatus *saves)
{
  const gboolean was_saved = saves->step[MUSTER_SAVE_DURABLE] >= 0;
  if (saves->saving != NULL || saves->n_failed + saves->n_skipped == 0 ||
      (was_saved && saves->age_us[MUSTER_SAVE_DURABLE] <= saves->age_us[MUSTER_SAVE_REQUESTED]))
    return FALSE;
  g_autofree char *where = where_is (self, model->model);
  g_autofree char *age = muster_format_duration (saves->age_us[MUSTER_SAVE_DURABLE]);
  g_autofree char *last = was_saved ? g_strdup_printf ("the last durable one is %s old", age)
                                    : g_strdup ("none is durable");
  muster_findings_add (
      self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_SAVE, where,
      "run `muster doctor DIR` where the chief runs, for space and rights; its log has the error",
      "checkpoints can't be saved: %" G_GUINT64_FORMAT " failed, %" G_GUINT64_FORMAT " skipped; %s",
      saves->n_failed, saves->n_skipped, last);
  return TRUE;
}

static gint64
sum_us (const gint64 *phases_us)
{
  return phases_us[MUSTER_SAVE_STAGING] + phases_us[MUSTER_SAVE_WRITING] +
         phases_us[MUSTER_SAVE_PUBLISHING];
}

static gboolean
is_slow (const Look *self, const MusterSaveStatus *saves)
{
  return saves->saving_age_us >=
         MAX (self->doctor->patience_us, AS_LONG_AS_OTHERS * sum_us (saves->last_us));
}

static void
check_slow_save (Look *self, const Muster__Announcement *model, const MusterSaveStatus *saves)
{
  if (saves->saving == NULL || !is_slow (self, saves))
    return;
  g_autofree char *where = where_is (self, model->model);
  g_autofree char *age = muster_format_duration (saves->saving_age_us);
  muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_SAVE, where,
                       "check the disk or the object store; --save-timeout=TIME ends such a save",
                       "the save of '%s' takes long: %s, requested %s ago", saves->saving,
                       muster_save_state_name (saves->saving_state), age);
}

static void
check_old_checkpoint (Look *self, const Muster__Announcement *model)
{
  const gboolean was_saved = model->durable_step >= 0;
  const gint64 age_us = /* a restored one may be older than the training */
      was_saved ? MIN (model->durable_age_us, model->phase_age_us) : model->phase_age_us;
  if (model->phase != MUSTER__PHASE__TRAINING || age_us < OLD_US)
    return;
  g_autofree char *where = where_is (self, model->model);
  g_autofree char *age = muster_format_duration (age_us);
  muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_SAVE, where,
                       was_saved ? "save more often, with --save-secs=TIME or --save-every=auto"
                                 : "set --checkpoint-dir=DIR",
                       was_saved ? "the last durable checkpoint is %s old; a failure costs the "
                                   "steps since"
                                 : "no checkpoint was saved in %s of training",
                       age);
}

static void
check_saves (Look *self, const Muster__Announcement *model)
{
  g_autoptr (MusterSaveStatus) saves = muster_save_status_read (model->saves);
  if (!model->alive)
    return;
  if (saves != NULL)
    check_slow_save (self, model, saves);
  if (saves == NULL || !check_failed_saves (self, model, saves))
    check_old_checkpoint (self, model);
}

/* --- its time --- */

static const char *const remedies[MUSTER_N_TIMES] = {
    [MUSTER_TIME_TRAINING] = "",
    [MUSTER_TIME_REPEATED] = "save more often, with --save-every=auto or a --fast-dir",
    [MUSTER_TIME_SAVING] = "save less often, or first to a --fast-dir",
    [MUSTER_TIME_WAITING] = "find out why its master was lost: read the server's log",
    [MUSTER_TIME_INITIALISING] = "find out why it starts so often: read the chief's log",
    [MUSTER_TIME_RESTORING] = "find out why it starts so often: read the chief's log",
    [MUSTER_TIME_DOWN] = "start it again sooner, with a supervisor (systemd, Kubernetes, Slurm)",
    [MUSTER_TIME_PAUSED] =
        "if no drain paused it, start more tasks, or all of them with a lower --min-tasks",
};

static const char *
remedy_of (const MusterGoodput *goodput)
{
  guint most = MUSTER_TIME_TRAINING + 1;
  for (guint i = most; i < MUSTER_N_TIMES; i++)
    if (goodput->spent_us[i] > goodput->spent_us[most])
      most = i;
  return remedies[most];
}

static void
check_time (Look *self, const Muster__Announcement *model)
{
  g_autofree MusterGoodput *goodput = muster_goodput_read (model->goodput);
  if (goodput == NULL || !model->alive)
    return;
  g_autofree char *where = where_is (self, model->model);
  if (muster_goodput_total_us (goodput) >= LEAST_TOTAL_US &&
      muster_goodput_share (goodput) < LEAST_GOODPUT) {
    g_autofree char *text = muster_goodput_text (goodput);
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_GOODPUT,
                         where, remedy_of (goodput), "most of the job's time is lost: %s", text);
  }
  const gint64 ahead_us = goodput->began_us - muster_clock_wall_us (muster_system_clock ());
  if (ahead_us >= CLOCKS_US) {
    g_autofree char *ahead = muster_format_duration (ahead_us);
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_CLOCK, where,
                         "set both clocks, as with chrony or systemd-timesyncd",
                         "clocks differ: by the chief's clock, the job begins %s from now", ahead);
  }
}

/* --- the tasks of elastic jobs --- */

/* Another task has come since. */
static gboolean
is_replaced (const Muster__Members *job, const Muster__Member *left)
{
  for (gsize i = 0; i < job->n_members; i++)
    if (job->members[i]->age_us <= left->left_age_us)
      return TRUE;
  return FALSE;
}

static void
check_left (Look *self, const Muster__Members *job)
{
  g_autofree char *where = where_is (self, job->model);
  for (gsize i = 0; i < job->n_left && job->n > 0; i++) {
    const Muster__Member *left = job->left[i];
    if (strcmp (left->why, "left") == 0 || left->left_age_us > RECENT_US || is_replaced (job, left))
      continue;
    g_autofree char *text = muster_status_member (left);
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_WARNING, MUSTER_CHECK_TASKS, where,
                         "check its machine and its log, and start it again", "a task is gone: %s",
                         text);
  }
}

static void
check_job (Look *self, const Muster__Members *job)
{
  g_autofree char *waits = muster_status_waits (job);
  if (waits != NULL) {
    g_autofree char *where = where_is (self, job->model);
    g_autofree char *remedy = g_strdup_printf (
        "start %d more with `muster train --task=%s`, or all with a lower --min-tasks",
        job->min_tasks - job->n, muster_status_has_steps_elsewhere (self->status) ? "…" : "auto");
    explain (self, job->model);
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_TASKS, where,
                         remedy, "the job doesn't train, %s", waits);
  }
  check_left (self, job);
}

/* --- who waits --- */

static gboolean
has_model (const Look *self, const char *name)
{
  for (gsize i = 0; i < self->status->n_models; i++)
    if (strcmp (self->status->models[i]->model, name) == 0)
      return TRUE;
  return FALSE;
}

static guint
n_waiting (const Look *self, const char *model)
{
  guint n = 0;
  for (gsize i = 0; i < self->status->n_waiters; i++)
    n += has (self->status->waiters[i]->waits_for) &&
         strcmp (self->status->waiters[i]->model, model) == 0;
  return n;
}

/* Of a model's waiters the one that waits longest, which is listed first. */
static void
check_wait (Look *self, const Muster__Waiter *waiter)
{
  g_autofree char *where = where_is (self, waiter->model);
  g_autofree char *who = name_of (waiter->task, waiter->who);
  g_autofree char *age = muster_format_duration (waiter->age_us);
  const guint n = n_waiting (self, waiter->model);
  g_autofree char *waits =
      g_strdup_printf ("%u task%s, %s for %s", n, n == 1 ? " waits" : "s wait", who, age);
  explain (self, waiter->model);
  if (has (waiter->model) && !has_model (self, waiter->model)) {
    g_autofree char *remedy = g_strdup_printf (
        "start the chief, with `muster train --task=chief:0` or `muster prepare`, at --master=%s",
        self->target);
    muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHIEF, where,
                         remedy, "no chief has ever registered: %s", waits);
    return;
  }
  muster_findings_add (self->doctor->findings, MUSTER_FINDING_ERROR, MUSTER_CHECK_WAIT, where,
                       "use the same meta graph for the chief and its workers, and check that "
                       "nothing has reset the master",
                       "the model isn't ready: %s%s%s", waits, has (waiter->why) ? ": " : "",
                       waiter->why);
}

static void
check_waits (Look *self)
{
  for (gsize i = 0; i < self->status->n_waiters; i++) {
    const Muster__Waiter *waiter = self->status->waiters[i];
    if (has (waiter->waits_for) && waiter->age_us >= self->doctor->patience_us &&
        !g_hash_table_contains (self->explained, waiter->model))
      check_wait (self, waiter);
  }
}

/* --- steps --- */

static gboolean
is_preparing (const Look *self)
{
  for (gsize i = 0; i < self->status->n_models; i++) {
    const Muster__Announcement *model = self->status->models[i];
    if (model->alive && muster_chief_phase_is_preparing ((MusterChiefPhase)model->phase))
      return TRUE;
  }
  return FALSE;
}

/* A save that blocks is a step itself, and one that takes long is told of. */
static gboolean
is_saving (const Look *self)
{
  for (gsize i = 0; i < self->status->n_models; i++) {
    g_autoptr (MusterSaveStatus) saves = muster_save_status_read (self->status->models[i]->saves);
    if (self->status->models[i]->alive && saves != NULL && saves->saving != NULL &&
        !is_slow (self, saves))
      return TRUE;
  }
  return FALSE;
}

/* The median is of the chief's small steps, too, and not of the time between steps: only a long
 * stall is an error. */
static void
check_steps (Look *self)
{
  const Muster__StatusResponse *status = self->status;
  const gint64 others_us =
      MAX (AS_LONG_AS_OTHERS * status->median_step_us, AS_LONG_AS_EVER * status->longest_step_us);
  const gint64 limit_us = MAX (self->doctor->patience_us, others_us);
  g_autofree char *stall = muster_status_stall (status, limit_us);
  if (stall != NULL && !is_preparing (self) && !is_saving (self))
    muster_findings_add (
        self->doctor->findings,
        status->stalled_us >= AS_LONG_AS_OTHERS * limit_us ? MUSTER_FINDING_ERROR
                                                           : MUSTER_FINDING_WARNING,
        MUSTER_CHECK_STEP, self->target,
        muster_status_n_running (status) > 0
            ? "set a longer --patience if steps take that long; otherwise a step blocks, at a "
              "queue or "
              "at a machine that is gone: the tasks' output shows where, and --step-timeout=TIME "
              "ends such a step"
            : "set a longer --patience if the data take that long; otherwise a task is stuck "
              "between two steps: look at its stack, with gdb -p PID or py-spy dump",
        "%s", stall);
}

/* --- */

static void
add_place (const Look *self)
{
  const Muster__StatusResponse *status = self->status;
  g_autofree char *uptime = muster_format_duration (status->uptime_us);
  guint n_ready = 0, n_waiters = 0;
  for (gsize i = 0; i < status->n_models; i++)
    n_ready += status->models[i]->ready;
  for (gsize i = 0; i < status->n_waiters; i++)
    n_waiters += has (status->waiters[i]->waits_for);
  muster_findings_add_place (
      self->doctor->findings, self->target,
      "muster %s, up %s, %u of %" G_GSIZE_FORMAT " model%s ready, %u task%s waiting",
      status->version, uptime, n_ready, status->n_models, status->n_models == 1 ? "" : "s",
      n_waiters, n_waiters == 1 ? "" : "s");
}

void
muster_doctor_look_at_status (const MusterDoctor *self, const char *target,
                              const Muster__StatusResponse *status)
{
  g_autoptr (GHashTable) explained = g_hash_table_new (g_str_hash, g_str_equal);
  Look look = {self, target, status, explained};
  check_server (&look);
  check_master (&look);
  check_limits (&look);
  for (gsize i = 0; i < status->n_models; i++) {
    if (has (status->models[i]->holder))
      g_ptr_array_add (self->holders,
                       muster_holder_new (status->models[i]->holder,
                                          status->models[i]->alive || status->models[i]->failed));
    check_chief (&look, status->models[i]);
    check_saves (&look, status->models[i]);
    check_time (&look, status->models[i]);
  }
  for (gsize i = 0; i < status->n_jobs; i++)
    check_job (&look, status->jobs[i]);
  check_waits (&look);
  check_steps (&look);
  add_place (&look);
}
