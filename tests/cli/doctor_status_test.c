// SPDX-License-Identifier: Apache-2.0
/* What `muster doctor` finds in a master's status, without waiting until it is so. */
#include "cli/doctor/looks.h"

#include "base/version.h"
#include "master/goodput_message_private.h"
#include "master/save_status_message_private.h"
#include "tests/gtest_shim.h"

#define TARGET "grpc://host:1"
#define MINUTE (60 * MUSTER_SECOND)
#define HOUR   (60 * MINUTE)

/* A master with a chief that trains, and has saved; each test makes it worse. */
typedef struct {
  Muster__StatusResponse status;
  Muster__Announcement model, *models[1];
  Muster__SaveStatus saves;
  Muster__Members job, *jobs[1];
  Muster__Member member, left, *members[1], *lefts[1];
  MusterSaveStatus saved;
  MusterFindings *findings;
} Fixture;

static void
fixture_clear (Fixture *self)
{
  muster_findings_free (self->findings);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static void
fixture_init (Fixture *self)
{
  muster__status_response__init (&self->status);
  muster__announcement__init (&self->model);
  self->findings = muster_findings_new ();
  self->models[0] = &self->model;
  self->status.version = (char *)MUSTER_VERSION;
  self->status.models = self->models;
  self->status.n_models = 1;
  self->model.model = (char *)"digits";
  self->model.task = (char *)"chief:0";
  self->model.phase = MUSTER__PHASE__TRAINING;
  self->model.phase_age_us = 5 * HOUR;
  self->model.alive = self->model.prepared = self->model.ready = TRUE;
  self->model.durable_step = 40;
  self->model.durable_age_us = MINUTE;
}

/* An elastic job of one task, another of which is gone. */
static void
fixture_add_job (Fixture *self, const char *why)
{
  muster__members__init (&self->job);
  muster__member__init (&self->member);
  muster__member__init (&self->left);
  self->jobs[0] = &self->job;
  self->members[0] = &self->member;
  self->lefts[0] = &self->left;
  self->status.jobs = self->jobs;
  self->status.n_jobs = 1;
  self->job.model = self->model.model;
  self->job.n = self->job.n_slots = 1;
  self->job.members = self->members;
  self->job.left = self->lefts;
  self->job.n_members = self->job.n_left = 1;
  self->member.age_us = HOUR;
  self->left.task = (char *)"task:3";
  self->left.why = (char *)why;
  self->left.left_age_us = MINUTE;
}

static guint
n_found (Fixture *self)
{
  const MusterDoctor doctor = {.findings = self->findings,
                               .holders = g_ptr_array_new_with_free_func (g_free),
                               .patience_us = 10 * MUSTER_SECOND};
  muster_doctor_look_at_status (&doctor, TARGET, &self->status);
  g_ptr_array_unref (doctor.holders);
  return muster_findings_list (self->findings)->len;
}

/* "chief: WHAT", or how many there are instead of one. */
static const char *
only (Fixture *self, MusterSeverity severity, MusterCheck check)
{
  const guint n = n_found (self);
  const MusterFinding *found =
      n == 1 ? &g_array_index (muster_findings_list (self->findings), MusterFinding, 0) : NULL;
  if (found == NULL)
    return n == 0 ? "nothing" : "more than one";
  MUSTER_EXPECT_EQ (found->severity, severity);
  MUSTER_EXPECT_EQ (found->check, check);
  return found->what;
}

MUSTER_TEST (DoctorStatus, finds_nothing_where_all_is_well)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  fixture_add_job (&all, "left");
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
}

MUSTER_TEST (DoctorStatus, finds_nothing_in_a_job_that_is_over)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.model.phase = MUSTER__PHASE__OVER;
  all.model.alive = all.model.ready = FALSE;
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
}

MUSTER_TEST (DoctorStatus, finds_nothing_where_the_chief_reached_its_last_step)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.model.phase = MUSTER__PHASE__TRAINING;
  all.model.alive = FALSE;
  all.model.ended = (char *)"finished";
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
}

MUSTER_TEST (DoctorStatus, compares_versions)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.status.version = (char *)"0.0.9";
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_WARNING, MUSTER_CHECK_VERSION),
                       "the server is muster 0.0.9, this command is muster " MUSTER_VERSION);
}

MUSTER_TEST (DoctorStatus, tells_of_a_server_that_stops)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.status.draining_us = 12 * MUSTER_SECOND;
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_WARNING, MUSTER_CHECK_MASTER),
                       "the server stops in 12.0 s at the latest");
}

MUSTER_TEST (DoctorStatus, tells_of_a_gateways_master_that_is_away)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.status.master = (char *)"grpc://behind:2";
  all.status.master_failure = (char *)"no answer";
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_ERROR, MUSTER_CHECK_MASTER),
                       "the gateway can't use its master, 'grpc://behind:2': no answer");
}

MUSTER_TEST (DoctorStatus, tells_of_limits_that_are_reached)
{
  g_auto (Fixture) all;
  Muster__Limit limit = MUSTER__LIMIT__INIT, *limits[] = {&limit};
  fixture_init (&all);
  limit.name = (char *)"sessions";
  limit.used = 1;
  limit.limit = 5;
  limit.refused = 3;
  all.status.limits = limits;
  all.status.n_limits = 1;
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
  limit.used = 5;
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_WARNING, MUSTER_CHECK_LIMIT),
                       "the limit of sessions was reached: 5 of 5 in use, refused 3 times");
}

MUSTER_TEST (DoctorStatus, wants_a_durable_checkpoint_in_an_hour)
{
  g_auto (Fixture) old, none, restored;
  fixture_init (&old);
  fixture_init (&restored);
  fixture_init (&none);
  old.model.durable_age_us = 2 * HOUR;
  none.model.durable_step = -1;
  restored.model.durable_age_us = 2 * HOUR;
  restored.model.phase_age_us = MINUTE;
  MUSTER_EXPECT_STREQ (only (&old, MUSTER_FINDING_WARNING, MUSTER_CHECK_SAVE),
                       "the last durable checkpoint is 2h00m old; a failure costs the steps since");
  MUSTER_EXPECT_STREQ (only (&none, MUSTER_FINDING_WARNING, MUSTER_CHECK_SAVE),
                       "no checkpoint was saved in 5h00m of training");
  MUSTER_EXPECT_EQ (n_found (&restored), 0u);
}

static void
fixture_add_saves (Fixture *self)
{
  self->saved = (MusterSaveStatus)MUSTER_SAVE_STATUS_INIT;
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++)
    self->saved.step[i] = 40;
  for (guint i = 0; i < MUSTER_N_SAVE_STATES; i++)
    self->saved.age_us[i] = MINUTE + MUSTER_N_SAVE_STATES - (gint64)i;
  self->saved.n_durable = 1;
  self->saved.n_failed = 2;
  muster__save_status__init (&self->saves);
  self->model.saves = &self->saves;
}

MUSTER_TEST (DoctorStatus, counts_failed_saves_only_until_one_succeeds)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  fixture_add_saves (&all);
  muster_save_status_fill (&all.saves, &all.saved);
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
  all.saved.age_us[MUSTER_SAVE_REQUESTED] = MUSTER_SECOND;
  muster_save_status_fill (&all.saves, &all.saved);
  MUSTER_EXPECT_STREQ (
      only (&all, MUSTER_FINDING_ERROR, MUSTER_CHECK_SAVE),
      "checkpoints can't be saved: 2 failed, 0 skipped; the last durable one is 1m00s old");
}

MUSTER_TEST (DoctorStatus, wants_no_more_saves_where_each_fails)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  fixture_add_saves (&all);
  all.saved.age_us[MUSTER_SAVE_REQUESTED] = MUSTER_SECOND;
  all.model.durable_step = -1;
  muster_save_status_fill (&all.saves, &all.saved);
  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (only (&all, MUSTER_FINDING_ERROR, MUSTER_CHECK_SAVE), "checkpoints can't"));
}

MUSTER_TEST (DoctorStatus, takes_no_save_that_blocks_for_a_stall)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  fixture_add_saves (&all);
  all.status.stalled_us = MINUTE / 2;
  all.saved.saving = (char *)"run/model.ckpt-50";
  all.saved.saving_age_us = MUSTER_SECOND;
  muster_save_status_fill (&all.saves, &all.saved);
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
}

MUSTER_TEST (DoctorStatus, tells_of_a_save_that_takes_much_longer_than_the_last)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  fixture_add_saves (&all);
  all.saved.saving = (char *)"run/model.ckpt-50";
  all.saved.saving_state = MUSTER_SAVE_STAGED;
  all.saved.saving_age_us = 30 * MUSTER_SECOND;
  all.saved.last_us[MUSTER_SAVE_WRITING] = 4 * MUSTER_SECOND;
  muster_save_status_fill (&all.saves, &all.saved);
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
  all.saved.saving_age_us = 41 * MUSTER_SECOND;
  muster_save_status_fill (&all.saves, &all.saved);
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_WARNING, MUSTER_CHECK_SAVE),
                       "the save of 'run/model.ckpt-50' takes long: staged, requested 41.0 s ago");
}

MUSTER_TEST (DoctorStatus, compares_a_step_with_the_others)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.status.stalled_us = 30 * MUSTER_SECOND;
  all.status.median_step_us = 4 * MUSTER_SECOND;
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
  all.status.median_step_us = MUSTER_SECOND;
  all.status.longest_step_us = 16 * MUSTER_SECOND; /* as of an evaluation once in a while */
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
  all.status.longest_step_us = 14 * MUSTER_SECOND;
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_WARNING, MUSTER_CHECK_STEP),
                       "no step has ended for 30.0 s, 0 running");
}

MUSTER_TEST (DoctorStatus, takes_only_a_long_stall_for_an_error)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.status.stalled_us = 2 * MINUTE;
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_ERROR, MUSTER_CHECK_STEP),
                       "no step has ended for 2m00s, 0 running");
}

static gboolean
has_remedy (gint64 n_running, const char *begins)
{
  g_auto (Fixture) all;
  Muster__Limit limit = MUSTER__LIMIT__INIT, *limits[] = {&limit};
  fixture_init (&all);
  limit.name = (char *)"steps";
  limit.used = n_running;
  all.status.limits = limits;
  all.status.n_limits = 1;
  all.status.stalled_us = MINUTE;
  return n_found (&all) == 1 &&
         g_str_has_prefix (
             g_array_index (muster_findings_list (all.findings), MusterFinding, 0).remedy, begins);
}

MUSTER_TEST (DoctorStatus, tells_a_step_that_blocks_from_a_task_that_stands_still)
{
  MUSTER_EXPECT_TRUE (
      has_remedy (1, "set a longer --patience if steps take that long; otherwise a step"));
  MUSTER_EXPECT_TRUE (
      has_remedy (0, "set a longer --patience if the data take that long; otherwise a task"));
}

MUSTER_TEST (DoctorStatus, names_what_most_of_the_time_is_lost_to)
{
  g_auto (Fixture) all;
  MusterGoodput goodput = MUSTER_GOODPUT_INIT;
  Muster__Goodput message = MUSTER__GOODPUT__INIT;
  fixture_init (&all);
  goodput.began_us = 1;
  goodput.spent_us[MUSTER_TIME_TRAINING] = 10 * MINUTE;
  goodput.spent_us[MUSTER_TIME_SAVING] = 9 * MINUTE;
  muster_goodput_fill (&message, &goodput);
  all.model.goodput = &message;
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
  goodput.spent_us[MUSTER_TIME_SAVING] = 20 * MINUTE;
  MUSTER_EXPECT_TRUE (g_str_has_prefix (only (&all, MUSTER_FINDING_WARNING, MUSTER_CHECK_GOODPUT),
                                        "most of the job's time is lost: goodput 33.3 %"));
  MUSTER_EXPECT_STREQ (g_array_index (muster_findings_list (all.findings), MusterFinding, 0).remedy,
                       "save less often, or first to a --fast-dir");
}

MUSTER_TEST (DoctorStatus, notices_a_chief_in_the_future)
{
  g_auto (Fixture) all;
  MusterGoodput goodput = MUSTER_GOODPUT_INIT;
  Muster__Goodput message = MUSTER__GOODPUT__INIT;
  fixture_init (&all);
  goodput.began_us = muster_clock_wall_us (muster_system_clock ()) + HOUR;
  muster_goodput_fill (&message, &goodput);
  all.model.goodput = &message;
  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (only (&all, MUSTER_FINDING_WARNING, MUSTER_CHECK_CLOCK), "clocks differ"));
}

MUSTER_TEST (DoctorStatus, misses_a_task_until_another_has_come)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  fixture_add_job (&all, "silent for 15.0 s");
  all.member.age_us = MINUTE / 2;
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
  all.member.age_us = 2 * MINUTE;
  MUSTER_EXPECT_TRUE (g_str_has_prefix (only (&all, MUSTER_FINDING_WARNING, MUSTER_CHECK_TASKS),
                                        "a task is gone: task:3"));
}

MUSTER_TEST (DoctorStatus, leaves_the_tasks_of_an_elastic_job_time_to_take_over)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  fixture_add_job (&all, "left");
  all.model.alive = FALSE;
  all.model.lost_age_us = MUSTER_SECOND;
  MUSTER_EXPECT_EQ (n_found (&all), 0u);
  all.model.lost_age_us = MINUTE;
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHIEF),
                       "there is no chief: chief:0, lost 1m00s ago, while training");
}

MUSTER_TEST (DoctorStatus, tells_of_a_prepared_model_that_is_not_ready)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.model.ready = FALSE;
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHIEF),
                       "the model isn't ready, although its chief has prepared it");
  MUSTER_EXPECT_STREQ (g_array_index (muster_findings_list (all.findings), MusterFinding, 0).remedy,
                       "`muster wait --meta-graph=FILE --master=" TARGET "` names what is missing");
}

MUSTER_TEST (DoctorStatus, tells_a_reset_from_a_model_that_lacks_something)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.model.ready = all.model.prepared = FALSE;
  all.model.phase = MUSTER__PHASE__UNKNOWN;
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_ERROR, MUSTER_CHECK_CHIEF),
                       "the model isn't ready: the master was reset, and its chief hasn't prepared "
                       "it since");
}

MUSTER_TEST (DoctorStatus, takes_no_stall_for_a_cause_while_the_chief_prepares)
{
  g_auto (Fixture) all;
  fixture_init (&all);
  all.model.phase = MUSTER__PHASE__INITIALISING;
  all.model.phase_age_us = all.status.stalled_us = MINUTE;
  MUSTER_EXPECT_STREQ (only (&all, MUSTER_FINDING_WARNING, MUSTER_CHECK_CHIEF),
                       "the chief has not prepared the model yet: chief:0 is initialising for "
                       "1m00s");
}

/* A task has waited for a minute. */
static guint
n_found_while_waiting (Fixture *self)
{
  Muster__Waiter waiter = MUSTER__WAITER__INIT, *waiters[] = {&waiter};
  waiter.model = self->model.model;
  waiter.waits_for = (char *)"ready";
  waiter.age_us = MINUTE;
  self->status.waiters = waiters;
  self->status.n_waiters = 1;
  return n_found (self);
}

MUSTER_TEST (DoctorStatus, names_no_wait_whose_cause_it_has_named)
{
  g_auto (Fixture) well, lost, preparing, paused, both;
  fixture_init (&well);
  fixture_init (&lost);
  fixture_init (&preparing);
  fixture_init (&paused);
  fixture_init (&both);
  fixture_add_job (&paused, "left");
  fixture_add_job (&both, "left");
  lost.model.alive = both.model.alive = FALSE;
  lost.model.lost_age_us = both.model.lost_age_us = MINUTE;
  preparing.model.phase = MUSTER__PHASE__RESTORING;
  paused.job.min_tasks = both.job.min_tasks = 3;
  paused.job.waiting = both.job.waiting = TRUE;

  MUSTER_EXPECT_EQ (n_found_while_waiting (&well), 1u);
  MUSTER_EXPECT_EQ (n_found_while_waiting (&lost), 1u);
  MUSTER_EXPECT_EQ (n_found_while_waiting (&preparing), 1u);
  MUSTER_EXPECT_EQ (n_found_while_waiting (&paused), 1u);
  MUSTER_EXPECT_STREQ (only (&both, MUSTER_FINDING_ERROR, MUSTER_CHECK_TASKS),
                       "the job doesn't train, waiting for tasks: 1 of at least 3");
}
