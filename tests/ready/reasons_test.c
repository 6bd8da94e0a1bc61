// SPDX-License-Identifier: Apache-2.0
#include "ready/situation_private.h"

#include "ready/backoff.h"
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"

#include <string.h>

#define TARGET "grpc://chief:2222"

typedef struct {
  MusterFakeClock *clock;
  MusterReasons *reasons;
  MusterAnnouncement chief;
  MusterReadiness readiness;
  MusterSituation situation;
} Fixture;

/* A master that keeps announcements, where nobody has registered and nothing is known to miss. */
static void
set_up (Fixture *self)
{
  *self = (Fixture){.clock = muster_fake_clock_new ()};
  self->reasons = muster_reasons_new (MUSTER_CLOCK (self->clock));
  self->chief = (MusterAnnouncement)MUSTER_ANNOUNCEMENT_INIT;
  self->chief.model = (char *)"digits";
  self->chief.task = (char *)"worker:0";
  self->chief.who = (char *)"host:4711";
  self->chief.epoch = 1;
  self->chief.alive = TRUE;
  self->readiness.keeps_announcements = TRUE;
  self->situation = (MusterSituation){.target = TARGET, .readiness = &self->readiness};
}

static void
tear_down (Fixture *self)
{
  muster_reasons_free (self->reasons);
  g_object_unref (self->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static const MusterReason *
update (Fixture *self, const char *component)
{
  self->situation.version++;
  muster_reasons_update (self->reasons, &self->situation);
  return muster_reasons_find (muster_reasons_list (self->reasons), component);
}

static const MusterReason *
in_phase (Fixture *self, MusterChiefPhase phase)
{
  self->chief.phase = phase;
  self->readiness.chief = &self->chief;
  return update (self, "chief");
}

MUSTER_TEST (Reason, has_a_server_that_is_up_where_there_is_a_session)
{
  g_auto (Fixture) it = {0};
  set_up (&it);

  const MusterReason *server = update (&it, "server");

  MUSTER_ASSERT_NOT_NULL (server);
  MUSTER_EXPECT_STREQ (server->state, "up");
  MUSTER_EXPECT_STREQ (server->owner, "chief:2222");
  MUSTER_EXPECT_TRUE (server->is_well);
  MUSTER_EXPECT_NULL (server->hint);
}

MUSTER_TEST (Reason, distinguishes_a_server_that_was_never_reached_from_one_that_was_lost)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  g_autoptr (GError) failure =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "nobody answers");
  it.situation.readiness = NULL;
  it.situation.failure = failure;
  const MusterReason *server = update (&it, "server");
  MUSTER_EXPECT_STREQ (server->state, "unreachable");
  MUSTER_EXPECT_STREQ (server->text, "nobody answers");
  MUSTER_EXPECT_STREQ (server->last_error, "nobody answers");
  MUSTER_EXPECT_FALSE (server->is_well);

  it.situation.failure = NULL;
  MUSTER_EXPECT_STREQ (update (&it, "server")->state, "up");
  it.situation.failure = failure;

  MUSTER_EXPECT_STREQ (update (&it, "server")->state, "lost");
}

MUSTER_TEST (Reason, calls_a_server_silent_only_if_it_has_ever_answered)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  g_autoptr (GError) late =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "no answer in 30 s");
  (void)update (&it, "server");
  it.situation.readiness = NULL;
  it.situation.failure = late;

  MUSTER_EXPECT_STREQ (update (&it, "server")->state, "silent");
}

MUSTER_TEST (Reason, names_the_server_s_state_by_the_failure)
{
  const struct {
    MusterError code;
    const char *state;
  } failures[] = {{MUSTER_ERROR_ABORTED, "lost"},
                  {MUSTER_ERROR_CANCELLED, "lost"},
                  {MUSTER_ERROR_DEADLINE_EXCEEDED, "unreachable"},
                  {MUSTER_ERROR_INVALID_ARGUMENT, "up"}};
  for (gsize i = 0; i < G_N_ELEMENTS (failures); i++) {
    g_auto (Fixture) it = {0};
    set_up (&it);
    g_autoptr (GError) failure =
        g_error_new_literal (MUSTER_ERROR, (gint)failures[i].code, "as it is");
    it.situation.readiness = NULL;
    it.situation.failure = failure;
    MUSTER_EXPECT_STREQ (update (&it, "server")->state, failures[i].state);
  }
}

/* Nobody has lost anything, and there is nothing to do but to wait. */
MUSTER_TEST (Reason, says_that_the_chief_has_reset_the_master)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  g_autoptr (GError) failure = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_ABORTED,
                                                    "Session 1 was ended " MUSTER_BY_RESET);
  it.situation.readiness = NULL;
  it.situation.failure = failure;

  const MusterReason *server = update (&it, "server");

  MUSTER_EXPECT_STREQ (server->text,
                       "the master was reset; waiting for the chief to prepare the model");
  MUSTER_EXPECT_NULL (server->hint);
}

MUSTER_TEST (Reason, keeps_what_failed_before_the_deadline_cut_an_attempt_short)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  g_autoptr (GError) refused =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "connection refused");
  g_autoptr (GError) late =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "not connected");
  it.situation.readiness = NULL;
  it.situation.failure = refused;
  (void)update (&it, "server");
  it.situation.failure = late;

  const MusterReason *server = update (&it, "server");

  MUSTER_EXPECT_STREQ (server->state, "unreachable");
  MUSTER_EXPECT_STREQ (server->text, "connection refused");
}

/* The master answers; what holds the chief up is the store. */
MUSTER_TEST (Reason, keeps_the_failure_of_a_store_where_nothing_else_is_known)
{
  g_auto (Fixture) it = {0};
  g_autoptr (GError) failure =
      g_error_new (G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE, "'s3://bucket/run': no connection");
  set_up (&it);
  it.situation.readiness = NULL;
  it.situation.failure = failure;

  const MusterReason *variables = update (&it, "variables");

  MUSTER_ASSERT_NOT_NULL (variables);
  MUSTER_EXPECT_FALSE (variables->is_well);
  MUSTER_EXPECT_STREQ (variables->text, failure->message);
  const MusterReason *server = muster_reasons_find (muster_reasons_list (it.reasons), "server");
  MUSTER_EXPECT_STREQ (server->state, "up");
  MUSTER_EXPECT_TRUE (muster_reasons_first (muster_reasons_list (it.reasons)) == variables);
}

MUSTER_TEST (Reason, believes_the_diagnosis_before_the_failure)
{
  const char *const states[] = {"not-resolved", "refused", "unreachable", "silent", "unavailable"};
  g_auto (Fixture) it = {0};
  set_up (&it);
  g_autoptr (GError) failure =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "nobody answers");
  it.situation.readiness = NULL;
  it.situation.failure = failure;
  it.situation.diagnosis = "TCP connected, no HTTP/2 settings received";
  for (gsize i = 0; i < G_N_ELEMENTS (states); i++) {
    it.situation.server_state = states[i];
    const MusterReason *server = update (&it, "server");
    MUSTER_EXPECT_STREQ (server->state, states[i]);
    MUSTER_EXPECT_STREQ (server->text, "TCP connected, no HTTP/2 settings received");
    MUSTER_EXPECT_TRUE (server->hint != NULL);
    MUSTER_EXPECT_PTR_EQ (muster_reasons_first (muster_reasons_list (it.reasons)), server);
  }
}

/* A master that answers, but keeps a session waiting until its whole cluster is there. */
MUSTER_TEST (Reason, hints_at_the_task_that_keeps_a_master_silent)
{
  const char *const tasks[] = {"ps:1: refused", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.situation.readiness = NULL;
  it.situation.server_state = "silent";
  it.situation.diagnosis = "up, but CreateSession has had no answer for 2.0 s";
  it.situation.tasks = tasks;

  const MusterReason *server = update (&it, "server");

  MUSTER_EXPECT_STREQ (server->hint, "start ps:1: the master waits for all its tasks");
}

/* Where each task has a master of its own, another one is of no use. */
MUSTER_TEST (Reason, hints_at_the_tasks_own_server_where_it_is_refused)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.situation.readiness = NULL;
  it.situation.server_state = "refused";
  it.situation.diagnosis = "TCP refused";

  MUSTER_EXPECT_STREQ (update (&it, "server")->hint,
                       "`muster serve --listen=HOST:PORT` starts a master");
  it.situation.chief = "chief:0=chief0:2222";
  MUSTER_EXPECT_STREQ (update (&it, "server")->hint,
                       "start this task's own server, grpc://chief:2222, with `muster serve "
                       "--master=tensorflow` or as "
                       "a tf.distribute.Server");
  it.situation.chief = NULL; /* this task is the chief */
  it.situation.has_cluster = TRUE;
  MUSTER_EXPECT_STREQ (update (&it, "server")->hint,
                       "start this task's own server, grpc://chief:2222, with `muster serve "
                       "--master=tensorflow` or as "
                       "a tf.distribute.Server");
}

/* Whatever other tasks there are: nobody chose that address. */
MUSTER_TEST (Reason, hints_at_the_tasks_gateway_where_that_does_not_answer)
{
  const char *const tasks[] = {"ps:1: refused", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.situation.readiness = NULL;
  it.situation.server_state = "silent";
  it.situation.diagnosis = "this task's gateway, /tmp/muster-0/g, connected in 1 ms, no answer";
  it.situation.tasks = tasks;

  MUSTER_EXPECT_STREQ (
      update (&it, "server")->hint,
      "see the log of this task's `muster serve --master=tensorflow`: TensorFlow may take two "
      "minutes to start; else restart it");
  it.situation.server_state = "refused";
  MUSTER_EXPECT_STREQ (update (&it, "server")->hint,
                       "start this task's `muster serve --master=tensorflow` again");
}

MUSTER_TEST (Reason, says_that_no_chief_has_ever_registered_and_how_to_start_one)
{
  g_auto (Fixture) it = {0};
  set_up (&it);

  const MusterReason *chief = update (&it, "chief");

  MUSTER_EXPECT_STREQ (chief->state, "never-registered");
  MUSTER_EXPECT_STREQ (chief->text, "no chief has ever registered");
  MUSTER_ASSERT_NOT_NULL (chief->hint);
  MUSTER_EXPECT_TRUE (
      strstr (chief->hint, "--task=chief:0` or `muster prepare`, at --master=" TARGET) != NULL);
  MUSTER_EXPECT_PTR_EQ (muster_reasons_first (muster_reasons_list (it.reasons)), chief);
  MUSTER_EXPECT_NULL (muster_reasons_find (muster_reasons_list (it.reasons), "job"));
}

/* Another process that prepares "local" prepares an engine of its own. */
MUSTER_TEST (Reason, names_no_command_for_a_master_that_no_other_process_reaches)
{
  static const char *const targets[] = {"local", "tensorflow", "tensorflow:/opt/venv"};
  char *missing[] = {(char *)"v", NULL};
  for (gsize i = 0; i < G_N_ELEMENTS (targets); i++) {
    g_auto (Fixture) it = {0};
    set_up (&it);
    it.situation.target = targets[i];
    it.readiness.keeps_announcements = FALSE;
    it.readiness.missing = missing;
    g_autofree char *serve = g_strdup_printf ("`muster serve --master=%s`", targets[i]);
    g_autofree char *own = g_strdup_printf (
        "prepare the model in this process: no other one reaches '%s'; to share it "
        "between processes, start %s",
        targets[i], serve);
    g_autofree char *kept = g_strdup_printf ("a server stores it: %s", serve);

    MUSTER_EXPECT_STREQ (update (&it, "variables")->hint, own);
    MUSTER_EXPECT_STREQ (update (&it, "chief")->hint, kept);
  }
}

/* What a worker's own server is called is of no use to the chief. */
MUSTER_TEST (Reason, names_the_chief_where_tasks_have_masters_of_their_own)
{
  char *missing[] = {(char *)"v", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.situation.target = "grpc://worker1:2222";
  it.situation.chief = "chief:0=chief0:2222";

  MUSTER_EXPECT_STREQ (
      update (&it, "chief")->hint,
      "start chief:0 with `muster prepare` and its own TF_CONFIG, for its server at chief0:2222");
  it.chief.alive = FALSE;
  MUSTER_EXPECT_STREQ (in_phase (&it, MUSTER_CHIEF_RESTORING)->hint,
                       "start chief:0 again with `muster prepare` and its own TF_CONFIG, for its "
                       "server at chief0:2222");
  it.readiness.keeps_announcements = FALSE;
  it.readiness.missing = missing;
  MUSTER_EXPECT_STREQ (
      update (&it, "variables")->hint,
      "start chief:0 with `muster prepare` and its own TF_CONFIG, for its server at chief0:2222");
  MUSTER_EXPECT_NULL (update (&it, "chief")->hint); /* no gateway hears of all of them */
}

/* No firewall lies between this process and its child. */
MUSTER_TEST (Reason, asks_for_more_time_where_tensorflows_runtime_has_not_started_in_time)
{
  static const char *const targets[] = {"tensorflow", "tensorflow:/opt/venv"};
  for (gsize i = 0; i < G_N_ELEMENTS (targets); i++) {
    g_auto (Fixture) it = {0};
    set_up (&it);
    g_autoptr (GError) late = g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
                                                   "TensorFlow's runtime is still starting");
    it.situation.target = targets[i];
    it.situation.readiness = NULL;
    it.situation.failure = late;

    const MusterReason *server = update (&it, "server");

    MUSTER_EXPECT_STREQ (server->text, "TensorFlow's runtime is still starting");
    MUSTER_EXPECT_TRUE (strstr (server->hint, "--timeout") != NULL);
    MUSTER_EXPECT_TRUE (strstr (server->hint, "firewall") == NULL);
  }
}

MUSTER_TEST (Reason, follows_the_chief_through_its_phases)
{
  const struct {
    MusterChiefPhase phase;
    const char *state;
    gboolean is_well;
  } phases[] = {{MUSTER_CHIEF_STARTING, "starting", FALSE},
                {MUSTER_CHIEF_RESTORING, "restoring", FALSE},
                {MUSTER_CHIEF_INITIALISING, "initialising", FALSE},
                {MUSTER_CHIEF_LOCAL_INIT, "local-init", FALSE},
                {MUSTER_CHIEF_PREPARED, "prepared", TRUE},
                {MUSTER_CHIEF_TRAINING, "training", TRUE}};
  g_auto (Fixture) it = {0};
  set_up (&it);
  for (gsize i = 0; i < G_N_ELEMENTS (phases); i++) {
    const MusterReason *chief = in_phase (&it, phases[i].phase);
    MUSTER_EXPECT_STREQ (chief->state, phases[i].state);
    MUSTER_EXPECT_EQ (chief->is_well, phases[i].is_well);
    MUSTER_EXPECT_STREQ (chief->owner, "worker:0");
    MUSTER_EXPECT_STREQ (update (&it, "job")->state, "running");
  }
  MUSTER_EXPECT_STREQ (in_phase (&it, MUSTER_CHIEF_LOCAL_INIT)->text,
                       "in local init (worker:0 at host:4711)");
  it.chief.phase = MUSTER_CHIEF_RESTORING;
  it.chief.detail = (char *)"model.ckpt-1200";
  MUSTER_EXPECT_STREQ (update (&it, "chief")->text,
                       "restoring model.ckpt-1200 (worker:0 at host:4711)");
}

MUSTER_TEST (Reason, has_why_a_chief_that_trained_is_without_a_session)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.chief.detail = (char *)"ps:0 doesn't answer";
  const MusterReason *chief = in_phase (&it, MUSTER_CHIEF_TRAINING);
  MUSTER_EXPECT_STREQ (chief->state, "no-session");
  MUSTER_EXPECT_FALSE (chief->is_well);
  MUSTER_EXPECT_STREQ (chief->text,
                       "without a session (worker:0 at host:4711): ps:0 doesn't answer");
}

MUSTER_TEST (Reason, reports_a_chief_that_was_lost_and_in_which_phase)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  muster_fake_clock_pass (it.clock, 100 * MUSTER_SECOND);
  gint64 now_us = muster_clock_now_us (MUSTER_CLOCK (it.clock));
  it.chief.alive = FALSE;
  it.chief.lost_age_us = 7 * MUSTER_SECOND;
  it.chief.phase_age_us = 40 * MUSTER_SECOND;

  const MusterReason *chief = in_phase (&it, MUSTER_CHIEF_INITIALISING);

  MUSTER_EXPECT_STREQ (chief->state, "lost");
  MUSTER_EXPECT_STREQ (chief->text, "lost while it was initialising (worker:0 at host:4711)");
  MUSTER_EXPECT_FALSE (chief->is_well);
  MUSTER_EXPECT_EQ (chief->since_us, now_us - 7 * MUSTER_SECOND);
  MUSTER_EXPECT_TRUE (chief->hint != NULL);
  it.readiness.is_ready = TRUE; /* what it prepared is still there */
  MUSTER_EXPECT_TRUE (update (&it, "chief")->is_well);
}

/* as `muster prepare` does */
MUSTER_TEST (Reason, does_not_miss_a_chief_that_has_prepared_the_model_and_left)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.chief.alive = FALSE;
  it.chief.prepared = TRUE;

  const MusterReason *chief = in_phase (&it, MUSTER_CHIEF_PREPARED);

  MUSTER_EXPECT_STREQ (chief->state, "prepared");
  MUSTER_EXPECT_STREQ (chief->text, "prepared the model and exited (worker:0 at host:4711)");
  MUSTER_EXPECT_TRUE (chief->is_well);
  it.chief.prepared = FALSE; /* reset since */
  MUSTER_EXPECT_STREQ (update (&it, "chief")->state, "lost");
}

MUSTER_TEST (Reason, is_notified_that_the_job_is_over_and_asks_for_no_chief)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  muster_fake_clock_pass (it.clock, 1000 * MUSTER_SECOND);
  it.chief.step = 20000;
  it.chief.phase_age_us = 192 * MUSTER_SECOND;

  MUSTER_EXPECT_NULL (in_phase (&it, MUSTER_CHIEF_OVER));

  const MusterReason *job = update (&it, "job");
  MUSTER_ASSERT_NOT_NULL (job);
  MUSTER_EXPECT_STREQ (job->state, "over");
  MUSTER_EXPECT_STREQ (job->text, "its chief ended the job at step 20000");
  MUSTER_EXPECT_EQ (muster_clock_now_us (MUSTER_CLOCK (it.clock)) - job->since_us,
                    192 * MUSTER_SECOND);
  MUSTER_EXPECT_PTR_EQ (muster_reasons_first (muster_reasons_list (it.reasons)), job);
  it.chief.step = -1;
  MUSTER_EXPECT_STREQ (update (&it, "job")->text, "its chief ended the job");
}

MUSTER_TEST (Reason, says_that_the_job_waits_for_tasks_and_how_to_start_them)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.readiness.n_tasks = 1;
  it.readiness.min_tasks = 3;

  const MusterReason *chief = update (&it, "chief");

  const MusterReason *job = muster_reasons_find (muster_reasons_list (it.reasons), "job");
  MUSTER_ASSERT_NOT_NULL (job);
  MUSTER_EXPECT_STREQ (job->state, "waiting-for-tasks");
  MUSTER_EXPECT_STREQ (job->text, "waiting for tasks: 1 of at least 3");
  MUSTER_EXPECT_STREQ (job->hint,
                       "start 2 more with `muster train --task=auto --master=" TARGET "`");
  MUSTER_EXPECT_PTR_EQ (muster_reasons_first (muster_reasons_list (it.reasons)), job);
  MUSTER_EXPECT_STREQ (chief->state, "never-registered");
  MUSTER_EXPECT_NULL (chief->hint);   /* a task becomes it */
  it.situation.chief = "chief:0=c:1"; /* of a TensorFlow cluster */
  MUSTER_EXPECT_STREQ (update (&it, "job")->hint,
                       "start 2 more of the cluster's tasks with `muster train --task=…`");
  it.situation.chief = NULL;
  it.readiness.n_tasks = it.readiness.min_tasks = 0;
  MUSTER_EXPECT_TRUE (update (&it, "chief")->hint != NULL);
  MUSTER_EXPECT_NULL (update (&it, "job"));
}

MUSTER_TEST (Reason,
             does_not_take_missing_tasks_for_a_fault_while_a_chief_lives_or_the_model_is_ready)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.readiness.n_tasks = 1;
  it.readiness.min_tasks = 2;
  const MusterReason *chief = in_phase (&it, MUSTER_CHIEF_INITIALISING);
  const MusterReason *job = muster_reasons_find (muster_reasons_list (it.reasons), "job");

  MUSTER_EXPECT_STREQ (job->state, "waiting-for-tasks");
  MUSTER_EXPECT_STREQ (job->owner, "digits");
  MUSTER_EXPECT_TRUE (job->is_well);
  MUSTER_EXPECT_NULL (job->hint);
  MUSTER_EXPECT_PTR_EQ (muster_reasons_first (muster_reasons_list (it.reasons)), chief);
  it.chief.alive = FALSE;
  MUSTER_EXPECT_FALSE (update (&it, "job")->is_well);
  it.readiness.is_ready = TRUE;
  MUSTER_EXPECT_TRUE (update (&it, "job")->is_well);
}

MUSTER_TEST (Reason, takes_missing_tasks_for_the_cause_while_a_job_that_trained_is_paused)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.readiness.n_tasks = 1;
  it.readiness.min_tasks = 2;
  (void)in_phase (&it, MUSTER_CHIEF_TRAINING);

  const MusterReason *job = muster_reasons_find (muster_reasons_list (it.reasons), "job");

  MUSTER_EXPECT_FALSE (job->is_well);
  MUSTER_EXPECT_TRUE (strstr (job->hint, "start 1 more") != NULL);
  MUSTER_EXPECT_PTR_EQ (muster_reasons_first (muster_reasons_list (it.reasons)), job);
}

MUSTER_TEST (Reason, says_how_a_chiefs_run_ended)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.chief.ended = (char *)"the loss is NaN";
  it.chief.failed = TRUE;
  it.chief.alive = FALSE;
  const MusterReason *failed = in_phase (&it, MUSTER_CHIEF_TRAINING);
  MUSTER_EXPECT_STREQ (failed->state, "lost");
  MUSTER_EXPECT_TRUE (g_str_has_prefix (failed->text, "failed while it was training"));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (failed->text, ": the loss is NaN"));

  it.chief.failed = FALSE;
  it.chief.ended = (char *)"preempted";
  const MusterReason *preempted = update (&it, "chief");
  MUSTER_EXPECT_TRUE (g_str_has_prefix (preempted->text, "preempted while it was training"));
}

MUSTER_TEST (Reason, knows_nothing_of_a_chief_where_no_announcements_are_kept)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.readiness.keeps_announcements = FALSE;
  it.readiness.chief = &it.chief; /* not to be believed */

  const MusterReason *chief = update (&it, "chief");

  MUSTER_EXPECT_STREQ (chief->state, "unknown");
  MUSTER_EXPECT_TRUE (chief->is_well);
  MUSTER_EXPECT_TRUE (strstr (chief->hint, "muster serve --master=" TARGET) != NULL);
  MUSTER_EXPECT_NULL (muster_reasons_find (muster_reasons_list (it.reasons), "job"));
  it.situation.readiness = NULL;
  MUSTER_EXPECT_STREQ (update (&it, "chief")->state, "unknown");
}

MUSTER_TEST (Reason, takes_another_graph_for_a_fault_only_where_variables_are_missing)
{
  char *missing[] = {(char *)"v", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  MUSTER_EXPECT_NULL (update (&it, "graph"));
  it.readiness.graph_difference = (char *)"node 'v' has another shape";

  const MusterReason *graph = update (&it, "graph");
  MUSTER_ASSERT_NOT_NULL (graph);
  MUSTER_EXPECT_TRUE (graph->is_well);
  MUSTER_EXPECT_STREQ (graph->text, "differs from the chief's: node 'v' has another shape");

  it.readiness.missing = missing;
  MUSTER_EXPECT_FALSE (update (&it, "graph")->is_well);
  MUSTER_EXPECT_TRUE (strstr (update (&it, "graph")->hint, "the same meta graph") != NULL);
  missing[0] = (char *)"muster/begun"; /* `prepare` without --tasks */
  MUSTER_EXPECT_TRUE (g_str_has_prefix (update (&it, "graph")->text, "positions are missing"));
  MUSTER_EXPECT_TRUE (strstr (update (&it, "graph")->hint, "--tasks=N") != NULL);

  (void)in_phase (&it, MUSTER_CHIEF_OVER); /* then it is of no interest */
  MUSTER_EXPECT_NULL (update (&it, "graph"));
}

/* Its master is another, and its graph isn't known here. */
MUSTER_TEST (Reason, says_that_the_chief_of_a_cluster_has_no_positions)
{
  char *missing[] = {(char *)"muster/begun", (char *)"muster/done", NULL};
  char *all[] = {(char *)"v", (char *)"muster/begun", NULL};
  for (int keeps = 0; keeps <= 1; keeps++) {
    g_auto (Fixture) it = {0};
    set_up (&it);
    it.situation.chief = "chief:0=host:2222";
    it.readiness.keeps_announcements = keeps;
    it.readiness.missing = all;
    const char *component = keeps ? "chief" : "variables";
    MUSTER_EXPECT_TRUE (g_str_has_prefix (update (&it, component)->hint, "start chief:0 with"));
    it.readiness.missing = missing;

    (void)update (&it, "chief");

    const MusterReason *first = muster_reasons_first (muster_reasons_list (it.reasons));
    MUSTER_EXPECT_STREQ (first->component, component);
    MUSTER_EXPECT_STREQ (first->hint,
                         "start chief:0 again with --positions, or all other tasks without");
  }
}

MUSTER_TEST (Reason, names_each_task_that_does_not_answer)
{
  const char *const tasks[] = {"ps:1: refused", "ps:2: no such name", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.situation.tasks = tasks;
  (void)in_phase (&it, MUSTER_CHIEF_TRAINING);

  const MusterReason *first = muster_reasons_first (muster_reasons_list (it.reasons));

  MUSTER_EXPECT_STREQ (first->component, "task");
  MUSTER_EXPECT_STREQ (first->owner, "ps:1");
  MUSTER_EXPECT_STREQ (first->text, "ps:1 does not answer: refused");
  MUSTER_EXPECT_STREQ (first->last_error, "refused");
  MUSTER_EXPECT_STREQ (first->hint, "start ps:1");
}

/* Nobody has answered since, and no time was left to look again. */
MUSTER_TEST (Reason, keeps_the_tasks_that_did_not_answer_before_the_deadline)
{
  const char *const tasks[] = {"ps:1: refused", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  g_autoptr (GError) late =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "no answer in 6 s");
  it.situation.readiness = NULL;
  it.situation.server_state = "silent";
  it.situation.tasks = tasks;
  const gint64 since_us = update (&it, "task")->since_us;
  muster_fake_clock_pass (it.clock, MUSTER_SECOND);
  it.situation.server_state = NULL;
  it.situation.tasks = NULL;
  it.situation.failure = late;

  const MusterReason *task = update (&it, "task");

  MUSTER_ASSERT_NOT_NULL (task);
  MUSTER_EXPECT_STREQ (task->text, "ps:1 does not answer: refused");
  MUSTER_EXPECT_EQ (task->since_us, since_us);
  it.situation.failure = NULL;
  MUSTER_EXPECT_NULL (update (&it, "task"));
}

MUSTER_TEST (Reason, groups_missing_variables_by_the_task_that_owns_them)
{
  const MusterVariableInfo variables[] = {
      {.name = "a", .device = "/job:ps/task:1"},
      {.name = "b", .device = "/job:ps/replica:0/task:0/device:CPU:0"},
      {.name = "c", .device = "/job:ps/task:0"},
      {.name = "d", .device = "/job:ps/task:0"},
      {.name = "e", .device = ""}};
  char *missing[] = {(char *)"a", (char *)"b", (char *)"c:0", (char *)"d", (char *)"f", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.situation.variables = variables;
  it.situation.n_variables = G_N_ELEMENTS (variables);
  it.readiness.missing = missing;

  const MusterReason *found = update (&it, "variables");

  MUSTER_EXPECT_STREQ (found->state, "missing");
  MUSTER_EXPECT_STREQ (found->text, "missing 5: ps:0 3 (b, c:0, …), on no task 1 (f), ps:1 1");
  MUSTER_EXPECT_EQ (found->n_missing, 5U);
  MUSTER_EXPECT_EQ (found->n_total, 5U);
  MUSTER_ASSERT_NOT_NULL (found->names);
  MUSTER_EXPECT_EQ (g_strv_length (found->names), 5U);
  MUSTER_EXPECT_NULL (found->owner);
}

MUSTER_TEST (Reason, keeps_long_lists_out_of_the_text)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();
  for (int i = 0; i < 10000; i++)
    g_strv_builder_add (builder, "a_variable_with_a_name");
  g_auto (GStrv) missing = g_strv_builder_end (builder);
  it.readiness.missing = missing;
  const MusterVariableInfo only = {.name = "a_variable_with_a_name", .device = ""};
  it.situation.variables = &only;
  it.situation.n_variables = 1;

  const MusterReason *found = update (&it, "variables");

  MUSTER_EXPECT_LT (strlen (found->text), 200U);
  MUSTER_EXPECT_EQ (g_strv_length (found->names), 10000U);
  MUSTER_EXPECT_EQ (found->n_total, 0U); /* unknown: the ready op looks at more than these */
  it.readiness.missing = NULL;
}

MUSTER_TEST (Reason, finds_all_well_only_when_the_model_is_known_to_be_ready)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  (void)in_phase (&it, MUSTER_CHIEF_PREPARED);
  MUSTER_ASSERT_NOT_NULL (muster_reasons_first (muster_reasons_list (it.reasons)));
  MUSTER_EXPECT_STREQ (muster_reasons_first (muster_reasons_list (it.reasons))->component,
                       "variables");
  MUSTER_EXPECT_STREQ (muster_reasons_first (muster_reasons_list (it.reasons))->state, "unknown");

  it.readiness.why_not_ready = (char *)"Attempting to use uninitialized value v";
  MUSTER_EXPECT_STREQ (update (&it, "variables")->text, "Attempting to use uninitialized value v");
  it.readiness.is_ready = TRUE;

  MUSTER_EXPECT_STREQ (update (&it, "variables")->state, "initialised");
  MUSTER_EXPECT_NULL (muster_reasons_first (muster_reasons_list (it.reasons)));
}

MUSTER_TEST (Reason, keeps_since_while_the_state_stays)
{
  char *two[] = {(char *)"v", (char *)"w", NULL};
  char *one[] = {(char *)"v", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.readiness.missing = two;
  gint64 began_us = update (&it, "variables")->since_us;
  muster_fake_clock_pass (it.clock, 5 * MUSTER_SECOND);

  it.readiness.missing = one;
  MUSTER_EXPECT_EQ (update (&it, "variables")->since_us, began_us);

  it.readiness.is_ready = TRUE;
  MUSTER_EXPECT_EQ (update (&it, "variables")->since_us, began_us + 5 * MUSTER_SECOND);
}

MUSTER_TEST (Reason, is_the_same_while_the_situation_has_the_same_version)
{
  char *missing[] = {(char *)"v", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.readiness.missing = missing;
  (void)update (&it, "variables");
  GPtrArray *list = muster_reasons_list (it.reasons);

  muster_reasons_update (it.reasons, &it.situation);
  MUSTER_EXPECT_PTR_EQ (muster_reasons_list (it.reasons), list);

  it.readiness.is_ready = TRUE;
  MUSTER_EXPECT_STREQ (update (&it, "variables")->state, "initialised");
}

MUSTER_TEST (Reason, counts_a_chief_s_phase_from_its_own_announcement)
{
  g_auto (Fixture) it = {0};
  set_up (&it);
  muster_fake_clock_pass (it.clock, 100 * MUSTER_SECOND);
  gint64 now_us = muster_clock_now_us (MUSTER_CLOCK (it.clock));
  it.chief.phase_age_us = 12 * MUSTER_SECOND;

  MUSTER_EXPECT_EQ (in_phase (&it, MUSTER_CHIEF_RESTORING)->since_us, now_us - 12 * MUSTER_SECOND);

  muster_fake_clock_pass (it.clock, MUSTER_SECOND);
  MUSTER_EXPECT_EQ (update (&it, "chief")->since_us, now_us - 12 * MUSTER_SECOND);
  it.chief.epoch = 2; /* another chief, just begun */
  it.chief.phase_age_us = 0;
  MUSTER_EXPECT_EQ (update (&it, "chief")->since_us, now_us + MUSTER_SECOND);
}

MUSTER_TEST (Reason, is_copied_whole)
{
  char *missing[] = {(char *)"v", NULL};
  g_auto (Fixture) it = {0};
  set_up (&it);
  it.readiness.missing = missing;
  (void)update (&it, "variables");

  g_autoptr (GPtrArray) copy = muster_reasons_copy (it.reasons);
  it.readiness.missing = NULL;
  (void)update (&it, "variables");

  const MusterReason *found = muster_reasons_find (copy, "variables");
  MUSTER_ASSERT_NOT_NULL (found);
  MUSTER_EXPECT_STREQ (found->text, "missing 1: v");
  MUSTER_EXPECT_STREQ (found->names[0], "v");
}
