// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_state.h"
#include "saver/saver.h"
#include "tests/saver/restore_fixture.h"

/* The saver on the real engine. */

static gint64
value_of_w (Fixture *f, GError **error)
{
  g_autoptr (MusterTensor) w =
      muster_session_fetch (f->session, "w/read:0", MUSTER_WAIT_FOREVER, NULL, error);
  return w != NULL ? *(const gint64 *)muster_tensor_data (w) : -1;
}

#define ONES 0x0101010101010101

/* Variables of ones, in the directory, as the latest. */
static char *
write_ones (const MusterSmallVariable *variables, gsize n)
{
  char *prefix = g_build_filename (muster_test_tmpdir (), "model.ckpt-1", NULL);
  g_autoptr (GError) error = NULL;
  muster_small_model_write (prefix, variables, n, 1, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return prefix;
}

MUSTER_TEST (SaverOnEngine, restores_what_another_program_wrote)
{
  g_auto (Fixture) f = set_up (muster_small_variables, 2);
  g_autofree char *prefix = write_ones (muster_small_variables, 2);
  g_autoptr (GError) error = NULL;

  muster_saver_restore (f.saver, f.session, &(MusterRestoreOptions){.prefix = prefix}, NULL,
                        MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (value_of_w (&f, NULL), ONES);
}

MUSTER_TEST (SaverOnEngine, saves_and_restores_in_another_process)
{
  g_auto (Fixture) f = set_up (muster_small_variables, 2);
  g_autofree char *ones = write_ones (muster_small_variables, 2);
  g_autoptr (GError) error = NULL;
  muster_saver_restore (f.saver, f.session, &(MusterRestoreOptions){.prefix = ones}, NULL,
                        MUSTER_WAIT_FOREVER, NULL, NULL);

  g_autofree char *directory = g_build_filename (muster_test_tmpdir (), "run", NULL);
  g_autofree char *prefix =
      muster_saver_save (f.saver, f.session, directory, 640, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);

  g_auto (Fixture) after = set_up (muster_small_variables, 2);
  const MusterRestoreOptions latest = {.directory = directory};
  g_auto (MusterRestored) restored = {0};
  MUSTER_EXPECT_TRUE (muster_saver_restore (after.saver, after.session, &latest, &restored,
                                            MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (restored.prefix, prefix);
  MUSTER_EXPECT_EQ (value_of_w (&after, NULL), ONES);
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), directory, NULL);
  MUSTER_EXPECT_EQ (g_strv_length (names), 6u);
}

/* DIFF.21: nothing is assigned unless everything fits */
MUSTER_TEST (SaverOnEngine, assigns_nothing_of_a_checkpoint_that_does_not_fit)
{
  const MusterSmallVariable misfit[] = {
      {"v", MUSTER_FLOAT, 1, {2, 0}},
      {"w", MUSTER_INT64, 1, {3, 0}},
  };
  g_auto (Fixture) f = set_up (muster_small_variables, 2);
  g_autofree char *prefix = write_ones (misfit, 2);
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (initialise (&f));

  MUSTER_EXPECT_FALSE (muster_saver_restore (f.saver, f.session,
                                             &(MusterRestoreOptions){.prefix = prefix}, NULL,
                                             MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_autoptr (MusterTensor) v =
      muster_session_fetch (f.session, "v/read:0", MUSTER_WAIT_FOREVER, NULL, NULL);
  MUSTER_ASSERT_TRUE (v != NULL);
  MUSTER_EXPECT_EQ (*(const float *)muster_tensor_data (v), 0.0F);
  MUSTER_EXPECT_EQ (value_of_w (&f, NULL), 0);
}

MUSTER_TEST (SaverOnEngine, assigns_nothing_of_a_damaged_checkpoint)
{
  g_auto (Fixture) f = set_up (muster_small_variables, 2);
  g_autofree char *prefix = write_ones (muster_small_variables, 2);
  g_autofree char *path = g_strconcat (prefix, ".data-00000-of-00001", NULL);
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (initialise (&f));

  g_file_set_contents (path, "\1\1\1\1\1\1\1\2\1\1\1\1\1\1\1\1", 16, NULL);
  MUSTER_EXPECT_FALSE (muster_saver_restore (f.saver, f.session,
                                             &(MusterRestoreOptions){.prefix = prefix}, NULL,
                                             MUSTER_WAIT_FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_EQ (value_of_w (&f, NULL), 0);
}

/* SAV.49 */
MUSTER_TEST (SaverOnEngine, saves_nothing_of_a_model_without_values)
{
  g_auto (Fixture) f = set_up (muster_small_variables, 2);
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = muster_saver_save (f.saver, f.session, muster_test_tmpdir (), 1,
                                               MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  g_auto (GStrv) names = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  MUSTER_EXPECT_EQ (g_strv_length (names), 0u);
}
