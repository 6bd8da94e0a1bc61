// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "tests/saver/restore_fixture.h"

/* Restoring one checkpoint on the real engine. */

/* SAV.62: variables need not be initialised before; they are after. */
MUSTER_TEST (RestoreWith, initialises_by_restoring)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);

  MUSTER_EXPECT_EQ (byte_of (&f, "u"), -1);
  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), 7);
  MUSTER_EXPECT_EQ (byte_of (&f, "w"), 7);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 7);
  MUSTER_EXPECT_STREQ (f.restored.prefix, prefix);
  MUSTER_EXPECT_EQ (f.restored.n_tensors, 3u);
  MUSTER_EXPECT_EQ (f.restored.bytes, 40u);
  MUSTER_EXPECT_NULL (f.restored.warning);
}

/* SAV.67: a file that was written anew is read anew. */
MUSTER_TEST (RestoreWith, reads_a_rewritten_file_anew)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);

  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));
  g_autofree char *again = write_as ("model.ckpt-7", three, 3, 9);
  MUSTER_EXPECT_TRUE (restore (&f, again, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 9);
}

/* What is fed must not be the session's to change: the saver keeps nothing of it. */
MUSTER_TEST (RestoreWith, restores_twice_from_one_file)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);

  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_TRUE (initialise (&f));
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 0);
  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 7);
}

MUSTER_TEST (RestoreWith, says_that_there_is_no_such_checkpoint)
{
  g_auto (Fixture) f = set_up (three, 3);
  MUSTER_EXPECT_FALSE (restore (&f, "/nowhere/model", (MusterRestoreOptions){0}));

  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
}

/* SAV.60 */
MUSTER_TEST (RestoreWith, refuses_no_prefix)
{
  g_auto (Fixture) f = set_up (three, 3);
  MUSTER_EXPECT_FALSE (restore (&f, NULL, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_STREQ (f.error->message, "Can't load save_path when it is None.");
  MUSTER_EXPECT_FALSE (restore (&f, "", (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

typedef struct {
  guint64 done, total;
  guint calls;
} Told;

static void
note_progress (guint64 done, guint64 total, gpointer user_data)
{
  Told *told = user_data;
  MUSTER_EXPECT_GE (done, told->done);
  *told = (Told){done, total, told->calls + 1};
}

MUSTER_TEST (RestoreWith, reports_how_far_it_is)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);
  Told told = {0};

  MUSTER_EXPECT_TRUE (
      restore (&f, prefix, (MusterRestoreOptions){.progress = note_progress, .user_data = &told}));

  MUSTER_EXPECT_GT (told.calls, 0u);
  MUSTER_EXPECT_EQ (told.done, told.total);
}

/* While it is being removed a checkpoint isn't there any more. */
MUSTER_TEST (RestoreWith, takes_one_that_is_being_removed_for_gone)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);
  g_autofree char *index = muster_bundle_index_path (prefix);
  MusterStorageLock *lock =
      muster_storage_lock (muster_local_storage (), index, MUSTER_LOCK_UNUSED, NULL);
  MUSTER_ASSERT_TRUE (lock != NULL);

  MUSTER_EXPECT_FALSE (restore (&f, prefix, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);

  muster_storage_unlock (muster_local_storage (), lock);
  MUSTER_EXPECT_TRUE (restore (&f, prefix, (MusterRestoreOptions){0}));
}

static void
try_to_remove (guint64 done G_GNUC_UNUSED, guint64 total G_GNUC_UNUSED, gpointer user_data)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (muster_remove_checkpoint (muster_local_storage (), user_data, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_BUSY);
}

/* DIFF.22: what a reader holds isn't deleted. */
MUSTER_TEST (RestoreWith, keeps_a_checkpoint_from_being_removed_meanwhile)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *prefix = write_as ("model.ckpt-7", three, 3, 7);

  MUSTER_EXPECT_TRUE (
      restore (&f, prefix, (MusterRestoreOptions){.progress = try_to_remove, .user_data = prefix}));
  MUSTER_EXPECT_TRUE (muster_remove_checkpoint (muster_local_storage (), prefix, NULL));
}

MUSTER_TEST (RestoreOptions, takes_a_checkpoint_or_a_directory)
{
  g_auto (Fixture) f = set_up (muster_small_variables, 2);
  const MusterRestoreOptions both = {.prefix = "a/model.ckpt-1", .directory = "a"};
  g_autoptr (GError) neither = NULL, two = NULL;
  MUSTER_EXPECT_FALSE (
      muster_saver_restore (f.saver, f.session, NULL, NULL, MUSTER_WAIT_FOREVER, NULL, &neither));
  MUSTER_EXPECT_ERROR (neither, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);

  MUSTER_EXPECT_FALSE (
      muster_saver_restore (f.saver, f.session, &both, NULL, MUSTER_WAIT_FOREVER, NULL, &two));
  MUSTER_EXPECT_ERROR (two, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (RestoreOptions, keeps_options_beyond_their_caller)
{
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  char directory[] = "run", need[] = "u";
  const char *const needs[] = {need, NULL};
  const MusterRestoreOptions callers = {
      .directory = directory, .names = names, .needs = needs, .reshape = TRUE};
  MusterRestoreOptions *copy = g_boxed_copy (MUSTER_TYPE_RESTORE_OPTIONS, &callers);
  *directory = *need = 'x';

  MUSTER_EXPECT_NULL (copy->prefix);
  MUSTER_EXPECT_STREQ (copy->directory, "run");
  MUSTER_EXPECT_STREQ (copy->needs[0], "u");
  MUSTER_EXPECT_TRUE (copy->names == names);
  MUSTER_EXPECT_TRUE (copy->reshape);
  MusterRestoreOptions *fresh = muster_restore_options_new ("run/model.ckpt-1", NULL);
  MUSTER_EXPECT_STREQ (fresh->prefix, "run/model.ckpt-1");
  g_boxed_free (MUSTER_TYPE_RESTORE_OPTIONS, copy);
  g_boxed_free (MUSTER_TYPE_RESTORE_OPTIONS, fresh);
}
