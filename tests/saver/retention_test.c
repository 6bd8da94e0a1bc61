// SPDX-License-Identifier: Apache-2.0
#include "tests/saver/directory_fixture.h"

#include <glib/gstdio.h>

#include "base/crc32c_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph_edit.h"

/* max_to_keep in the SaverDef and in the options */
static Fixture
keeping (int in_saver_def, int in_options)
{
  return set_up_with_def (in_saver_def, (MusterSaverOptions){.max_to_keep = in_options});
}

static void
save_steps (Fixture *f, gint64 first, gint64 last)
{
  for (gint64 step = first; step <= last; step++)
    save (f, step);
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

/* Expects these steps in the saver's list, in the state file and on disk: "3 4 5". */
static void
expect_steps (Fixture *f, const char *expected)
{
  g_autofree char *listed = steps_listed (f);
  g_autofree char *in_state = steps_in_state ();
  g_autofree char *on_disk = steps_on_disk ();

  MUSTER_EXPECT_STREQ (listed, expected);
  MUSTER_EXPECT_STREQ (in_state, expected);
  MUSTER_EXPECT_STREQ (on_disk, expected);
}

/* The same model with a node of so long a name. */
static MusterMetaGraph *
with_long_name (MusterMetaGraph *model, gsize size)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *name = g_strnfill (size, 'x');
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new_extension ();
  muster_graph_builder_node (b, "NoOp", name);
  g_autoptr (MusterGraph) extra = muster_graph_builder_end (b, &error);
  g_autoptr (MusterGraph) graph = muster_graph_extended (muster_meta_graph_graph (model), extra);
  return muster_meta_graph_with_variables (model, graph, NULL, 0, NULL, 0, &error);
}

/* Of each file that has one in the record; how many of them have more bytes. */
static guint
expect_sums (const MusterSideCheckpoint *checkpoint, gsize bytes)
{
  guint n_larger = 0;
  for (guint i = 0; i < checkpoint->files->len; i++) {
    const MusterSideFile *file = &g_array_index (checkpoint->files, MusterSideFile, i);
    g_autofree char *name = g_strconcat (checkpoint->name, file->name, NULL);
    g_autofree char *path = g_build_filename (muster_test_tmpdir (), name, NULL), *text = NULL;
    gsize size = 0;
    g_file_get_contents (path, &text, &size, NULL);
    MUSTER_EXPECT_EQ (file->size, size);
    if (file->has_crc)
      MUSTER_EXPECT_EQ (file->crc32c, muster_crc32c_extend (0, text, size));
    n_larger += file->has_crc && size > bytes;
  }
  return n_larger;
}

MUSTER_TEST (Retention, records_the_sums_of_large_files_too)
{
  enum { BYTES = 2500000 };
  g_autoptr (GError) error = NULL;
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  MusterMetaGraph *larger = with_long_name (f.meta_graph, BYTES);
  muster_meta_graph_unref (f.meta_graph);
  f.meta_graph = larger;
  g_object_unref (f.saver);
  f.saver = saver_with (&f, (MusterSaverOptions){0});
  save (&f, 1);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (muster_local_storage (), muster_test_tmpdir (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterSideCheckpoint *saved = muster_checkpoint_record_find (record, "model.ckpt-1");
  MUSTER_ASSERT_TRUE (saved != NULL);
  MUSTER_EXPECT_EQ (expect_sums (saved, BYTES), 1u);
}

/* SAV.52 */
MUSTER_TEST (Retention, keeps_as_many_as_the_saver_def_says)
{
  g_auto (Fixture) f = keeping (3, 0);
  save_steps (&f, 1, 7);

  expect_steps (&f, "5 6 7");
}

MUSTER_TEST (Retention, keeps_as_many_as_the_options_say)
{
  g_auto (Fixture) f = keeping (3, 2);
  save_steps (&f, 1, 7);

  expect_steps (&f, "6 7");
}

/* SAV.53, DIFF.17: all are kept, and all are listed */
MUSTER_TEST (Retention, keeps_and_lists_all_when_asked)
{
  g_auto (Fixture) by_def = keeping (0, 0);
  save_steps (&by_def, 1, 7);
  expect_steps (&by_def, "1 2 3 4 5 6 7");

  g_auto (Fixture) by_options = keeping (3, -1);
  save_steps (&by_options, 1, 7);
  expect_steps (&by_options, "1 2 3 4 5 6 7");
}

/* SAV.52: saved again, it stands at the end once */
MUSTER_TEST (Retention, lists_a_checkpoint_once)
{
  g_auto (Fixture) f = keeping (3, 0);
  save_steps (&f, 1, 3);
  save (&f, 1);

  g_autofree char *listed = steps_listed (&f);
  MUSTER_EXPECT_STREQ (listed, "2 3 1");
}

/* SAV.50 */
MUSTER_TEST (Retention, recovers_the_list_of_what_is_there)
{
  g_auto (Fixture) before = keeping (9, 0);
  save_steps (&before, 1, 3);
  g_auto (Fixture) f = keeping (9, 0);
  g_autofree char *one = below_tmpdir ("model.ckpt-1");
  g_autofree char *gone = below_tmpdir ("model.ckpt-17");
  g_autofree char *three = below_tmpdir ("model.ckpt-3");
  const char *const prefixes[] = {one, gone, three, NULL};

  muster_saver_recover_last_checkpoints (f.saver, prefixes);

  g_autofree char *listed = steps_listed (&f);
  MUSTER_EXPECT_STREQ (listed, "1 3");
}

/* SAV.52, DIFF.18: a smaller max_to_keep catches up */
MUSTER_TEST (Retention, trims_as_many_as_are_too_many)
{
  g_auto (Fixture) before = keeping (9, 0);
  save_steps (&before, 1, 7);
  g_auto (GStrv) all = muster_saver_last_checkpoints (before.saver);
  g_auto (Fixture) f = keeping (2, 0);

  muster_saver_recover_last_checkpoints (f.saver, (const char *const *)all);
  save (&f, 8);

  expect_steps (&f, "7 8");
}

/* A saver of another process goes on where the one before left the directory. */
MUSTER_TEST (Retention, adopts_what_a_directory_lists)
{
  g_auto (Fixture) before = keeping (3, 0);
  save_steps (&before, 1, 3);
  g_auto (Fixture) f = keeping (3, 0);
  g_autoptr (GError) error = NULL;

  muster_saver_adopt_directory (f.saver, muster_test_tmpdir (), &error);
  save (&f, 4);

  MUSTER_EXPECT_NO_ERROR (error);
  expect_steps (&f, "2 3 4");
}

/* As TensorFlow left it. */
MUSTER_TEST (Retention, keeps_what_the_record_does_not_know)
{
  g_auto (Fixture) before = keeping (3, 0);
  save_steps (&before, 1, 3);
  g_auto (GStrv) all = muster_saver_last_checkpoints (before.saver);
  g_autofree char *record = below_tmpdir (MUSTER_RECORD_FILE);
  MUSTER_ASSERT_EQ (g_unlink (record), 0);
  g_auto (Fixture) f = keeping (3, 0);

  muster_saver_recover_last_checkpoints (f.saver, (const char *const *)all);
  save (&f, 4);

  expect_steps (&f, "2 3 4");
}

/* Whoever may write into a shared directory could otherwise have another job's files removed. */
MUSTER_TEST (Retention, adopts_nothing_that_lies_in_another_directory)
{
  g_auto (Fixture) other = keeping (9, 0);
  save_steps (&other, 1, 3);
  g_autofree char *job = below_tmpdir ("job");
  g_autofree char *state = g_build_filename (job, "checkpoint", NULL);
  g_autofree char *one = below_tmpdir ("model.ckpt-1");
  g_autofree char *text =
      g_strdup_printf ("model_checkpoint_path: \"%s\"\nall_model_checkpoint_paths: \"%s\"\n"
                       "all_model_checkpoint_paths: \"../model.ckpt-2\"\n"
                       "all_model_checkpoint_paths: \"x/../../model.ckpt-3\"\n",
                       one, one);
  MUSTER_ASSERT_EQ (g_mkdir (job, 0700), 0);
  MUSTER_ASSERT_TRUE (g_file_set_contents (state, text, -1, NULL));
  g_auto (Fixture) f = keeping (1, 0);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_saver_adopt_directory (f.saver, job, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *listed = steps_listed (&f);
  MUSTER_EXPECT_STREQ (listed, "");
}

MUSTER_TEST (Retention, adopts_nothing_from_a_directory_without_a_state_and_refuses_a_broken_one)
{
  g_auto (Fixture) f = keeping (3, 0);
  g_autofree char *state = below_tmpdir ("checkpoint");
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
  g_auto (Fixture) f = keeping (1, 0);
  g_autofree char *state = below_tmpdir ("checkpoint");
  g_autoptr (GError) error = NULL;

  save (&f, 1);
  g_unlink (state);
  g_mkdir (state, 0777); /* in the way of the rename */
  g_autofree char *inside = g_build_filename (state, "x", NULL);
  g_file_set_contents (inside, "", 0, NULL);
  g_autofree char *prefix = save_by (&f, f.saver, 2, &error);

  MUSTER_EXPECT_NULL (prefix);
  MUSTER_EXPECT_TRUE (error != NULL);
  g_autofree char *on_disk = steps_on_disk ();
  MUSTER_EXPECT_STREQ (on_disk, "1 2");
  g_autofree char *listed = steps_listed (&f);
  MUSTER_EXPECT_STREQ (listed, "1");
}

/* SAV.55, DIFF.19: what can't be removed doesn't fail the save, and is tried again */
MUSTER_TEST (Retention, tries_again_to_remove_what_it_could_not)
{
  g_auto (Fixture) f = keeping (1, 0);
  g_autofree char *index = below_tmpdir ("model.ckpt-1.index");
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
