// SPDX-License-Identifier: Apache-2.0
#include "saver/restore.h"
#include "tests/saver/directory_fixture.h"

#include <glib/gstdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Which checkpoints of a directory are a saver's, and what becomes of others. */

static void
begin_run (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_saver_begin_run (f->saver, muster_test_tmpdir (), NULL, -1,
                                              MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* A checkpoint that neither the state file nor the side file names. */
static void
leave_a_strange_one (Fixture *f, gint64 step)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) other = saver_with (f, (MusterSaverOptions){.unlisted = TRUE});
  g_autofree char *prefix = save_by (f, other, step, &error);

  MUSTER_EXPECT_NO_ERROR (error);
}

static gboolean
adopt (Fixture *f, gboolean from_files, GError **error)
{
  g_clear_object (&f->saver);
  f->saver = saver_with (f, (MusterSaverOptions){0});
  return muster_saver_adopt_for_job (f->saver, muster_test_tmpdir (), from_files, error);
}

MUSTER_TEST (Owned, a_job_starts_nothing_anew_beside_what_nothing_names)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (GError) error = NULL;
  leave_a_strange_one (&f, 7);

  MUSTER_EXPECT_FALSE (adopt (&f, FALSE, &error));

  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION, "'model.ckpt-7'");
  MUSTER_EXPECT_TRUE (adopt (&f, TRUE, NULL));
}

/* Between the index and the state file: the side file knows of the run. */
MUSTER_TEST (Owned, a_first_save_that_was_cut_off_stops_nobody)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (GError) error = NULL;
  begin_run (&f);
  leave_a_strange_one (&f, 0);

  MUSTER_EXPECT_TRUE (adopt (&f, FALSE, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  save (&f, 0);

  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "0");
}

MUSTER_TEST (Owned, a_save_sets_aside_what_has_its_name)
{
  g_auto (Fixture) f = set_up_with_def (1, (MusterSaverOptions){0});
  g_autofree char *aside = below_tmpdir ("model.ckpt-2.bad.index");
  g_autofree char *another = below_tmpdir ("model.ckpt-2.bad-2.index");
  save (&f, 1);
  leave_a_strange_one (&f, 2);
  restart (&f, (MusterSaverOptions){0});

  save (&f, 2);
  save (&f, 2); /* the saver's own by now */
  save (&f, 3);

  MUSTER_EXPECT_TRUE (g_file_test (aside, G_FILE_TEST_EXISTS));
  MUSTER_EXPECT_FALSE (g_file_test (another, G_FILE_TEST_EXISTS));
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "3");
}

/* Its save had begun to record it: the temporary files tell. */
MUSTER_TEST (Owned, what_a_save_left_that_was_cut_off_is_replaced)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autofree char *mark = below_tmpdir (".saving-0123abcd-model.ckpt-2-alive");
  g_autofree char *aside = below_tmpdir ("model.ckpt-2.bad.index");
  save (&f, 1);
  leave_a_strange_one (&f, 2);
  MUSTER_ASSERT_TRUE (g_file_set_contents (mark, g_get_host_name (), -1, NULL));
  restart (&f, (MusterSaverOptions){0});
  muster_saver_adopt_directory (f.saver, muster_test_tmpdir (), NULL); /* as a restore does */

  save (&f, 2);

  MUSTER_EXPECT_FALSE (g_file_test (mark, G_FILE_TEST_EXISTS));
  MUSTER_EXPECT_FALSE (g_file_test (aside, G_FILE_TEST_EXISTS));
}

MUSTER_TEST (Owned, what_is_restored_without_a_state_file_is_what_is_trimmed)
{
  g_auto (Fixture) f = set_up_with_def (2, (MusterSaverOptions){0});
  g_autofree char *state = below_tmpdir ("checkpoint");
  gboolean found = FALSE;
  save (&f, 1);
  save (&f, 2);
  leave_a_strange_one (&f, 9);
  g_unlink (state);

  restart (&f, (MusterSaverOptions){0});

  MUSTER_EXPECT_TRUE (
      muster_saver_has_whole_checkpoint (f.saver, muster_test_tmpdir (), NULL, &found, NULL));
  MUSTER_EXPECT_TRUE (found);
  g_autofree char *listed = steps_listed (&f);
  MUSTER_EXPECT_STREQ (listed, "1 2");
}

/* --- jobs without a lease --- */

static gboolean
take (MusterSaver *saver, GError **error)
{
  return muster_saver_take_directory (saver, NULL, muster_test_tmpdir (), MUSTER_WAIT_FOREVER, NULL,
                                      error);
}

MUSTER_TEST (Owned, the_newer_job_of_a_process_takes_over_and_the_older_is_fenced)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (take (f.saver, &error));
  save (&f, 1);
  g_autoptr (MusterSaver) newer = saver_with (&f, (MusterSaverOptions){0});

  MUSTER_EXPECT_TRUE (take (newer, &error));
  MUSTER_EXPECT_NO_ERROR (error);

  g_autofree char *refused = save_by (&f, f.saver, 2, &error);
  MUSTER_EXPECT_NULL (refused);
  MUSTER_EXPECT_TRUE (muster_saver_is_taken_over (error));
  MUSTER_EXPECT_FALSE (take (f.saver, NULL)); /* nor does it come back with another session */
  g_autofree char *saved = save_by (&f, newer, 2, NULL);
  MUSTER_EXPECT_TRUE (saved != NULL);
}

/* `muster save` beside the job's chief. */
MUSTER_TEST (Owned, a_saver_that_is_no_jobs_takes_turns_with_one)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterSaver) beside = saver_with (&f, (MusterSaverOptions){0});
  MUSTER_EXPECT_TRUE (take (f.saver, &error));

  g_autofree char *other = save_by (&f, beside, 1, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  save (&f, 2);
}

static gboolean
can_be_taken_by_another_process (Fixture *f)
{
  int status = -1;
  const pid_t child = fork ();
  if (child == 0)
    _exit (take (saver_with (f, (MusterSaverOptions){0}), NULL) ? 0 : 1);
  MUSTER_EXPECT_EQ (waitpid (child, &status, 0), child);
  return status == 0;
}

MUSTER_TEST (Owned, a_job_that_has_ended_leaves_the_directory_to_others)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (take (f.saver, &error));
  MUSTER_EXPECT_FALSE (can_be_taken_by_another_process (&f));
  muster_saver_release_directory (f.saver, muster_test_tmpdir (), MUSTER_WAIT_FOREVER, NULL);
  MUSTER_EXPECT_TRUE (can_be_taken_by_another_process (&f));
  g_autoptr (MusterSaver) next = saver_with (&f, (MusterSaverOptions){0});

  MUSTER_EXPECT_TRUE (take (next, &error));

  g_autofree char *saved = save_by (&f, next, 2, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  save (&f, 3); /* by the saver of the ended job, beside the next */
}
