// SPDX-License-Identifier: Apache-2.0
#include "train/train.h"

#include "base/error.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "graph/meta_graph/meta_graph_io.h"
#include "graph/npy.h"
#include "master/remote/remote_master.h"
#include "server/server.h"
#include "tests/doubles/heard.h"
#include "tests/doubles/narrow_storage.h"
#include "tests/gtest_shim.h"
#include "tests/held_port.h"
#include "train/position/position.h"

#include <math.h>

static const char *const feeds[] = {"x:0", "y:0"};

/* A job of digits on the engine, or on a server of this process's, and what it tells. */
typedef struct {
  MusterScaffold *scaffold;
  MusterMaster *master;
  MusterServer *server; /* (nullable) */
  GSocket *held;        /* (nullable) it keeps the server's port for the next one */
  MusterBatches *batches;
  char *directory;
  MusterTrainingObserver *observer;
  MusterTraining training; /* a chief's, with these */
  GString *told;           /* "ready 0 saved 0 …" */
  float first_loss, last_loss;
  gint64 last_step;
  gint64 durable_step;
  void (*at_progress) (gpointer job);
  void (*at_saved) (gpointer job, gint64 step);
  gint64 preempted_at; /* the step whose save is when it is told to go; 0: none */
  gboolean stops;
} Job;

static void
note_ready (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterSessionReport *report,
            gint64 step, gpointer user_data)
{
  Job *job = user_data;
  g_string_append_printf (job->told, "%s %" G_GINT64_FORMAT " ",
                          report->restored_from != NULL ? "restored" : "ready", step);
}

static void
note_lost (MusterTrainingObserver *observer G_GNUC_UNUSED, const GError *why, guint n,
           gint64 pause_us, gpointer user_data)
{
  MUSTER_EXPECT_TRUE (*why->message != '\0' && pause_us > 0);
  g_string_append_printf (((Job *)user_data)->told, "lost %u ", n);
}

static void
note_saved (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterSaved *saved,
            gpointer user_data)
{
  Job *job = user_data;
  g_string_append_printf (job->told, "%s %" G_GINT64_FORMAT " ",
                          saved->skipped ? "skipped" : "saved", saved->step);
  if (job->preempted_at > 0 && saved->step == job->preempted_at)
    muster_preemption_request (job->training.session.saving.preemption, 0);
  if (job->at_saved != NULL)
    job->at_saved (job, saved->step);
}

static gboolean
note_progress (MusterTrainingObserver *observer G_GNUC_UNUSED, const MusterTrainingState *state,
               gpointer user_data)
{
  Job *job = user_data;
  if (job->first_loss == 0)
    job->first_loss = (float)state->loss;
  job->last_loss = (float)state->loss;
  job->last_step = state->step;
  job->durable_step = state->durable_step;
  if (job->at_progress != NULL)
    job->at_progress (job);
  return job->stops;
}

static MusterBatches *
make_batches (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) x = muster_npy_load ("tests/fixtures/digits_x.npy", &error);
  g_autoptr (MusterTensor) y = muster_npy_load ("tests/fixtures/digits_y.npy", &error);
  g_assert_no_error (error);
  MusterTensor *arrays[] = {x, y};
  return muster_batches_new (arrays, 2, 32, 1, NULL);
}

/* In place: the handlers point back at it. */
static void
set_up (Job *job)
{
  g_autoptr (GError) error = NULL;
  job->scaffold = muster_scaffold_load ("tests/fixtures/digits.meta", &error);
  g_assert_no_error (error);
  job->master = muster_local_master_new ();
  job->batches = make_batches ();
  job->directory = g_build_filename (muster_test_tmpdir (), "run", NULL);
  job->told = g_string_new (NULL);
  job->observer = muster_training_observer_new ();
  g_signal_connect (job->observer, "ready", G_CALLBACK (note_ready), job);
  g_signal_connect (job->observer, "lost", G_CALLBACK (note_lost), job);
  g_signal_connect (job->observer, "progress", G_CALLBACK (note_progress), job);
  g_signal_connect (job->observer, "saved", G_CALLBACK (note_saved), job);
  job->training = (MusterTraining){.session.scaffold = job->scaffold,
                                   .session.master = job->master,
                                   .session.manager.model = "digits",
                                   .session.manager.task = "chief:0",
                                   .batches = job->batches,
                                   .feeds = feeds,
                                   .n_feeds = 2,
                                   .until_step = 25,
                                   .observer = job->observer};
}

static void
tear_down (Job *job)
{
  g_clear_object (&job->observer);
  g_clear_object (&job->master);
  g_clear_pointer (&job->server, muster_server_free);
  g_clear_object (&job->held);
  muster_batches_free (job->batches);
  muster_scaffold_unref (job->scaffold);
  g_free (job->directory);
  g_string_free (job->told, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Job, tear_down)

static void
serve (Job *job, const char *address)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) engine = muster_local_master_new ();
  job->server = muster_server_new (engine, NULL);
  muster_server_listen (job->server, address, &error);
  g_assert_no_error (error);
  muster_server_start (job->server);
}

/* The same on a server. */
static void
set_up_served (Job *job)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *address = NULL;
  set_up (job);
  job->held = test_hold_port (&address);
  serve (job, address);
  g_autofree char *target = g_strconcat ("grpc://", address, NULL);
  g_set_object (&job->master, NULL);
  job->master = job->training.session.master = muster_remote_master_new (target, &error);
  g_assert_no_error (error);
}

static gboolean
train (Job *job, GError **error)
{
  return muster_train (&job->training, NULL, NULL, error);
}

/* It trained nothing, and announced that the job was over. */
MUSTER_TEST (Training, without_an_end_is_refused)
{
  static const struct {
    gint64 until_step, epochs;
    const char *says;
  } wrong[] = {{0, 0, "nothing ends the training; set until_step"},
               {-1, 0, "until_step and epochs must be 1 or more"},
               {0, -1, "until_step and epochs must be 1 or more"},
               {3, -1, "until_step and epochs must be 1 or more"},
               {3, 1, "not both"}};
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_auto (Job) job = {0};
    g_autoptr (GError) error = NULL;
    set_up (&job);
    job.training.until_step = wrong[i].until_step;
    job.training.epochs = wrong[i].epochs;
    job.stops = TRUE; /* should it train */
    MUSTER_TRACE ("case %u", (guint)i);
    MUSTER_EXPECT_FALSE (train (&job, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, wrong[i].says);
    MUSTER_EXPECT_STREQ (job.told->str, "");
  }
}

MUSTER_TEST (Training, reaches_its_step_and_the_loss_falls)
{
  g_auto (Job) job = {0};
  g_auto (MusterTrained) trained = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);
  job.training.loss = "loss:0";
  job.training.until_step = 3000;

  muster_train (&job.training, &trained, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (trained.step, 3000);
  MUSTER_EXPECT_EQ (job.last_step, 3000);
  MUSTER_EXPECT_EQ (job.durable_step, -1);
  MUSTER_EXPECT_LT (job.last_loss, 0.1f);
  MUSTER_EXPECT_EQ (muster_batches_position (job.batches), 3000);
  MUSTER_EXPECT_STREQ (job.told->str, "ready 0 ");
}

MUSTER_TEST (Training, saves_on_the_way_and_at_the_end_and_goes_on_from_there)
{
  for (int life = 0; life < 2; life++) {
    g_auto (Job) job = {0};
    g_autoptr (GError) error = NULL;
    set_up (&job);
    job.training.session.saving.checkpoint_dir = job.directory;
    job.training.session.saving.save_blocking = TRUE;
    job.training.session.saving.save_steps = 10;
    job.training.until_step = life == 0 ? 25 : 32;

    train (&job, &error);

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_STREQ (job.told->str, life == 0 ? "ready 0 saved 0 saved 10 saved 20 saved 25 "
                                                  : "restored 25 saved 32 ");
    MUSTER_EXPECT_EQ (job.durable_step, life == 0 ? 25 : 32);
    MUSTER_EXPECT_EQ (muster_batches_position (job.batches), life == 0 ? 25 : 32);
  }
}

MUSTER_TEST (Training, without_positions_deals_anew)
{
  for (int life = 0; life < 2; life++) {
    g_auto (Job) job = {0};
    g_autoptr (GError) error = NULL;
    set_up (&job);
    job.training.session.saving.checkpoint_dir = job.directory;
    job.training.without_positions = TRUE;
    job.training.until_step = life == 0 ? 25 : 32;

    train (&job, &error);

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (muster_batches_position (job.batches), life == 0 ? 25 : 7);
  }
}

MUSTER_TEST (Training, refuses_a_checkpoint_of_another_number_of_tasks)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);
  job.training.session.saving.checkpoint_dir = job.directory;
  MUSTER_ASSERT_TRUE (train (&job, &error));
  job.training.session.n_tasks = 2;

  MUSTER_EXPECT_FALSE (train (&job, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "the job has 2") != NULL);
}

/* --- epochs --- */

static gpointer
train_task (gpointer data)
{
  Job *job = data;
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (train (job, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return NULL;
}

/* Three tasks deal each row twice, whoever is fast; then a worker hears that it is over. */
MUSTER_TEST (Training, deals_its_epochs_to_all_tasks)
{
  enum { N = 3, BATCHES = 2 * 56 };
  Job jobs[N] = {{0}};
  g_auto (MusterTrained) late = {0};
  GThread *threads[N];
  gint64 dealt = 0;
  for (guint i = 0; i < N; i++) {
    (i == 0 ? set_up_served : set_up) (&jobs[i]);
    g_set_object (&jobs[i].master, jobs[0].master);
    jobs[i].training.session.master = jobs[0].master;
    jobs[i].training.session.is_worker = i > 0;
    jobs[i].training.task_number = i;
    jobs[i].training.session.n_tasks = N;
    jobs[i].training.until_step = 0;
    jobs[i].training.epochs = 2;
    jobs[i].training.ends_job = i == 0;
    jobs[i].training.session.saving.checkpoint_dir = i == 0 ? jobs[0].directory : NULL;
    jobs[i].training.session.saving.save_steps = 20;
    threads[i] = g_thread_new ("task", train_task, &jobs[i]);
  }
  for (guint i = 0; i < N; i++)
    g_thread_join (threads[i]);

  MUSTER_EXPECT_EQ (jobs[0].last_step, BATCHES);
  MUSTER_EXPECT_EQ (jobs[0].durable_step, BATCHES);
  for (guint i = 0; i < N; i++) /* each its own, the last of which is one of the last three */
    MUSTER_EXPECT_GT (muster_batches_position (jobs[i].batches), BATCHES - N);
  for (guint i = 0; i < N; i++)
    dealt += (muster_batches_position (jobs[i].batches) - 1) % N == i;
  MUSTER_EXPECT_EQ (dealt, N);
  MUSTER_EXPECT_FALSE (muster_train (&jobs[1].training, &late, NULL, NULL));
  MUSTER_EXPECT_EQ (late.report.outcome, MUSTER_OUTCOME_OVER);
  for (guint i = N; i > 0; i--)
    tear_down (&jobs[i - 1]);
}

/* There is nothing to do, so nothing is done. */
MUSTER_TEST (Training, runs_no_step_where_its_target_is_reached)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);
  job.training.session.saving.checkpoint_dir = job.directory;
  MUSTER_ASSERT_TRUE (train (&job, &error));
  g_string_truncate (job.told, 0);

  MUSTER_EXPECT_TRUE (train (&job, &error));

  MUSTER_EXPECT_STREQ (job.told->str, "restored 25 ");
  MUSTER_EXPECT_EQ (job.last_step, 25);
}

MUSTER_TEST (Training, ends_early_where_progress_says_so)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);
  job.stops = TRUE;
  job.training.until_step = G_MAXINT64;
  job.training.session.saving.checkpoint_dir = job.directory;

  MUSTER_EXPECT_TRUE (train (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_GT (job.last_step, 0);
  MUSTER_EXPECT_EQ (job.durable_step, job.last_step);
}

MUSTER_TEST (Training, says_what_is_wrong_before_there_is_a_session)
{
  static const char *const wrong[] = {"nothing:0", "y:0"};
  g_auto (Job) job = {0};
  g_autoptr (GError) feed = NULL, loss = NULL;
  set_up (&job);

  job.training.feeds = wrong;
  MUSTER_EXPECT_FALSE (train (&job, &feed));
  job.training.feeds = feeds;
  job.training.loss = "nothing:0";
  MUSTER_EXPECT_FALSE (train (&job, &loss));

  MUSTER_EXPECT_ERROR (feed, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (strstr (feed->message, "'nothing'") != NULL);
  MUSTER_EXPECT_ERROR (loss, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (job.told->str, "");
}

MUSTER_TEST (Training, refuses_what_its_session_has_of_its_own)
{
  g_autoptr (MusterSessionObserver) observer = muster_session_observer_new ();
  const MusterMonitoredTrainingOptions own[] = {
      {.observer = observer}, {.n_hooks = 1}, {.manager = {.will_feed = feeds}}};
  for (gsize i = 0; i < G_N_ELEMENTS (own); i++) {
    g_auto (Job) job = {0};
    g_autoptr (GError) error = NULL;
    set_up (&job);
    const MusterMonitoredTrainingOptions right = job.training.session;
    job.training.session = own[i];
    job.training.session.scaffold = right.scaffold;
    job.training.session.master = right.master;

    MUSTER_EXPECT_FALSE (train (&job, &error));

    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "of its own");
  }
}

MUSTER_TEST (Training, names_what_is_not_fed_with_the_option_that_feeds_it)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);

  job.training.n_feeds = 1;
  MUSTER_EXPECT_FALSE (train (&job, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "add --feed=y:0=@FILE.npy");
  MUSTER_EXPECT_STREQ (job.told->str, "");
}

static void
expect_other_number_refused (Job *job)
{
  g_autoptr (GError) training = NULL, positions = NULL;
  const MusterPositionOptions options = {.batches = job->training.batches,
                                         .feeds = job->training.feeds,
                                         .n_feeds = job->training.n_feeds};
  MUSTER_EXPECT_FALSE (train (job, &training));
  MUSTER_EXPECT_NULL (muster_position_hook_new (&options, &positions));

  MUSTER_EXPECT_SAYS (training, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "one tensor for each");
  MUSTER_EXPECT_SAYS (positions, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                      "one tensor for each");
}

/* A batch is written into as much room as there are tensors to feed. */
MUSTER_TEST (Training, refuses_another_number_of_arrays_than_of_tensors)
{
  static const char *const thrice[] = {"x:0", "y:0", "x:0"};
  g_auto (Job) job = {0};
  g_autoptr (MusterTensor) rate = muster_tensor_new_float (1);
  g_autoptr (MusterBatches) none = muster_batches_new (NULL, 0, 0, 0, NULL);
  g_autoptr (MusterBatches) made = NULL;
  set_up (&job);

  for (int i = 0; i < 40; i++)
    muster_batches_add_constant (job.batches, rate);
  job.training.without_positions = TRUE;
  expect_other_number_refused (&job);
  job.training.without_positions = FALSE;
  expect_other_number_refused (&job);
  job.training.batches = made = make_batches ();
  job.training.feeds = thrice;
  job.training.n_feeds = 3;
  expect_other_number_refused (&job);
  job.training.batches = NULL;
  expect_other_number_refused (&job);
  job.training.batches = none;
  expect_other_number_refused (&job);
  MUSTER_EXPECT_STREQ (job.told->str, "");

  const MusterPositionOptions nothing = {.batches = none};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_position_hook_new (&nothing, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "0 arrays");
}

/* What a step feeds has as many rows as a batch; a constant is whole. */
MUSTER_TEST (Training, refuses_what_does_not_fit_a_placeholder)
{
  static const struct {
    MusterDType dtype;
    gint64 width;
    const char *says;
  } cases[] = {
      {MUSTER_DOUBLE, 64, "'x:0' takes float[?,64], but a step feeds it with double[32,64]"},
      {MUSTER_FLOAT, 63, "'x:0' takes float[?,64], but a step feeds it with float[32,63]"},
  };
  g_auto (Job) job = {0};
  g_autoptr (MusterTensor) y = muster_npy_load ("tests/fixtures/digits_y.npy", NULL);
  set_up (&job);
  job.training.session.saving.checkpoint_dir = job.directory;

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    const gint64 dims[] = {muster_tensor_dims (y)[0], cases[i].width};
    g_autoptr (MusterTensor) x = muster_tensor_new (cases[i].dtype, 2, dims);
    MusterTensor *arrays[] = {x, y};
    g_autoptr (MusterBatches) batches = muster_batches_new (arrays, 2, 32, 1, NULL);
    job.training.batches = batches;
    MUSTER_EXPECT_FALSE (train (&job, &error));
    MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, cases[i].says);
  }
  MUSTER_EXPECT_STREQ (job.told->str, "");
  MUSTER_EXPECT_FALSE (g_file_test (job.directory, G_FILE_TEST_EXISTS));
}

/* Feeding starts with the batch that was to be first. */
MUSTER_TEST (Training, leaves_the_batches_where_they_are)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);
  job.training.without_positions = TRUE;
  job.training.until_step = 1;

  MUSTER_EXPECT_TRUE (train (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_batches_position (job.batches), 1);
}

/* --- the job's end --- */

/* Everybody else hears of it: who comes late leaves. */
MUSTER_TEST (Training, announces_that_the_job_is_over)
{
  g_auto (Job) job = {0};
  g_auto (MusterTrained) late = {0};
  g_autoptr (GError) error = NULL, over = NULL;
  set_up_served (&job);
  job.training.ends_job = TRUE;
  MUSTER_ASSERT_TRUE (train (&job, &error));
  job.training.session.is_worker = TRUE;

  MUSTER_EXPECT_FALSE (muster_train (&job.training, &late, NULL, &over));

  MUSTER_EXPECT_ERROR (over, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE);
  MUSTER_EXPECT_EQ (late.report.outcome, MUSTER_OUTCOME_OVER);
  MUSTER_EXPECT_EQ (late.report.final_step, 25);
}

MUSTER_TEST (Training, leaves_the_job_open_unless_it_ends_it)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up_served (&job);
  MUSTER_ASSERT_TRUE (train (&job, &error));
  job.training.session.is_worker = TRUE;
  job.training.until_step = 30;

  MUSTER_EXPECT_TRUE (train (&job, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (job.told->str, "ready 0 ready 25 ");
  MUSTER_EXPECT_EQ (job.last_step, 30);
}

/* --- other chiefs --- */

static void
usurp (gpointer data)
{
  Job *job = data;
  const MusterClaim claim = {.model = "digits", .task = "chief:9", .take_over = TRUE};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSession) session = muster_master_create_session (
      job->master, muster_scaffold_graph (job->scaffold), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterLease) lease =
      muster_session_claim (session, &claim, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  job->at_progress = NULL;
}

MUSTER_TEST (Training, stops_at_once_when_another_chief_has_come)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up_served (&job);
  job.at_progress = usurp;
  job.training.until_step = G_MAXINT64;

  MUSTER_EXPECT_FALSE (train (&job, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "chief:9") != NULL);
}

/* A chief of another master that had the directory is refused before this one has saved. */
MUSTER_TEST (Training, claims_its_directory_before_it_saves)
{
  g_auto (Job) old = {0}, job = {0};
  g_autoptr (GError) error = NULL, refused = NULL;
  const MusterClaim claim = {.model = "digits", .task = "chief:0"};
  set_up_served (&old);
  set_up_served (&job);
  old.training.session.saving.checkpoint_dir = job.training.session.saving.checkpoint_dir =
      job.directory;
  MUSTER_ASSERT_TRUE (train (&old, &error));
  g_autoptr (MusterSession) session = muster_master_create_session (
      old.master, muster_scaffold_graph (old.scaffold), NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_autoptr (MusterLease) lease =
      muster_session_claim (session, &claim, NULL, MUSTER_WAIT_FOREVER, NULL, &error);
  g_autoptr (MusterSaver) saver =
      muster_saver_new (muster_scaffold_meta_graph (old.scaffold), NULL, &error);
  muster_saver_set_lease (saver, lease);
  MUSTER_ASSERT_TRUE (
      muster_saver_claim_directory (saver, job.directory, MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_ASSERT_TRUE (train (&job, &error));
  g_autofree char *prefix =
      muster_saver_save (saver, session, job.directory, 99, MUSTER_WAIT_FOREVER, NULL, &refused);

  MUSTER_EXPECT_STREQ (job.told->str, "restored 25 "); /* nothing to do, and nothing to save */
  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (refused, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

/* --- what goes wrong --- */

static void
stop_when_back (gpointer data)
{
  Job *job = data;
  job->stops = strstr (job->told->str, " restored ") != NULL;
}

static void
start_server_again (Job *job)
{
  g_autofree char *address = g_strdup (muster_master_target (job->master) + strlen ("grpc://"));
  g_clear_pointer (&job->server, muster_server_free);
  serve (job, address);
}

static void
restart_server (gpointer data)
{
  Job *job = data;
  if (job->durable_step < 10)
    return;
  start_server_again (job);
  job->at_progress = stop_when_back;
}

MUSTER_TEST (Training, comes_back_when_its_master_was_lost)
{
  g_auto (Job) job = {0};
  g_auto (MusterTrained) trained = {0};
  g_autoptr (GError) error = NULL;
  set_up_served (&job);
  job.at_progress = restart_server;
  job.training.session.saving.checkpoint_dir = job.directory;
  job.training.session.saving.save_steps = 10;
  job.training.until_step = G_MAXINT64;

  muster_train (&job.training, &trained, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_GE (trained.n_recoveries, 1u);
  MUSTER_EXPECT_TRUE (strstr (job.told->str, "lost 1 ") != NULL);
  MUSTER_EXPECT_TRUE (strstr (job.told->str, " restored ") != NULL);
  MUSTER_EXPECT_EQ (job.durable_step, trained.step);
}

/* After the last save, the end of the job remains to be announced. */
static void
restart_server_after_last_save (gpointer data, gint64 step)
{
  Job *job = data;
  if (step < job->training.until_step)
    return;
  job->at_saved = NULL;
  start_server_again (job);
}

MUSTER_TEST (Training, ends_in_another_session_when_its_master_is_lost_at_the_end)
{
  g_auto (Job) job = {0};
  g_auto (MusterTrained) trained = {0};
  g_autoptr (GError) error = NULL;
  set_up_served (&job);
  job.at_saved = restart_server_after_last_save;
  job.training.session.saving.checkpoint_dir = job.directory;
  job.training.session.saving.save_steps = 10;
  job.training.ends_job = TRUE;

  heard_begin (G_LOG_LEVEL_MESSAGE);
  muster_train (&job.training, &trained, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (heard_count ("end-repeated", NULL), 1u);
  MUSTER_EXPECT_TRUE (trained.is_reached);
  MUSTER_EXPECT_EQ (trained.step, 25);
  MUSTER_EXPECT_TRUE (strstr (job.told->str, " restored 25 ") != NULL);
  heard_end ();
}

MUSTER_TEST (Training, goes_on_where_a_save_is_skipped)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterNarrowStorage) disk = muster_narrow_storage_new ();
  const MusterSaverOptions options = {.storage = MUSTER_STORAGE (disk),
                                      .when_full = MUSTER_WHEN_FULL_SKIP};
  set_up (&job);
  job.training.saver = options;
  job.training.session.saving.checkpoint_dir = job.directory;
  job.training.session.saving.save_blocking = TRUE;
  job.training.session.saving.save_steps = 10;
  muster_narrow_storage_set_free (disk, 1); /* without a byte not even its claim is written */

  train (&job, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (job.told->str, "ready 0 skipped 0 skipped 10 skipped 20 skipped 25 ");
  g_autofree char *latest = muster_latest_checkpoint (NULL, job.directory, &error);
  MUSTER_EXPECT_NULL (latest);
}

MUSTER_TEST (Training, stops_when_it_is_cancelled)
{
  g_auto (Job) job = {0};
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  set_up (&job);
  g_cancellable_cancel (cancellable);

  MUSTER_EXPECT_FALSE (muster_train (&job.training, NULL, cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
}

/* --- lives --- */

static const MusterRestoreOptions counting = {.count_deaths = TRUE};

/* A checkpoint of step 25, from which the next training begins its life. */
static void
begin_life (Job *job)
{
  g_autoptr (GError) error = NULL;
  job->training.session.saving.checkpoint_dir = job->directory;
  g_assert_true (train (job, &error));
  g_string_truncate (job->told, 0);
  job->training.session.restore = counting;
  job->training.until_step = G_MAXINT64;
  job->training.session.saving.save_steps = G_MAXINT32;
}

static char *
open_life (Job *job)
{
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_local_storage (), job->directory, NULL);
  return record != NULL ? g_strdup (record->life) : NULL;
}

static void
expect_a_life (gpointer data)
{
  Job *job = data;
  g_autofree char *life = open_life (job);
  if (!job->stops) /* not at the end */
    MUSTER_EXPECT_STREQ (life, "model.ckpt-25");
  job->stops = TRUE;
}

MUSTER_TEST (Training, clears_its_crash_loop_by_an_orderly_end)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);
  begin_life (&job);
  job.at_progress = expect_a_life;

  MUSTER_EXPECT_TRUE (train (&job, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *life = open_life (&job);
  MUSTER_EXPECT_TRUE (job.stops);
  MUSTER_EXPECT_NULL (life);
}

static void
expect_no_life_once_saved (gpointer data)
{
  Job *job = data;
  job->stops = job->durable_step > 25;
  if (!job->stops) /* the save may end just now */
    return;
  g_autofree char *life = open_life (job);
  MUSTER_EXPECT_NULL (life);
}

MUSTER_TEST (Training, clears_its_crash_loop_with_the_first_save)
{
  g_auto (Job) job = {0};
  g_autoptr (GError) error = NULL;
  set_up (&job);
  begin_life (&job);
  job.training.session.saving.save_steps = 200;
  job.at_progress = expect_no_life_once_saved;

  MUSTER_EXPECT_TRUE (train (&job, &error));

  MUSTER_EXPECT_NO_ERROR (error);
}

static MusterBatches *
no_numbers (void)
{
  const gint64 dims[] = {32, 64}, one[] = {32};
  MusterTensor *x = muster_tensor_new (MUSTER_FLOAT, 2, dims);
  MusterTensor *y = muster_tensor_new (MUSTER_INT64, 1, one);
  float *pixels = muster_tensor_data_mutable (x);
  for (int i = 0; i < 32 * 64; i++)
    pixels[i] = NAN;
  memset (muster_tensor_data_mutable (y), 0, muster_tensor_n_bytes (y));
  MusterTensor *arrays[] = {x, y};
  MusterBatches *batches = muster_batches_new (arrays, 2, 32, 1, NULL);
  muster_tensor_unref (x);
  muster_tensor_unref (y);
  return batches;
}

/* A step that fails by itself may be the checkpoint's doing; a cancelled one isn't. */
MUSTER_TEST (Training, leaves_its_crash_loop_open_only_where_a_step_failed)
{
  g_auto (Job) job = {0};
  g_autoptr (MusterBatches) wrong = no_numbers ();
  g_autoptr (GError) error = NULL;
  set_up (&job);
  begin_life (&job);
  job.training.loss = "loss:0";
  job.training.batches = wrong;

  MUSTER_EXPECT_FALSE (train (&job, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_STREQ (job.told->str, "restored 25 "); /* and nothing was saved */
  g_autofree char *life = open_life (&job);
  MUSTER_EXPECT_STREQ (life, "model.ckpt-25");
}

static GCancellable *to_cancel;

static void
cancel (gpointer data G_GNUC_UNUSED)
{
  g_cancellable_cancel (to_cancel);
}

MUSTER_TEST (Training, that_is_cancelled_was_no_death)
{
  g_auto (Job) job = {0};
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  set_up (&job);
  begin_life (&job);
  to_cancel = cancellable;
  job.at_progress = cancel;

  MUSTER_EXPECT_FALSE (muster_train (&job.training, NULL, cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_autofree char *life = open_life (&job);
  MUSTER_EXPECT_NULL (life);
}

/* --- preemption --- */

static MusterPreemption *to_preempt;

static void
preempt (gpointer data G_GNUC_UNUSED)
{
  muster_preemption_request (to_preempt, 0);
}

MUSTER_TEST (Training, that_is_asked_to_go_saves_where_it_stops)
{
  g_auto (Job) job = {0};
  g_auto (MusterTrained) trained = {0};
  g_auto (MusterPreemptionReport) report = {0};
  g_autoptr (MusterPreemption) preemption = muster_preemption_new (60 * MUSTER_SECOND, NULL);
  g_autoptr (GError) error = NULL;
  set_up (&job);
  to_preempt = job.training.session.saving.preemption = preemption;
  job.at_progress = preempt;
  job.training.session.saving.checkpoint_dir = job.directory;
  job.training.until_step = G_MAXINT64;

  muster_train (&job.training, &trained, NULL, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_preemption_report (preemption, &report));
  MUSTER_EXPECT_EQ (report.outcome, MUSTER_PREEMPTION_SAVED);
  MUSTER_EXPECT_EQ (report.durable_step, trained.step);
  MUSTER_EXPECT_EQ (job.durable_step, trained.step);
  MUSTER_EXPECT_FALSE (trained.is_reached);
}

MUSTER_TEST (Training, that_is_asked_to_go_after_its_last_step_is_done)
{
  for (int in_epochs = 0; in_epochs < 2; in_epochs++) {
    g_auto (Job) job = {0};
    g_auto (MusterTrained) trained = {0};
    g_autoptr (MusterPreemption) preemption = muster_preemption_new (60 * MUSTER_SECOND, NULL);
    g_autoptr (GError) error = NULL;
    set_up (&job);
    job.directory[strlen (job.directory) - 1] = in_epochs ? 'e' : 's';
    job.training.session.saving.preemption = preemption;
    job.training.session.saving.checkpoint_dir = job.directory;
    job.training.session.saving.save_blocking = TRUE;
    job.training.until_step = in_epochs ? 0 : 25;
    job.training.epochs = in_epochs;
    job.training.session.saving.save_steps = job.preempted_at = in_epochs ? 56 : 25;

    MUSTER_EXPECT_TRUE (muster_train (&job.training, &trained, NULL, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (muster_preemption_is_requested (preemption));
    MUSTER_EXPECT_TRUE (trained.is_reached);
    MUSTER_EXPECT_EQ (trained.step, job.preempted_at);
  }
}

/* --- the metric of the best checkpoints --- */

/* The same job below a scope: its graph has no op "loss". */
static void
rename_below (Job *job, const char *scope)
{
  g_autoptr (GError) error = NULL;
  const MusterImport how = {.import_scope = scope};
  g_autoptr (MusterMetaGraph) renamed =
      muster_meta_graph_import (muster_scaffold_meta_graph (job->scaffold), &how, &error);
  g_assert_no_error (error);
  muster_scaffold_unref (job->scaffold);
  job->scaffold = job->training.session.scaffold = muster_scaffold_new (renamed, &error);
  g_assert_no_error (error);
}

static double
loss_at (Job *job, int step)
{
  g_autofree char *name = g_strdup_printf ("model.ckpt-%d", step);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (NULL, job->directory, NULL);
  return muster_side_checkpoint_metric (muster_checkpoint_record_find (record, name), "loss");
}

MUSTER_TEST (Training, takes_its_loss_for_a_metric_that_the_graph_does_not_have)
{
  static const char *const renamed[] = {"m/x:0", "m/y:0"};
  const MusterSaverOptions saver = {.max_to_keep = -1, .keep_best = 1, .metric = "loss:min"};
  g_autoptr (GError) error = NULL;
  g_auto (Job) job = {0};
  set_up (&job);
  rename_below (&job, "m");
  job.training.feeds = renamed;
  job.training.loss = "m/loss:0";
  job.training.session.saving.checkpoint_dir = job.directory;
  job.training.saver = saver;

  MUSTER_EXPECT_TRUE (train (&job, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (isnan (loss_at (&job, 0)));
  MUSTER_EXPECT_EQ ((float)loss_at (&job, 25), job.last_loss);
}
