// SPDX-License-Identifier: Apache-2.0
#include "jobs/job_runner.h"

#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

#include <glib/gstdio.h>

static const char *const one_node[] = {"a", NULL};
static const char *const two_nodes[] = {"a", "b", NULL};

/* --- a job that notes what it does --- */

#define TYPE_NOTER (muster_job_noter_get_type ())
G_DECLARE_FINAL_TYPE (MusterJobNoter, muster_job_noter, MUSTER, JOB_NOTER, MusterJobUploadBuilder)

struct _MusterJobNoter {
  MusterJobUploadBuilder parent;
  JobFixture *fixture; /* (not owned) */
  MusterJobCheckpoint *checkpoint;
  gint64 epoch;
  int n_built;
};

G_DEFINE_FINAL_TYPE (MusterJobNoter, muster_job_noter, MUSTER_TYPE_JOB_UPLOAD_BUILDER)

static MusterJobGroup *
job_noter_build (MusterJobUploadBuilder *builder, gint64 epoch, MusterJobCheckpoint *checkpoint,
                 GError **error G_GNUC_UNUSED)
{
  MusterJobNoter *self = MUSTER_JOB_NOTER (builder);
  MusterJobGroup *group = muster_job_group_new ();
  self->epoch = epoch;
  self->checkpoint = checkpoint;
  self->n_built++;
  job_add (group, job_note_task (self->fixture, "a", "upload"));
  return group;
}

static void
muster_job_noter_class_init (MusterJobNoterClass *klass)
{
  MUSTER_JOB_UPLOAD_BUILDER_CLASS (klass)->build = job_noter_build;
}

static void
muster_job_noter_init (MusterJobNoter *self G_GNUC_UNUSED)
{
}

/* What a test wants of a run. */
typedef struct {
  gboolean no_checkpoint;
  gint64 resume; /* MUSTER_NO_EPOCH */
  MusterJobRunnerOptions options;
} How;

typedef struct {
  JobFixture f;
  FakeMetadata *fake;
  MusterJobNoter *noter;
  MusterJobCheckpoint *checkpoint;
  MusterJobRunner *runner;
  gint64 last;
} Story;

static void
story_clear (Story *self)
{
  g_clear_object (&self->runner);
  g_clear_object (&self->checkpoint);
  g_clear_object (&self->noter);
  job_tear_down (&self->f);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Story, story_clear)

/* Four epochs on these nodes; each stage also notes its name on node a. */
static void
story_begin (Story *self, const char *const *nodes)
{
  *self = (Story){.last = -99};
  job_set_up (&self->f, nodes);
  self->fake = job_fake_metadata (&self->f);
  self->noter = g_object_new (TYPE_NOTER, NULL);
  self->noter->fixture = &self->f;
  job_add (muster_job_init_group (self->f.job), job_note_task (&self->f, "a", "init"));
  job_add (muster_job_epoch_group (self->f.job), job_note_task (&self->f, "a", "epoch"));
  job_add (muster_job_download_group (self->f.job), job_note_task (&self->f, "a", "download"));
  job_add (muster_job_exit_group (self->f.job), job_note_task (&self->f, "a", "exit"));
  self->checkpoint = muster_job_checkpoint_new (self->f.directory, NULL, self->f.metadata, NULL);
}

static gboolean
story_train (Story *self, How how, GError **error)
{
  how.options.upload =
      how.options.upload != NULL ? how.options.upload : MUSTER_JOB_UPLOAD_BUILDER (self->noter);
  g_clear_object (&self->runner);
  self->runner = muster_job_runner_new (self->f.job, how.no_checkpoint ? NULL : self->checkpoint,
                                        how.resume, &how.options);
  return muster_job_runner_train (self->runner, self->f.cluster, &self->last, MUSTER_WAIT_FOREVER,
                                  NULL, error);
}

#define FROM_SCRATCH                                                                               \
  {                                                                                                \
    .resume = MUSTER_NO_EPOCH                                                                      \
  }
#define SAVED(epoch) "accessible, write " epoch ", report checkpoint_save"

/* --- the order --- */

/* B003.59, B003.61, B003.63, B003.67, B003.70, D003.10 */
MUSTER_TEST (JobRunner, goes_through_its_stages_in_order)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  const How how = {.resume = MUSTER_NO_EPOCH, .options = {.save_blocking = TRUE}};
  story_begin (&it, two_nodes);

  MUSTER_EXPECT_TRUE (story_train (&it, how, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (
      it.f.diary->str,
      "params, resume, init, " SAVED ("0") ", epoch, " SAVED ("1") ", epoch, " SAVED (
          "2") ", epoch, " SAVED ("3") ", epoch, " SAVED ("4 finished") ", upload, "
                                                                        "download, "
                                                                        "exit");
  MUSTER_EXPECT_EQ (it.last, 4);
  MUSTER_EXPECT_EQ (it.noter->n_built, 1);
  MUSTER_EXPECT_EQ (it.noter->epoch, 4);
  MUSTER_EXPECT_PTR_EQ (it.noter->checkpoint, it.checkpoint);
  MUSTER_EXPECT_EQ (it.fake->stats->len, 2u);
}

MUSTER_TEST (JobRunner, accounts_for_its_time)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  const How how = {.resume = MUSTER_NO_EPOCH, .options = {.save_blocking = TRUE}};
  MusterGoodput goodput = MUSTER_GOODPUT_INIT;
  story_begin (&it, two_nodes);
  g_autoptr (MusterJobRunner) idle = muster_job_runner_new (it.f.job, NULL, MUSTER_NO_EPOCH, NULL);
  muster_job_runner_goodput (idle, &goodput);
  MUSTER_EXPECT_EQ (goodput.began_us, 0);

  MUSTER_EXPECT_TRUE (story_train (&it, how, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  muster_job_runner_goodput (it.runner, &goodput);
  MUSTER_EXPECT_TRUE (goodput.began_us > 0);
  MUSTER_EXPECT_EQ (goodput.step, 4);
  MUSTER_EXPECT_TRUE (goodput.spent_us[MUSTER_TIME_TRAINING] > 0);
  MUSTER_EXPECT_TRUE (goodput.spent_us[MUSTER_TIME_SAVING] > 0);
  MUSTER_EXPECT_TRUE (goodput.spent_us[MUSTER_TIME_INITIALISING] > 0);
  MUSTER_EXPECT_EQ (goodput.spent_us[MUSTER_TIME_RESTORING], 0);
  MusterGoodput later = MUSTER_GOODPUT_INIT;
  muster_job_runner_goodput (it.runner, &later);
  MUSTER_EXPECT_EQ (muster_goodput_total_us (&later), muster_goodput_total_us (&goodput));
  it.fake->last_epoch = 3;
  MUSTER_EXPECT_TRUE (story_train (&it, how, &error));
  muster_job_runner_goodput (it.runner, &goodput);
  MUSTER_EXPECT_TRUE (goodput.spent_us[MUSTER_TIME_RESTORING] > 0);
}

/* B003.60, B003.62, B003.75, D003.11: what was asked for counts in each call */
MUSTER_TEST (JobRunner, resumes_without_init_and_after_the_epoch)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  story_begin (&it, one_node);
  MUSTER_EXPECT_TRUE (story_train (&it, (How)FROM_SCRATCH, &error));

  for (int time = 0; time < 2; time++) {
    g_string_truncate (it.f.diary, 0);
    it.fake->last_epoch = time == 0 ? 3 : 4;
    MUSTER_EXPECT_TRUE (story_train (&it, (How)FROM_SCRATCH, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_STREQ (it.f.diary->str,
                         time == 0 ? "params, resume, report checkpoint_load, epoch, " SAVED (
                                         "4 finished") ", upload, download, exit"
                                   : "params, resume, report checkpoint_load, epoch, " SAVED (
                                         "5 finished") ", upload, download, exit");
    MUSTER_EXPECT_EQ (it.last, 4 + time);
  }
  it.fake->last_epoch = MUSTER_NO_EPOCH; /* the same runner, from scratch again */
  g_string_truncate (it.f.diary, 0);
  MUSTER_EXPECT_TRUE (muster_job_runner_train (it.runner, it.f.cluster, &it.last,
                                               MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (it.f.diary->str, "params, resume, init"));
}

/* B003.65 */
MUSTER_TEST (JobRunner, needs_no_checkpoints)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  const How how = {.no_checkpoint = TRUE, .resume = MUSTER_NO_EPOCH};
  story_begin (&it, one_node);

  MUSTER_EXPECT_TRUE (story_train (&it, how, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (it.f.diary->str, "init, epoch, epoch, epoch, epoch, upload, download, exit");
  MUSTER_EXPECT_NULL (it.noter->checkpoint); /* B003.67 */
  MUSTER_EXPECT_FALSE (job_has_file (&it.f, "a.0"));
}

/* B003.66, D003.3 */
MUSTER_TEST (JobRunner, cannot_resume_without_checkpoints)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  const How how = {.no_checkpoint = TRUE, .resume = 0};
  story_begin (&it, one_node);

  MUSTER_EXPECT_FALSE (story_train (&it, how, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (it.f.diary->str, "");
}

static gboolean
stop_after_two (MusterJobRunner *runner G_GNUC_UNUSED, gint64 epoch,
                gpointer user_data G_GNUC_UNUSED)
{
  return epoch >= 2;
}

/* B003.64, D003.9; and whoever is asked after each epoch can end it */
MUSTER_TEST (JobRunner, is_endless_only_if_that_is_meant)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterJob) job = muster_job_new ();
  job_set_up (&f, one_node);
  job_add (muster_job_init_group (job), job_ops_task ("init", "a", 0, "init", NULL));
  job_add (muster_job_epoch_group (job), job_note_task (&f, "a", "epoch"));
  gint64 last = 0;
  MusterJobRunnerOptions options = {0};

  for (int endless = 0; endless < 2; endless++) {
    options.endless = endless == 1;
    g_autoptr (MusterJobRunner) runner =
        muster_job_runner_new (job, NULL, MUSTER_NO_EPOCH, &options);
    g_signal_connect (runner, "epoch-done", G_CALLBACK (stop_after_two), NULL);
    MUSTER_EXPECT_EQ (
        muster_job_runner_train (runner, f.cluster, &last, MUSTER_WAIT_FOREVER, NULL, &error),
        options.endless);
    MUSTER_EXPECT_STREQ (f.diary->str, options.endless ? "epoch, epoch" : "");
    if (options.endless)
      continue;
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
    g_clear_error (&error);
  }
  MUSTER_EXPECT_EQ (last, 2);
}

/* --- conditions --- */

static gboolean
set_bool (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
          GCancellable *cancellable G_GNUC_UNUSED, gpointer output, GError **error)
{
  g_autoptr (MusterTensor) value = muster_tensor_new_bool (TRUE);
  return muster_job_output_set (output, &value, 1, error);
}

/* B003.11: all are looked at, and any one is enough */
MUSTER_TEST (JobRunner, stops_when_any_condition_is_true)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterJobTask) task = muster_job_task_new ("stops", "a", 1);
  g_autoptr (MusterJobTask) odd = muster_job_task_new ("odd", "a", 1);
  MusterJobOutput *stops = muster_job_task_add_output (task, NULL, NULL);
  MusterJobOutput *no_bool =
      muster_job_task_add_output (odd, (const char *[]){"ten:0", NULL}, NULL);
  MusterJobStep step = {.func = set_bool, .user_data = stops};
  story_begin (&it, one_node);

  MUSTER_EXPECT_TRUE (muster_job_task_set_step (task, &step, NULL));
  MUSTER_EXPECT_TRUE (muster_job_add_task (it.f.job, task, NULL));
  MUSTER_EXPECT_TRUE (muster_job_add_stop_output (it.f.job, stops, NULL));
  MUSTER_EXPECT_TRUE (story_train (&it, (How)FROM_SCRATCH, &error));
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (it.last, 1);

  /* one that can't be read, behind one that is true, isn't overlooked: D003.13 */
  MUSTER_EXPECT_TRUE (muster_job_add_stop_output (it.f.job, no_bool, NULL));
  MUSTER_EXPECT_FALSE (story_train (&it, (How)FROM_SCRATCH, &error));
  MUSTER_EXPECT_STREQ (SAID (error), "Stop condition 3: Output value not set yet.");
}

/* D003.13 */
MUSTER_TEST (JobRunner, says_what_a_condition_is_that_is_no_bool)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterJobTask) task = muster_job_task_new ("stops", "a", 1);
  MusterJobOutput *sum =
      muster_job_task_add_output (task, (const char *[]){"number:0", NULL}, NULL);
  story_begin (&it, one_node);

  MUSTER_EXPECT_TRUE (muster_job_add_task (it.f.job, task, NULL));
  MUSTER_EXPECT_TRUE (muster_job_add_stop_output (it.f.job, sum, NULL));
  MUSTER_EXPECT_FALSE (story_train (&it, (How)FROM_SCRATCH, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (SAID (error), "Stop condition 2: it must be one bool; it is int64 []");
}

/* --- what fails --- */

/* B003.72: and nothing later runs */
MUSTER_TEST (JobRunner, ends_with_the_first_stage_that_fails)
{
  static const struct {
    const char *word, *diary;
  } cases[] = {
      {"params", ""},
      {"resume", "params"},
      {"init", "params, resume"},
      {"epoch", "params, resume, init, " SAVED ("0")},
      {"upload", NULL},
      {"download", NULL},
      {"exit", NULL},
  };

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Story) it = {0};
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("%s", cases[i].word);
    story_begin (&it, one_node);
    it.f.fails_at = cases[i].word;
    MUSTER_EXPECT_FALSE (story_train (&it, (How)FROM_SCRATCH, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
    if (cases[i].diary != NULL)
      MUSTER_EXPECT_STREQ (it.f.diary->str, cases[i].diary);
    else
      MUSTER_EXPECT_TRUE (g_str_has_suffix (it.f.diary->str, i == 4   ? SAVED ("4 finished")
                                                             : i == 5 ? "upload"
                                                                      : "download"));
    MUSTER_EXPECT_EQ (it.last, -99);
  }
}

/* B003.72: the checkpoint's own init, a load, and the report after it */
MUSTER_TEST (JobRunner, ends_when_it_cannot_load)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) list = NULL, damaged = NULL, report = NULL, error = NULL;
  story_begin (&it, one_node);
  const How resume = {.resume = 4}, missing = {.resume = 7};
  MUSTER_EXPECT_TRUE (story_train (&it, (How)FROM_SCRATCH, &error));

  MUSTER_EXPECT_FALSE (story_train (&it, missing, &list));
  MUSTER_EXPECT_ERROR (list, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (SAID (list), "Initialising checkpoints: "));
  it.f.fails_at = "report checkpoint_load";
  g_string_truncate (it.f.diary, 0);
  MUSTER_EXPECT_FALSE (story_train (&it, resume, &report));
  MUSTER_EXPECT_ERROR (report, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_STREQ (it.f.diary->str, "params, resume 4");
  it.f.fails_at = NULL;
  g_autofree char *data = g_build_filename (it.f.directory, "a.4.data-00000-of-00001", NULL);
  g_autofree char *other = g_build_filename (it.f.directory, "a.4.data-00000-of-00002", NULL);
  (void)g_unlink (data);
  (void)g_unlink (other);
  MUSTER_EXPECT_FALSE (story_train (&it, resume, &damaged));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (SAID (damaged), "Resuming at epoch 4: ") ||
                      g_str_has_prefix (SAID (damaged), "Initialising checkpoints: "));
  MUSTER_EXPECT_TRUE (strstr (SAID (damaged), "a.4") != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (
      SAID (damaged), "; resume at epoch 3, the newest before it that all nodes have"));
}

/* B003.67 */
MUSTER_TEST (JobRunner, needs_a_builder_that_builds)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterJobUploadBuilder) base = g_object_new (MUSTER_TYPE_JOB_UPLOAD_BUILDER, NULL);
  const How how = {.no_checkpoint = TRUE, .resume = MUSTER_NO_EPOCH, .options = {.upload = base}};
  story_begin (&it, one_node);

  MUSTER_EXPECT_FALSE (story_train (&it, how, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
  MUSTER_EXPECT_TRUE (strstr (SAID (error), "not implemented") != NULL);
}

/* --- saves that fail --- */

/* B003.68, but for the end: a job whose last epoch isn't saved has failed */
MUSTER_TEST (JobRunner, trains_on_where_checkpoints_cannot_be_reached)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  story_begin (&it, one_node);
  it.fake->inaccessible = TRUE;

  heard_begin (G_LOG_LEVEL_WARNING);
  MUSTER_EXPECT_FALSE (story_train (&it, (How)FROM_SCRATCH, &error));
  MUSTER_EXPECT_EQ (heard_count ("save-failed", "Checkpoint files cannot be accessed! *"), 5U);
  heard_end ();
  g_autofree char *why =
      g_strdup_printf ("the last epoch, 4, isn't saved: Checkpoint files cannot be accessed! The "
                       "job's metadata can't reach '%s'; check its permissions",
                       it.f.directory);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, why);
  MUSTER_EXPECT_FALSE (job_has_file (&it.f, "a.0"));
  MUSTER_EXPECT_TRUE (strstr (it.f.diary->str, "write") == NULL);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (it.f.diary->str, "exit"));
}

/* B003.69, B003.71, D003.1: each step of a save */
MUSTER_TEST (JobRunner, trains_on_after_a_save_that_failed_and_counts_it)
{
  const How how = {.resume = MUSTER_NO_EPOCH, .options = {.save_blocking = TRUE}};
  static const char *const words[] = {"accessible", "write 2", "report checkpoint_save"};
  for (gsize i = 0; i < G_N_ELEMENTS (words); i++) {
    g_auto (Story) it = {0};
    g_autoptr (GError) error = NULL;
    const GError *last = NULL;
    const guint n_failed = i == 1 ? 1 : 5;
    story_begin (&it, one_node);
    it.f.fails_at = words[i];
    heard_begin (G_LOG_LEVEL_WARNING);
    MUSTER_EXPECT_EQ (story_train (&it, how, &error), n_failed == 1);
    MUSTER_EXPECT_EQ (
        heard_count ("save-failed", "Unable to write checkpoint for epoch *. Error=* was to fail"),
        n_failed);
    heard_end ();
    MUSTER_EXPECT_TRUE (g_str_has_suffix (it.f.diary->str, "exit"));
    MUSTER_EXPECT_EQ (it.last, n_failed == 1 ? 4 : -99); /* its last epoch is saved */
    GArray *epochs = muster_job_runner_failed_epochs (it.runner, &last);
    MUSTER_ASSERT_EQ (epochs->len, n_failed);
    MUSTER_EXPECT_EQ (g_array_index (epochs, gint64, 0), i == 1 ? 2 : 0);
    MUSTER_EXPECT_ERROR (last, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  }
}

/* B003.70, B003.76 */
MUSTER_TEST (JobRunner, writes_no_metadata_for_a_save_that_failed)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  story_begin (&it, one_node);
  g_autofree char *nowhere = g_build_filename (it.f.directory, "nowhere", NULL);
  g_object_unref (it.checkpoint);
  it.checkpoint = muster_job_checkpoint_new (nowhere, NULL, it.f.metadata, NULL);

  heard_begin (G_LOG_LEVEL_WARNING);
  MUSTER_EXPECT_FALSE (story_train (&it, (How)FROM_SCRATCH, &error));

  MUSTER_EXPECT_EQ (heard_count ("no-checkpoints",
                                 "the checkpoint directory '*nowhere' doesn't exist, so no epoch "
                                 "will be saved; create it*"),
                    1U);
  MUSTER_EXPECT_EQ (heard_count ("save-failed", "Unable to write checkpoint for epoch *"), 5U);
  heard_end ();
  MUSTER_EXPECT_TRUE (g_str_has_prefix (SAID (error), "the last epoch, 4, isn't saved: "));
  MUSTER_EXPECT_FALSE (g_file_test (nowhere, G_FILE_TEST_EXISTS));
  MUSTER_EXPECT_STREQ (it.f.diary->str,
                       "params, resume, init, accessible, epoch, accessible, epoch, accessible, "
                       "epoch, accessible, epoch, accessible, upload, download, exit");
}

MUSTER_TEST (JobRunner, names_the_directory_that_does_not_exist_at_its_end)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  story_begin (&it, one_node);
  g_autofree char *nowhere = g_build_filename (it.f.directory, "nowhere", NULL);
  g_autoptr (MusterJobStateFile) state = muster_job_state_file_new ();
  g_object_unref (it.checkpoint);
  it.checkpoint = muster_job_checkpoint_new (nowhere, NULL, MUSTER_JOB_METADATA (state), NULL);

  heard_begin (G_LOG_LEVEL_WARNING);
  MUSTER_EXPECT_FALSE (story_train (&it, (How)FROM_SCRATCH, &error));
  heard_end ();

  g_autofree char *why =
      g_strdup_printf ("the last epoch, 4, isn't saved: Checkpoint files cannot be accessed! '%s' "
                       "doesn't exist; create it where every node's master sees it",
                       nowhere);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, why);
}

/* D003.1 */
MUSTER_TEST (JobRunner, ends_after_so_many_failed_saves_in_a_row)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  const How how = {.resume = MUSTER_NO_EPOCH, .options = {.most_failures_in_a_row = 3}};
  story_begin (&it, one_node);
  it.f.fails_at = "accessible";

  MUSTER_EXPECT_FALSE (story_train (&it, how, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_TRUE (
      g_str_has_prefix (SAID (error), "3 saves in a row have failed, the last one of epoch 2: "));
  MUSTER_EXPECT_STREQ (it.f.diary->str, "params, resume, init, epoch, epoch");
}

/* D003.1: a good one between them begins the count anew */
MUSTER_TEST (JobRunner, goes_on_if_not_too_many_saves_fail_in_a_row)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  const How how = {.resume = MUSTER_NO_EPOCH, .options = {.most_failures_in_a_row = 2}};
  story_begin (&it, one_node);
  it.f.fails_at = "write 1|write 3";

  MUSTER_EXPECT_TRUE (story_train (&it, how, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_job_runner_failed_epochs (it.runner, NULL)->len, 2u);
}

static gboolean
note_deadline (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us,
               GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error G_GNUC_UNUSED)
{
  *(gint64 *)data = deadline_us;
  return TRUE;
}

/* Each stage has its own deadline, and none goes beyond the whole's. */
MUSTER_TEST (JobRunner, bounds_its_stages)
{
  for (int bounded = 0; bounded < 2; bounded++) {
    g_auto (Story) it = {0};
    g_autoptr (GError) error = NULL;
    gint64 seen_us = 0;
    MusterJobStep step = {.func = note_deadline, .user_data = &seen_us};
    MusterJobRunnerOptions options = {.stage_timeout_us = 100 * MUSTER_SECOND};
    story_begin (&it, one_node);
    MusterJobTask *task = muster_job_task_new ("deadline", "a", 1);
    MUSTER_EXPECT_TRUE (muster_job_task_set_step (task, &step, NULL));
    job_add (muster_job_exit_group (it.f.job), task);
    const gint64 now_us = muster_clock_now_us (muster_system_clock ());
    const gint64 deadline_us = bounded ? now_us + 50 * MUSTER_SECOND : MUSTER_WAIT_FOREVER;
    g_autoptr (MusterJobRunner) runner =
        muster_job_runner_new (it.f.job, NULL, MUSTER_NO_EPOCH, &options);
    MUSTER_EXPECT_TRUE (
        muster_job_runner_train (runner, it.f.cluster, NULL, deadline_us, NULL, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    if (bounded)
      MUSTER_EXPECT_EQ (seen_us, deadline_us);
    else
      MUSTER_EXPECT_TRUE (seen_us >= now_us + 100 * MUSTER_SECOND && seen_us < G_MAXINT64);
  }
}

/* A handler that waits, for a database for instance, ends with the call. */
MUSTER_TEST (JobRunner, bounds_the_calls_of_its_metadata)
{
  static const char *const verbs[] = {"resume", "accessible", "write", "report"};
  g_auto (Story) it = {0};
  g_autoptr (GError) first = NULL;
  story_begin (&it, one_node);
  MUSTER_EXPECT_TRUE (story_train (&it, (How)FROM_SCRATCH, &first));

  for (gsize i = 0; i < G_N_ELEMENTS (verbs); i++)
    for (int cancels = 0; cancels < 2; cancels++) {
      g_autoptr (GCancellable) cancellable = g_cancellable_new ();
      g_autoptr (GError) error = NULL;
      const gint64 now_us = muster_clock_now_us (muster_system_clock ());
      const gint64 deadline_us = cancels ? MUSTER_WAIT_FOREVER : now_us + 50 * MUSTER_MILLISECOND;
      MUSTER_TRACE ("%s, cancel %d", verbs[i], cancels);
      it.fake->waits_at = verbs[i];
      it.fake->cancels = cancels ? cancellable : NULL;

      if (i == 0)
        MUSTER_EXPECT_FALSE (muster_job_runner_train (it.runner, it.f.cluster, NULL, deadline_us,
                                                      cancellable, &error));
      else
        MUSTER_EXPECT_FALSE (muster_job_runner_save (it.runner, it.f.cluster, 9, FALSE, NULL,
                                                     deadline_us, cancellable, &error));

      if (cancels)
        MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
      else
        MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
    }
}

/* --- alone --- */

/* B003.73, B003.74 */
MUSTER_TEST (JobRunner, says_that_it_has_no_checkpoints)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) save = NULL, load = NULL;
  const char *names[] = {"total", NULL};
  gboolean found = FALSE;
  story_begin (&it, one_node);
  g_autoptr (MusterJobRunner) runner =
      muster_job_runner_new (it.f.job, NULL, MUSTER_NO_EPOCH, NULL);

  MUSTER_EXPECT_FALSE (muster_job_runner_save (runner, it.f.cluster, 1, FALSE, NULL,
                                               MUSTER_WAIT_FOREVER, NULL, &save));
  MUSTER_EXPECT_FALSE (muster_job_runner_load_partial (runner, it.f.cluster, names, 1, NULL, &found,
                                                       NULL, MUSTER_WAIT_FOREVER, NULL, &load));
  MUSTER_EXPECT_STREQ (SAID (save), "Checkpoint manager is None");
  MUSTER_EXPECT_STREQ (SAID (load), "Checkpoint manager is None");
}

/* B003.74 */
MUSTER_TEST (JobRunner, reports_a_partial_load_whether_or_not_it_found_all)
{
  g_auto (Story) it = {0};
  g_autoptr (GError) error = NULL;
  const char *names[] = {"total", NULL};
  story_begin (&it, one_node);
  MUSTER_EXPECT_TRUE (story_train (&it, (How)FROM_SCRATCH, &error));

  for (gint64 epoch = 4; epoch <= 5; epoch++) {
    gboolean found = epoch != 4;
    g_auto (GStrv) loaded = NULL;
    g_string_truncate (it.f.diary, 0);
    MUSTER_EXPECT_TRUE (muster_job_runner_load_partial (it.runner, it.f.cluster, names, epoch, NULL,
                                                        &found, &loaded, MUSTER_WAIT_FOREVER, NULL,
                                                        &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (found, epoch == 4);
    MUSTER_EXPECT_EQ (g_strv_length (loaded), epoch == 4 ? 1u : 0u);
    MUSTER_EXPECT_STREQ (it.f.diary->str, "report checkpoint_partial_load");
  }
}

/* --- with the state file --- */

/* D003.14, D003.10: a new process finds where it was, and that it was done */
MUSTER_TEST (JobRunner, comes_back_by_itself_and_stays_finished)
{
  g_auto (JobFixture) f = {0};
  g_autoptr (GError) error = NULL;
  job_set_up (&f, two_nodes);
  static const gint64 wanted[] = {2, 4, 4, 5};

  for (int life = 0; life < 4; life++) {
    g_autoptr (MusterJobStateFile) state = muster_job_state_file_new ();
    g_autoptr (MusterJobCheckpoint) checkpoint =
        muster_job_checkpoint_new (f.directory, NULL, MUSTER_JOB_METADATA (state), NULL);
    MusterJobRunnerOptions options = {.stay_finished = life == 2};
    g_autoptr (MusterJobRunner) runner =
        muster_job_runner_new (f.job, checkpoint, MUSTER_NO_EPOCH, &options);
    if (life == 0)
      g_signal_connect (runner, "epoch-done", G_CALLBACK (stop_after_two), NULL);
    gint64 last = 0;
    MUSTER_EXPECT_TRUE (
        muster_job_runner_train (runner, f.cluster, &last, MUSTER_WAIT_FOREVER, NULL, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (last, wanted[life]);
    MUSTER_EXPECT_EQ (job_value (&f, "b", "copied"), life == 0 ? 115 : 145);
    job_begin_again (&f, two_nodes, FALSE);
  }
}

static gboolean
fail (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INTERNAL, "killed");
}

/* Dies in its first epoch, before anything of it is saved; then it is started without a choice. */
MUSTER_TEST (JobRunner, goes_on_from_the_epoch_that_was_chosen_also_when_it_dies_at_once)
{
  static const gint64 chosen[] = {MUSTER_NO_EPOCH, 1, MUSTER_NO_EPOCH};
  g_auto (JobFixture) f = {0};
  job_set_up (&f, two_nodes);

  for (int life = 0; life < 3; life++) {
    g_autoptr (MusterJobStateFile) state = muster_job_state_file_new ();
    g_autoptr (MusterJobCheckpoint) checkpoint =
        muster_job_checkpoint_new (f.directory, NULL, MUSTER_JOB_METADATA (state), NULL);
    g_autoptr (MusterJobRunner) runner =
        muster_job_runner_new (f.job, checkpoint, chosen[life], NULL);
    if (life == 2)
      g_signal_connect (runner, "epoch-done", G_CALLBACK (stop_after_two), NULL);
    g_autoptr (GError) error = NULL;
    gint64 last = 0;
    if (life == 1) {
      MusterJobTask *task = muster_job_task_new ("dies", "a", 1);
      const MusterJobStep step = {.func = fail};
      MUSTER_EXPECT_TRUE (muster_job_task_set_step (task, &step, NULL));
      job_add (muster_job_epoch_group (f.job), task);
    }
    MUSTER_EXPECT_EQ (
        muster_job_runner_train (runner, f.cluster, &last, MUSTER_WAIT_FOREVER, NULL, &error),
        life != 1);
    MUSTER_EXPECT_EQ (last, life == 0 ? 4 : life == 1 ? 0 : 2);
    if (life != 1) /* what b had begun beside the one that died */
      MUSTER_EXPECT_EQ (job_value (&f, "b", "total"), life == 0 ? 145 : 115);
    job_begin_again (&f, two_nodes, FALSE);
  }
}
