// SPDX-License-Identifier: Apache-2.0
/* The metadata handler that ships: D003.10, D003.14. */
#include "jobs/job_metadata.h"
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"

#include <glib/gstdio.h>

static const char *const two_nodes[] = {"a", "b", NULL};

static MusterJobMetadata *
state_file_new (void)
{
  MusterJobMetadata *self = MUSTER_JOB_METADATA (muster_job_state_file_new ());
  const MusterJobParams params = {
      .directory = muster_test_tmpdir (), .storage = muster_local_storage (), .nodes = two_nodes};
  g_assert_true (muster_job_metadata_set_params (self, &params, NULL));
  return self;
}

static void
write_file (const char *name, const char *text)
{
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), name, NULL);

  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

static gint64
last (MusterJobMetadata *self, gint64 user_epoch, gboolean *finished, GError **error)
{
  gint64 epoch = -99;
  return muster_job_metadata_last_epoch (self, user_epoch, &epoch, finished, MUSTER_WAIT_FOREVER,
                                         NULL, error)
             ? epoch
             : -99;
}

MUSTER_TEST (JobStateFile, resumes_at_the_last_epoch_that_was_written)
{
  g_autoptr (MusterJobMetadata) first = state_file_new (), second = state_file_new ();
  g_autoptr (GError) error = NULL;
  gboolean finished = TRUE;
  MUSTER_EXPECT_EQ (last (first, MUSTER_NO_EPOCH, &finished, &error), MUSTER_NO_EPOCH);
  MUSTER_EXPECT_FALSE (finished);
  MUSTER_EXPECT_TRUE (
      muster_job_metadata_write (first, 4, FALSE, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_EQ (last (second, MUSTER_NO_EPOCH, &finished, &error), 4);
  MUSTER_EXPECT_FALSE (finished);
  MUSTER_EXPECT_TRUE (
      muster_job_metadata_write (first, 5, TRUE, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_EQ (last (second, MUSTER_NO_EPOCH, &finished, &error), 5);
  MUSTER_EXPECT_TRUE (finished);
  MUSTER_EXPECT_EQ (last (second, 0, &finished, &error), 0); /* who asks for 0 gets 0 */
  MUSTER_EXPECT_FALSE (finished);
  MUSTER_ASSERT_NO_ERROR (error);
}

MUSTER_TEST (JobStateFile, else_searches_for_the_newest_epoch_that_all_nodes_have)
{
  g_autoptr (MusterJobMetadata) self = state_file_new ();
  g_autoptr (GError) error = NULL;
  static const char *const files[] = {"a.2.index",
                                      "b.2.index",
                                      "a.10.index",
                                      "b.10.index",
                                      "a.11.index",
                                      "b.12.index",
                                      "a.x.index",
                                      "a.-3.index",
                                      "b.-3.index",
                                      "a.012.index",
                                      "b.012.index",
                                      "a.99999999999999999999999999.index",
                                      "b.99999999999999999999999999.index"};
  gboolean finished = TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (files); i++)
    write_file (files[i], "");
  MUSTER_EXPECT_EQ (last (self, MUSTER_NO_EPOCH, &finished, &error), 10);
  MUSTER_EXPECT_FALSE (finished);
  MUSTER_ASSERT_NO_ERROR (error);
}

MUSTER_TEST (JobStateFile, does_not_begin_anew_for_a_file_that_cannot_be_read)
{
  static const char *const bad[] = {"",
                                    "nonsense",
                                    "[job]\nversion=1\n",
                                    "[job]\nversion=2\nepoch=4\n",
                                    "[job]\nepoch=4\n",
                                    "[job]\nversion=1\nepoch=-4\n",
                                    "[job]\nversion=1\nepoch=four\n",
                                    "[job]\nversion=1\nep\xffoch=4\n",
                                    "[job]\nversion=1\nepoch=4\nnodes=a;c;\n"};
  g_autoptr (MusterJobMetadata) self = state_file_new ();
  for (gsize i = 0; i < G_N_ELEMENTS (bad); i++) {
    g_autoptr (GError) error = NULL;
    gboolean finished;
    MUSTER_TRACE ("'%s'", bad[i]);
    write_file (MUSTER_JOB_STATE_NAME, bad[i]);
    MUSTER_EXPECT_EQ (last (self, MUSTER_NO_EPOCH, &finished, &error), -99);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
    MUSTER_EXPECT_TRUE (strstr ((error ? error->message : "no error"), MUSTER_JOB_STATE_NAME) !=
                        NULL);
    MUSTER_EXPECT_TRUE (error && g_utf8_validate (error->message, -1, NULL));
    MUSTER_EXPECT_TRUE (
        error &&
        g_str_has_suffix (error->message,
                          "; no epoch exists for all nodes; remove the file to start again"));
  }
}

MUSTER_TEST (JobStateFile, says_what_is_there_without_it)
{
  static const char *const files[] = {"a.2.index", "b.2.index", "a.3.index", "b.3.index",
                                      "a.4.index"};
  g_autoptr (MusterJobMetadata) self = state_file_new ();
  g_autoptr (GError) error = NULL, failure = NULL;
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), MUSTER_JOB_STATE_NAME, NULL);
  gboolean finished;
  for (gsize i = 0; i < G_N_ELEMENTS (files); i++)
    write_file (files[i], "");
  write_file (MUSTER_JOB_STATE_NAME, "[job]\nversion=1\nepoch=4\nnodes=a;c;\n");

  MUSTER_EXPECT_EQ (last (self, MUSTER_NO_EPOCH, &finished, &failure), -99);
  MUSTER_ASSERT_NOT_NULL (failure);
  MUSTER_EXPECT_TRUE (strstr (failure->message,
                              "it belongs to another job, with the nodes 'a', 'c' and without 'b'; "
                              "repair it, or remove it to resume at epoch 3, the newest that "
                              "every node has") != NULL);

  (void)g_unlink (path); /* and that is so */
  MUSTER_EXPECT_EQ (last (self, MUSTER_NO_EPOCH, &finished, &error), 3);
  MUSTER_ASSERT_NO_ERROR (error);
}

MUSTER_TEST (JobStateFile, says_whether_its_directory_can_be_reached)
{
  g_autoptr (MusterJobMetadata) self = state_file_new ();
  g_autoptr (MusterJobMetadata) untold = MUSTER_JOB_METADATA (muster_job_state_file_new ());
  const MusterJobParams elsewhere = {
      .directory = "/nowhere", .storage = muster_local_storage (), .nodes = two_nodes};
  g_autoptr (GError) error = NULL;
  gboolean accessible = FALSE;
  MUSTER_EXPECT_TRUE (muster_job_metadata_accessible (self, MUSTER_NO_EPOCH, &accessible,
                                                      MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (accessible);
  MUSTER_EXPECT_TRUE (muster_job_metadata_set_params (self, &elsewhere, &error));
  MUSTER_EXPECT_TRUE (
      muster_job_metadata_accessible (self, 1, &accessible, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_FALSE (accessible);
  MUSTER_EXPECT_FALSE (
      muster_job_metadata_accessible (untold, 1, &accessible, MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
}

MUSTER_TEST (JobStateFile, keeps_the_last_report)
{
  g_autoptr (MusterJobMetadata) self = state_file_new ();
  g_autoptr (GPtrArray) stats = g_ptr_array_new ();
  const char *action = NULL;
  MUSTER_EXPECT_TRUE (
      muster_job_metadata_report (self, "checkpoint_load", stats, MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_PTR_EQ (muster_job_state_file_stats (MUSTER_JOB_STATE_FILE (self), &action), stats);
  MUSTER_EXPECT_STREQ (action, "checkpoint_load");
}

static void
report (MusterJobMetadata *self, const char *action, gint64 epoch)
{
  MusterJobStat stat = {.path = "/d/a.2", .node = "a", .epoch = epoch};
  g_autoptr (GPtrArray) stats = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;
  g_ptr_array_add (stats, &stat);
  (void)muster_job_metadata_report (self, action, stats, MUSTER_WAIT_FOREVER, NULL, &error);
  g_assert_no_error (error);
}

/* Only once it is loaded: one that isn't there must not be what the next process looks for. */
MUSTER_TEST (JobStateFile, keeps_the_epoch_that_was_chosen_once_it_is_loaded)
{
  static const struct {
    gint64 known; /* in the file; MUSTER_NO_EPOCH: there is none */
    gint64 chosen;
    const char *action;
    gint64 loaded, next;
    gboolean finished;
  } cases[] = {{5, 2, "checkpoint_load", 2, 2, FALSE},
               {MUSTER_NO_EPOCH, 2, "checkpoint_load", 2, 2, FALSE},
               {5, 7, "checkpoint_load", 7, 7, FALSE},
               {5, 5, "checkpoint_load", 5, 5, TRUE},
               {5, MUSTER_NO_EPOCH, "checkpoint_load", 5, 5, TRUE},
               {5, 2, "checkpoint_partial_load", 2, 5, TRUE},
               {5, 2, "checkpoint_save", 2, 5, TRUE},
               {5, 2, NULL, 0, 5, TRUE}};

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterJobMetadata) first = state_file_new (), second = state_file_new ();
    g_autofree char *path = g_build_filename (muster_test_tmpdir (), MUSTER_JOB_STATE_NAME, NULL);
    g_autoptr (GError) error = NULL;
    gboolean finished = !cases[i].finished;
    MUSTER_TRACE ("case %u", (guint)i);
    (void)g_unlink (path);
    if (cases[i].known != MUSTER_NO_EPOCH)
      MUSTER_EXPECT_TRUE (muster_job_metadata_write (first, cases[i].known, TRUE,
                                                     MUSTER_WAIT_FOREVER, NULL, &error));
    (void)last (first, cases[i].chosen, &finished, &error);
    heard_begin (G_LOG_LEVEL_MESSAGE);
    if (cases[i].action != NULL)
      report (first, cases[i].action, cases[i].loaded);
    MUSTER_EXPECT_EQ (heard_count ("restore",
                                   "*from epoch *, as requested; this epoch is now the latest"
                                   "*" MUSTER_JOB_STATE_NAME "*"),
                      cases[i].next != cases[i].known ? 1U : 0U);
    heard_end ();
    MUSTER_EXPECT_EQ (last (second, MUSTER_NO_EPOCH, &finished, &error), cases[i].next);
    MUSTER_EXPECT_EQ (finished, cases[i].finished);
    MUSTER_ASSERT_NO_ERROR (error);
  }
}
