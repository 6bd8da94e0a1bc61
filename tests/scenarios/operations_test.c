// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "server/server.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"
#include "train/monitored/scaffold.h"

#include "session/manager.h"

/* The session manager's main paths once more, on real sockets: on muster's own server, or on the
 * one that $MUSTER_TEST_TARGET names (operations_on_tensorflow_test.py starts TensorFlow's). The
 * model is TensorFlow's own export, with the ops that its Scaffold adds: a gate over the global
 * variables, and a ready op that covers this session's local variable as well. */

#define MODEL "tests/fixtures/linreg.meta"

typedef struct {
  MusterMaster *local;  /* (owned) (nullable) behind the server of ours */
  MusterServer *server; /* (owned) (nullable) */
  MusterMaster *master; /* (owned) */
  MusterScaffold *scaffold;
  MusterSaver *saver;
  MusterSessionManager *manager;
  MusterSessionReport report; /* of the last verb */
  GError *error;              /* of the last verb */
} Job;

static char *
start_server (Job *job)
{
  job->local = muster_local_master_new ();
  job->server = muster_server_new (job->local, NULL);
  int port = muster_server_listen (job->server, "127.0.0.1:0", &job->error);
  MUSTER_EXPECT_NO_ERROR (job->error);
  muster_server_start (job->server);
  return g_strdup_printf ("grpc://127.0.0.1:%d", port);
}

static MusterSessionManager *
new_manager (Job *job, const char *gate)
{
  MusterSessionManagerOptions options = {
      .local_init_op = muster_scaffold_local_init_op (job->scaffold),
      .ready_op = muster_scaffold_ready_op (job->scaffold),
      .ready_for_local_init_op = gate,
      .model = "linreg",
  };
  return muster_session_manager_new (muster_scaffold_graph (job->scaffold), &options, &job->error);
}

/* A server that others use too is emptied first. */
static Job
job_new (void)
{
  Job job = {0};
  const char *given = g_getenv ("MUSTER_TEST_TARGET");
  g_autofree char *target = given != NULL ? g_strdup (given) : start_server (&job);
  job.master = muster_master_new_for_target (target, &job.error);
  MUSTER_EXPECT_NO_ERROR (job.error);
  gint64 soon = test_deadline ();
  muster_master_reset (job.master, NULL, soon, NULL, &job.error);
  MUSTER_EXPECT_NO_ERROR (job.error);
  job.scaffold = muster_scaffold_load (MODEL, &job.error);
  MUSTER_EXPECT_NO_ERROR (job.error);
  job.saver = muster_saver_new (muster_scaffold_meta_graph (job.scaffold), NULL, &job.error);
  job.manager = new_manager (&job, muster_scaffold_ready_for_local_init_op (job.scaffold));
  MUSTER_EXPECT_NO_ERROR (job.error);
  return job;
}

static void
forget (Job *job)
{
  g_clear_error (&job->error);
  muster_session_report_clear (&job->report);
}

static void
job_clear (Job *job)
{
  forget (job);
  g_clear_object (&job->manager);
  g_clear_object (&job->saver);
  g_clear_pointer (&job->scaffold, muster_scaffold_unref);
  g_clear_object (&job->master);
  g_clear_pointer (&job->server, muster_server_free);
  g_clear_object (&job->local);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, job_clear)

static MusterSession *
prepare (Job *job, MusterPrepareOptions options)
{
  forget (job);
  options.timeout_us = 30 * MUSTER_SECOND;
  return muster_session_manager_prepare_session (job->manager, job->master, &options, &job->report,
                                                 NULL, &job->error);
}

static MusterSession *
initialise (Job *job)
{
  return prepare (job, (MusterPrepareOptions){.init_op = muster_scaffold_init_op (job->scaffold)});
}

static MusterSession *
wait_for (Job *job, gint64 timeout_us)
{
  forget (job);
  return muster_session_manager_wait_for_session (job->manager, job->master, timeout_us,
                                                  &job->report, NULL, &job->error);
}

static gboolean
says (const GError *error, const char *words)
{
  return error != NULL && strstr (error->message, words) != NULL;
}

/* The chief of this test has ended: its lease goes with its session. */
static void
end (MusterSession *session)
{
  muster_session_close_quietly (session);
  g_object_unref (session);
}

/* B002.33, B002.44 */
MUSTER_TEST (Operations, a_chief_initialises_and_a_worker_joins)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterSession) chief = initialise (&job);
  MUSTER_ASSERT_NO_ERROR (job.error);
  g_autoptr (MusterSession) worker = wait_for (&job, 30 * MUSTER_SECOND);
  MUSTER_ASSERT_NO_ERROR (job.error);
  MUSTER_EXPECT_EQ (job.report.sessions, 1u);
  MUSTER_EXPECT_EQ (job.report.outcome, MUSTER_OUTCOME_READY);
}

typedef struct {
  Job *job;
  MusterSession *session;
  MusterSessionReport report;
  GError *error;
} Worker;

static gpointer
work (gpointer data)
{
  Worker *worker = data;
  worker->session = muster_session_manager_wait_for_session (
      worker->job->manager, worker->job->master, 60 * MUSTER_SECOND, &worker->report, NULL,
      &worker->error);
  return NULL;
}

/* The worker is there long before its chief; it keeps one session, however often it looks. */
MUSTER_TEST (Operations, a_worker_waits_for_its_chief_in_one_session)
{
  g_auto (Job) job = job_new ();
  Worker worker = {.job = &job};
  GThread *thread = g_thread_new ("worker", work, &worker);
  g_autoptr (MusterSession) nobody = wait_for (&job, 500 * MUSTER_MILLISECOND);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_autoptr (MusterSession) chief = initialise (&job);
  MUSTER_EXPECT_NO_ERROR (job.error);
  g_thread_join (thread);
  MUSTER_EXPECT_NO_ERROR (worker.error);
  MUSTER_EXPECT_EQ (worker.report.sessions, 1u);
  g_clear_object (&worker.session);
  g_clear_error (&worker.error);
  muster_session_report_clear (&worker.report);
}

/* B002.46, and why */
MUSTER_TEST (Operations, a_wait_without_a_chief_ends_at_its_deadline_and_says_why)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterSession) session = wait_for (&job, 6 * MUSTER_SECOND);
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_TRUE (says (job.error, "Session was not ready after waiting 6 secs."));
  MUSTER_EXPECT_TRUE (says (job.error, "Variables not initialized: "));
  MUSTER_EXPECT_EQ (job.report.sessions, 1u);
}

/* B002.45 */
MUSTER_TEST (Operations, no_time_at_all_is_one_poll)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterSession) early = wait_for (&job, 0);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  MUSTER_EXPECT_EQ (job.report.polls, 1u);
  g_autoptr (MusterSession) chief = initialise (&job);
  MUSTER_ASSERT_NO_ERROR (job.error);
  g_autoptr (MusterSession) session = wait_for (&job, 0);
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
}

/* B002.36 */
MUSTER_TEST (Operations, init_that_leaves_a_variable_out_doesnt_open_the_gate)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterSession) session = prepare (&job, (MusterPrepareOptions){.init_op = "b/Assign"});
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (says (
      job.error, "Init operations did not make model ready for local_init.  Init op: b/Assign"));
}

/* B002.32 */
MUSTER_TEST (Operations, nothing_to_initialise_with_is_an_error)
{
  g_auto (Job) job = job_new ();
  MusterSessionManagerOptions options = {.ready_op = muster_scaffold_ready_op (job.scaffold)};
  g_clear_object (&job.manager);
  job.manager = muster_session_manager_new (muster_scaffold_graph (job.scaffold), &options, NULL);
  g_autoptr (MusterSession) session = prepare (&job, (MusterPrepareOptions){0});
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (says (job.error, "no init_op or init_fn or local_init_op was given"));
}

/* B002.39 */
MUSTER_TEST (Operations, an_init_op_that_isnt_there_is_named)
{
  g_auto (Job) job = job_new ();
  g_autoptr (MusterSession) session = prepare (&job, (MusterPrepareOptions){.init_op = "nothing"});
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_TRUE (says (job.error, "nothing"));
}

/* B002.62: the full list as the gate of local init can never be passed. */
MUSTER_TEST (Operations, the_ready_op_as_the_gate_of_local_init_is_never_passed)
{
  g_auto (Job) job = job_new ();
  g_clear_object (&job.manager);
  job.manager = new_manager (&job, muster_scaffold_ready_op (job.scaffold));
  g_autoptr (MusterSession) session = initialise (&job);
  MUSTER_EXPECT_ERROR (job.error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (says (job.error, "did not make model ready for local_init"));
}

static char *
save (Job *job, MusterSession *session, gint64 step)
{
  return muster_saver_save (job->saver, session, muster_test_tmpdir (), step, MUSTER_WAIT_FOREVER,
                            NULL, &job->error);
}

static MusterPrepareOptions
from_directory (Job *job)
{
  return (MusterPrepareOptions){.init_op = muster_scaffold_init_op (job->scaffold),
                                .saver = job->saver,
                                .checkpoint_dir = muster_test_tmpdir (),
                                .timeout_us = 30 * MUSTER_SECOND};
}

static void
empty (Job *job)
{
  forget (job);
  muster_master_reset (job->master, NULL, MUSTER_WAIT_FOREVER, NULL, &job->error);
  MUSTER_EXPECT_NO_ERROR (job->error);
}

/* B002.16, B002.31 */
MUSTER_TEST (Operations, a_chief_that_comes_back_restores_what_it_saved)
{
  g_auto (Job) job = job_new ();
  MusterSession *first = initialise (&job);
  MUSTER_ASSERT_TRUE (first != NULL);
  g_autofree char *saved = save (&job, first, 7);
  MUSTER_EXPECT_NO_ERROR (job.error);
  end (first);
  empty (&job);
  g_autoptr (MusterSession) again = prepare (&job, from_directory (&job));
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_STREQ (job.report.restored_from, saved);
}

static MusterSession *
recover (Job *job, MusterPrepareOptions options, gboolean *recovered)
{
  forget (job);
  return muster_session_manager_recover_session (job->manager, job->master, &options, recovered,
                                                 &job->report, NULL, &job->error);
}

/* B002.81 */
MUSTER_TEST (Operations, nothing_to_recover_gives_a_session_that_isnt_ready)
{
  g_auto (Job) job = job_new ();
  gboolean recovered = TRUE;
  g_autoptr (MusterSession) session = recover (&job, from_directory (&job), &recovered);
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (session != NULL);
  MUSTER_EXPECT_FALSE (recovered);
}

/* B002.84 */
MUSTER_TEST (Operations, recover_restores_and_says_so)
{
  g_auto (Job) job = job_new ();
  MusterSession *first = initialise (&job);
  MUSTER_ASSERT_TRUE (first != NULL);
  g_autofree char *saved = save (&job, first, 7);
  end (first);
  empty (&job);
  gboolean recovered = FALSE;
  g_autoptr (MusterSession) session = recover (&job, from_directory (&job), &recovered);
  MUSTER_EXPECT_NO_ERROR (job.error);
  MUSTER_EXPECT_TRUE (recovered);
  MUSTER_EXPECT_STREQ (job.report.restored_from, saved);
}

static gpointer
cancel_it (gpointer cancellable)
{
  g_cancellable_cancel (cancellable);
  return NULL;
}

static void
cancel_at_first_word (const char *message G_GNUC_UNUSED,
                      const MusterReadiness *readiness G_GNUC_UNUSED,
                      GPtrArray *reasons G_GNUC_UNUSED, gpointer cancellable)
{
  g_thread_unref (g_thread_new ("cancel", cancel_it, cancellable));
}

MUSTER_TEST (Operations, a_wait_ends_when_it_is_cancelled)
{
  g_auto (Job) job = job_new ();
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  muster_session_manager_set_progress (job.manager, cancel_at_first_word, cancellable, NULL);
  g_autoptr (MusterSession) session = muster_session_manager_wait_for_session (
      job.manager, job.master, MUSTER_WAIT_FOREVER, NULL, cancellable, &job.error);
  MUSTER_EXPECT_NULL (session);
  MUSTER_EXPECT_ERROR (job.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}
