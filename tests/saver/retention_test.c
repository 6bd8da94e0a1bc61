// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_state.h"
#include "saver/saver.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

#include <glib/gstdio.h>

typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterSession *session;
  MusterSaver *saver;
} Fixture;

static Fixture
set_up (int in_saver_def, int in_options)
{
  Fixture f = {.clock = muster_fake_clock_new ()};
  g_autoptr (MusterMetaGraph) meta_graph =
      muster_small_model_new (muster_small_variables, 2, in_saver_def);
  MusterSaverOptions options = {.max_to_keep = in_options, .clock = MUSTER_CLOCK (f.clock)};

  f.master = muster_fake_master_new (f.clock);
  muster_small_model_play (f.master);
  muster_fake_master_set_variable (f.master, "v");
  f.session = muster_master_create_session (MUSTER_MASTER (f.master), NULL, NULL,
                                            MUSTER_WAIT_FOREVER, NULL, NULL);
  f.saver = muster_saver_new (meta_graph, &options, NULL);
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->saver);
  g_clear_object (&f->session);
  g_clear_object (&f->master);
  g_clear_object (&f->clock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

static void
save (Fixture *f, gint64 step)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = muster_saver_save (f->saver, f->session, muster_test_tmpdir (), step,
                                               MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
}

static void
save_steps (Fixture *f, gint64 first, gint64 last)
{
  for (gint64 step = first; step <= last; step++)
    save (f, step);
}

/* The steps in the saver's list, in the state file, and on disk: "3 4 5". */
static char *
steps_of (char **prefixes)
{
  GString *steps = g_string_new (NULL);

  for (char **prefix = prefixes; *prefix; prefix++)
    g_string_append_printf (steps, "%s%d", steps->len ? " " : "",
                            (int)muster_checkpoint_step (*prefix));
  return g_string_free (steps, FALSE);
}

static char *
steps_in_state (void)
{
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (muster_local_storage (), muster_test_tmpdir (), NULL);
  if (state == NULL)
    return g_strdup ("no state");
  g_ptr_array_add (state->all, NULL);
  return steps_of ((char **)state->all->pdata);
}

static char *
steps_on_disk (void)
{
  GString *steps = g_string_new (NULL);

  for (int step = 0; step < 20; step++) {
    g_autofree char *prefix = g_strdup_printf ("%s/model.ckpt-%d", muster_test_tmpdir (), step);
    if (muster_checkpoint_exists (muster_local_storage (), prefix))
      g_string_append_printf (steps, "%s%d", steps->len ? " " : "", step);
  }
  return g_string_free (steps, FALSE);
}

static void
expect_steps (Fixture *f, const char *expected)
{
  g_auto (GStrv) list = muster_saver_last_checkpoints (f->saver);
  g_autofree char *listed = steps_of (list);
  g_autofree char *in_state = steps_in_state ();
  g_autofree char *on_disk = steps_on_disk ();

  MUSTER_EXPECT_STREQ (listed, expected);
  MUSTER_EXPECT_STREQ (in_state, expected);
  MUSTER_EXPECT_STREQ (on_disk, expected);
}

/* SAV.52 */
MUSTER_TEST (Retention, keeps_as_many_as_the_saver_def_says)
{
  g_auto (Fixture) f = set_up (3, 0);

  save_steps (&f, 1, 7);

  expect_steps (&f, "5 6 7");
}

MUSTER_TEST (Retention, keeps_as_many_as_the_options_say)
{
  g_auto (Fixture) f = set_up (3, 2);

  save_steps (&f, 1, 7);

  expect_steps (&f, "6 7");
}

/* SAV.53, DIFF.17: all are kept, and all are listed */
MUSTER_TEST (Retention, keeps_and_lists_all_when_asked)
{
  g_auto (Fixture) by_def = set_up (0, 0);
  save_steps (&by_def, 1, 7);
  expect_steps (&by_def, "1 2 3 4 5 6 7");

  g_auto (Fixture) by_options = set_up (3, -1);
  save_steps (&by_options, 1, 7);
  expect_steps (&by_options, "1 2 3 4 5 6 7");
}

/* SAV.52: saved again, it stands at the end once */
MUSTER_TEST (Retention, lists_a_checkpoint_once)
{
  g_auto (Fixture) f = set_up (3, 0);

  save_steps (&f, 1, 3);
  save (&f, 1);

  g_auto (GStrv) list = muster_saver_last_checkpoints (f.saver);
  g_autofree char *listed = steps_of (list);
  MUSTER_EXPECT_STREQ (listed, "2 3 1");
}

/* SAV.50 */
MUSTER_TEST (Retention, recovers_the_list_of_what_is_there)
{
  g_auto (Fixture) before = set_up (9, 0);
  save_steps (&before, 1, 3);
  g_auto (Fixture) f = set_up (9, 0);
  g_autofree char *one = g_build_filename (muster_test_tmpdir (), "model.ckpt-1", NULL);
  g_autofree char *gone = g_build_filename (muster_test_tmpdir (), "model.ckpt-17", NULL);
  g_autofree char *three = g_build_filename (muster_test_tmpdir (), "model.ckpt-3", NULL);
  const char *const prefixes[] = {one, gone, three, NULL};

  muster_saver_recover_last_checkpoints (f.saver, prefixes);

  g_auto (GStrv) list = muster_saver_last_checkpoints (f.saver);
  g_autofree char *listed = steps_of (list);
  MUSTER_EXPECT_STREQ (listed, "1 3");
}

/* SAV.52, DIFF.18: a smaller max_to_keep catches up */
MUSTER_TEST (Retention, trims_as_many_as_are_too_many)
{
  g_auto (Fixture) before = set_up (9, 0);
  save_steps (&before, 1, 7);
  g_auto (GStrv) all = muster_saver_last_checkpoints (before.saver);
  g_auto (Fixture) f = set_up (2, 0);

  muster_saver_recover_last_checkpoints (f.saver, (const char *const *)all);
  save (&f, 8);

  expect_steps (&f, "7 8");
}

/* A saver of another process goes on where the one before left the directory. */
MUSTER_TEST (Retention, adopts_what_a_directory_lists)
{
  g_auto (Fixture) before = set_up (3, 0);
  save_steps (&before, 1, 3);
  g_auto (Fixture) f = set_up (3, 0);
  g_autoptr (GError) error = NULL;

  muster_saver_adopt_directory (f.saver, muster_test_tmpdir (), &error);
  save (&f, 4);

  MUSTER_EXPECT_NO_ERROR (error);
  expect_steps (&f, "2 3 4");
}

MUSTER_TEST (Retention, adopts_nothing_from_a_directory_without_a_state_and_refuses_a_broken_one)
{
  g_auto (Fixture) f = set_up (3, 0);
  g_autofree char *state = g_build_filename (muster_test_tmpdir (), "checkpoint", NULL);
  g_autoptr (GError) none = NULL;
  g_autoptr (GError) broken = NULL;

  MUSTER_EXPECT_TRUE (muster_saver_adopt_directory (f.saver, muster_test_tmpdir (), &none));
  MUSTER_ASSERT_TRUE (g_file_set_contents (state, "nonsense", -1, NULL));
  MUSTER_EXPECT_FALSE (muster_saver_adopt_directory (f.saver, muster_test_tmpdir (), &broken));

  MUSTER_EXPECT_ERROR (broken, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

/* SAV.40: the new one is "latest" before an old one goes */
MUSTER_TEST (Retention, removes_nothing_when_the_state_cannot_be_written)
{
  g_auto (Fixture) f = set_up (1, 0);
  g_autofree char *state = g_build_filename (muster_test_tmpdir (), "checkpoint", NULL);
  g_autoptr (GError) error = NULL;

  save (&f, 1);
  g_unlink (state);
  g_mkdir (state, 0777); /* in the way of the rename */
  g_autofree char *inside = g_build_filename (state, "x", NULL);
  g_file_set_contents (inside, "", 0, NULL);
  g_autofree char *prefix = muster_saver_save (f.saver, f.session, muster_test_tmpdir (), 2,
                                               MUSTER_WAIT_FOREVER, NULL, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_TRUE (error != NULL);
  g_autofree char *on_disk = steps_on_disk ();
  MUSTER_EXPECT_STREQ (on_disk, "1 2");
  g_auto (GStrv) list = muster_saver_last_checkpoints (f.saver);
  g_autofree char *listed = steps_of (list);
  MUSTER_EXPECT_STREQ (listed, "1");
}

/* SAV.55, DIFF.19: what can't be removed doesn't fail the save, and is tried again */
MUSTER_TEST (Retention, tries_again_to_remove_what_it_could_not)
{
  g_auto (Fixture) f = set_up (1, 0);
  g_autofree char *index = g_build_filename (muster_test_tmpdir (), "model.ckpt-1.index", NULL);
  g_autofree char *inside = g_build_filename (index, "x", NULL);

  save (&f, 1);
  g_unlink (index);
  g_mkdir (index, 0777);
  g_file_set_contents (inside, "", 0, NULL);
  save (&f, 2);
  MUSTER_EXPECT_TRUE (g_file_test (index, G_FILE_TEST_EXISTS));
  g_unlink (inside);
  save (&f, 3);

  MUSTER_EXPECT_FALSE (g_file_test (index, G_FILE_TEST_EXISTS));
  expect_steps (&f, "3");
}
