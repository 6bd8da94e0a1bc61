// SPDX-License-Identifier: Apache-2.0
/* Jobs that save while they train, over a store that can hold a save up. */
#include "jobs/job_runner.h"

#include "tests/doubles/gate_storage.h"
#include "tests/gtest_shim.h"
#include "tests/jobs/job_fixture.h"

#include <string.h>

static const char *const one_node[] = {"a", NULL};
static const char *const two_nodes[] = {"a", "b", NULL};

typedef struct {
  JobFixture f;
  MusterGateStorage *gates;
  MusterJobCheckpoint *checkpoint;
  MusterJobRunner *runner;
  MusterGate gate;   /* opened at the end of the first epoch */
  gboolean was_open; /* by then */
  gboolean fails;    /* the first epoch does */
  char *seen;        /* the diary at the end of the first epoch */
  gint64 total;      /* of node a, then */
  gboolean has_file; /* a.0, then */
  MusterJobSetup *setup;
  gint64 last;
} Story;

static void
story_clear (Story *self)
{
  g_clear_object (&self->runner);
  g_clear_object (&self->checkpoint);
  g_clear_object (&self->setup);
  g_clear_object (&self->gates);
  g_free (self->seen);
  job_tear_down (&self->f);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Story, story_clear)

/* At the end of an epoch; of the first one it looks, and opens the gate. */
static gboolean
look (MusterClusterNode *node G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
      GCancellable *cancellable G_GNUC_UNUSED, gpointer data, GError **error)
{
  Story *self = data;
  if (self->seen != NULL)
    return TRUE;
  if (!self->was_open)
    MUSTER_EXPECT_TRUE (muster_gate_storage_wait_for_arrival (self->gates, self->gate));
  g_mutex_lock (&self->f.lock);
  self->seen = g_strdup (self->f.diary->str);
  g_mutex_unlock (&self->f.lock);
  self->total = job_value (&self->f, "a", "total");
  self->has_file = job_has_file (&self->f, "a.0");
  muster_gate_storage_open_gate (self->gates, self->gate);
  return !self->fails || muster_fail (error, MUSTER_ERROR_INTERNAL, "the epoch was to fail");
}

static void
story_begin (Story *self, const char *const *nodes)
{
  self->last = -99;
  job_set_up (&self->f, nodes);
  (void)job_fake_metadata (&self->f);
  self->gates = muster_gate_storage_new ();
  self->checkpoint = muster_job_checkpoint_new (self->f.directory, MUSTER_STORAGE (self->gates),
                                                self->f.metadata, NULL);
  const MusterJobStep step = {.func = look, .user_data = self};
  self->setup = muster_job_setup_new (NULL, &step);
  g_assert_true (
      muster_job_group_add_setup (muster_job_epoch_group (self->f.job), "a", self->setup, NULL));
  job_add (muster_job_download_group (self->f.job), job_note_task (&self->f, "a", "download"));
}

static gboolean
story_train (Story *self, MusterJobRunnerOptions options, GError **error)
{
  options.stage_timeout_us = 60 * MUSTER_SECOND;
  g_clear_object (&self->runner);
  self->runner = muster_job_runner_new (self->f.job, self->checkpoint, MUSTER_NO_EPOCH, &options);
  return muster_job_runner_train (self->runner, self->f.cluster, &self->last, MUSTER_WAIT_FOREVER,
                                  NULL, error);
}

static gint64
saved_total (Story *self, gint64 epoch)
{
  static const char *const names[] = {"total", NULL};
  g_autoptr (GError) error = NULL;
  gboolean found = FALSE;
  MUSTER_EXPECT_TRUE (muster_job_runner_load_partial (self->runner, self->f.cluster, names, epoch,
                                                      NULL, &found, NULL, MUSTER_WAIT_FOREVER, NULL,
                                                      &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return found ? job_value (&self->f, "a", "total") : -1;
}

static guint
n_failed (Story *self, const GError **last)
{
  return muster_job_runner_failed_epochs (self->runner, last)->len;
}

#define SAVED(epoch) "write " epoch ", report checkpoint_save"

/* B003.59, B003.70: an epoch is trained while the one before is written, and its metadata follows
 * when it is durable. B001.41: the checkpoints are written to their own prefixes, without a state
 * file. */
MUSTER_TEST (JobBackground, trains_while_it_writes)
{
  for (int gate = 0; gate < MUSTER_N_GATES; gate++) {
    g_auto (Story) it = {.gate = (MusterGate)gate};
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("gate %d", gate);
    story_begin (&it, two_nodes);
    muster_gate_storage_close_gate (it.gates, it.gate);

    MUSTER_EXPECT_TRUE (story_train (&it, (MusterJobRunnerOptions){0}, &error));

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_STREQ (it.seen, "params, resume, accessible");
    if (it.gate == MUSTER_GATE_BEGIN)
      MUSTER_EXPECT_FALSE (it.has_file);
    MUSTER_EXPECT_EQ (it.total, 103);
    MUSTER_EXPECT_STREQ (
        it.f.diary->str,
        "params, resume, accessible, " SAVED ("0") ", accessible, " SAVED (
            "1") ", accessible, " SAVED ("2") ", accessible, " SAVED ("3") ", accessible, " SAVED ("4 finished") ", download");
    g_autofree char *state = g_build_filename (it.f.directory, "checkpoint", NULL);
    MUSTER_EXPECT_FALSE (g_file_test (state, G_FILE_TEST_EXISTS));
    MUSTER_EXPECT_EQ (n_failed (&it, NULL), 0u);
    MUSTER_EXPECT_EQ (saved_total (&it, 0), 100); /* as it was when the save was due */
    MUSTER_EXPECT_EQ (saved_total (&it, 1), 103);
    MUSTER_EXPECT_EQ (saved_total (&it, 4), 145);
  }
}

MUSTER_TEST (JobBackground, waits_for_each_save_if_it_is_told_to)
{
  g_auto (Story) it = {.gate = MUSTER_GATE_PUBLISH, .was_open = TRUE};
  g_autoptr (GError) error = NULL;
  story_begin (&it, one_node);

  MUSTER_EXPECT_TRUE (story_train (&it, (MusterJobRunnerOptions){.save_blocking = TRUE}, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (it.seen, "params, resume, accessible, " SAVED ("0"));
  MUSTER_EXPECT_TRUE (it.has_file);
}

/* B003.69, B003.70, B003.71: a failure comes out once, at the next save; there is no metadata. */
MUSTER_TEST (JobBackground, counts_a_failure_once_at_the_next_save)
{
  g_auto (Story) it = {.gate = MUSTER_GATE_BEGIN};
  g_autoptr (GError) error = NULL;
  const GError *last = NULL;
  story_begin (&it, one_node);
  muster_gate_storage_close_gate (it.gates, it.gate);
  muster_gate_storage_fail (it.gates, 1, MUSTER_ERROR_INTERNAL, "the disk is gone");

  MUSTER_EXPECT_TRUE (story_train (&it, (MusterJobRunnerOptions){0}, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (it.last, 4);
  MUSTER_ASSERT_EQ (n_failed (&it, &last), 1u);
  MUSTER_EXPECT_ERROR (last, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_TRUE (strstr (SAID (last), "the disk is gone") != NULL);
  MUSTER_EXPECT_FALSE (job_has_file (&it.f, "a.0"));
  MUSTER_EXPECT_TRUE (g_str_has_prefix (
      it.f.diary->str, "params, resume, accessible, accessible, " SAVED ("1") ", "));
}

/* D003.1: the last save's failure is counted before the job ends. */
MUSTER_TEST (JobBackground, ends_where_too_many_have_failed)
{
  g_auto (Story) it = {.gate = MUSTER_GATE_BEGIN, .was_open = TRUE};
  g_autoptr (GError) error = NULL;
  story_begin (&it, one_node);
  muster_gate_storage_fail (it.gates, 9, MUSTER_ERROR_INTERNAL, "the disk is gone");

  MUSTER_EXPECT_FALSE (
      story_train (&it, (MusterJobRunnerOptions){.most_failures_in_a_row = 5}, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (
      SAID (error), "5 saves in a row have failed, the last one of epoch 4: saving: Node 'a': "));
  MUSTER_EXPECT_TRUE (g_str_has_suffix (it.f.diary->str, "accessible")); /* no download */
}

/* B003.72: the epoch's failure ends the job, when what it had begun is complete. */
MUSTER_TEST (JobBackground, completes_what_it_had_begun_when_it_fails)
{
  g_auto (Story) it = {.gate = MUSTER_GATE_PUBLISH, .fails = TRUE};
  g_autoptr (GError) error = NULL;
  story_begin (&it, two_nodes);
  muster_gate_storage_close_gate (it.gates, it.gate);

  MUSTER_EXPECT_FALSE (story_train (&it, (MusterJobRunnerOptions){0}, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_STREQ (it.f.diary->str, "params, resume, accessible, " SAVED ("0"));
  MUSTER_EXPECT_TRUE (job_has_file (&it.f, "a.0"));
  MUSTER_EXPECT_TRUE (job_has_file (&it.f, "b.0"));
}

/* A save that hangs doesn't keep a job that is cancelled: the epoch before counts. */
MUSTER_TEST (JobBackground, gives_up_what_hangs_when_it_is_cancelled)
{
  g_auto (Story) it = {.gate = MUSTER_GATE_BEGIN, .was_open = TRUE};
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_autoptr (GError) error = NULL;
  story_begin (&it, one_node);
  job_fake_metadata (&it.f)->waits_at = "write";
  job_fake_metadata (&it.f)->cancels = cancellable;
  const MusterJobRunnerOptions options = {0};
  it.runner = muster_job_runner_new (it.f.job, it.checkpoint, MUSTER_NO_EPOCH, &options);

  MUSTER_EXPECT_FALSE (muster_job_runner_train (it.runner, it.f.cluster, &it.last,
                                                MUSTER_WAIT_FOREVER, cancellable, &error));

  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  MUSTER_EXPECT_TRUE (strstr (it.f.diary->str, "write") == NULL);
  MUSTER_EXPECT_GE (n_failed (&it, NULL), 1u);
}
