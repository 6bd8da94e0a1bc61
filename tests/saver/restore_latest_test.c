// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_state.h"
#include "engine/session/local_master.h"
#include "tests/doubles/sharded_model.h"
#include "tests/doubles/watched_storage.h"
#include "tests/saver/restore_fixture.h"

#include <glib/gstdio.h>

/* Which checkpoint of a directory is restored, and what becomes of those that are damaged. */

/* DIFF.15 */
MUSTER_TEST (RestoreLatest, quarantines_a_damaged_one_and_takes_the_one_before)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *whole = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *bad = write_as ("model.ckpt-4", three, 3, 4);
  write_state (whole, bad, NULL);
  damage (bad);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_STREQ (f.restored.prefix, whole);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 3);
  MUSTER_ASSERT_TRUE (f.restored.passed_over != NULL);
  g_autofree char *quarantined =
      g_strdup_printf ("\n"
                       "  set aside as %s.bad; no variable was read from it",
                       bad);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (f.restored.passed_over, quarantined));
  MUSTER_EXPECT_FALSE (exists ("model.ckpt-4"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4.bad"));
  g_auto (GStrv) kept = muster_saver_last_checkpoints (f.saver);
  MUSTER_EXPECT_EQ (g_strv_length (kept), 1u);
}

/* Where nothing can be written it is passed over, and that is said. */
MUSTER_TEST (RestoreLatest, passes_a_damaged_one_over_where_it_may_not_write)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *whole = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *bad = write_as ("model.ckpt-4", three, 3, 4);
  g_autofree char *lock = path_of (".muster.lock");
  write_state (whole, bad, NULL);
  damage (bad);
  MUSTER_ASSERT_EQ (g_mkdir (lock, 0777), 0); /* nobody gets that lock */

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.count_deaths = TRUE}));

  MUSTER_EXPECT_STREQ (f.restored.prefix, whole);
  MUSTER_ASSERT_TRUE (f.restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (
      strstr (f.restored.passed_over, "skipped; no variable was read from it (Setting"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4"));
  MUSTER_EXPECT_TRUE (f.restored.warning && strstr (f.restored.warning, "can't record the start"));
}

MUSTER_TEST (RestoreLatest, leaves_a_damaged_one_on_request)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *whole = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *bad = write_as ("model.ckpt-4", three, 3, 4);
  write_state (whole, bad, NULL);
  damage (bad);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.keep_damaged = TRUE}));
  MUSTER_EXPECT_STREQ (f.restored.prefix, whole);
  MUSTER_EXPECT_TRUE (f.restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4"));

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){.fall_back_off = TRUE}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4"));
}

/* Nothing is put aside where nothing would be left. */
MUSTER_TEST (RestoreLatest, moves_nothing_where_none_is_whole)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-4", three, 3, 4);
  write_state (older, newer, NULL);
  damage (older);
  damage (newer);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_ASSERT_TRUE (f.error != NULL);
  MUSTER_EXPECT_TRUE (g_str_has_prefix (f.error->message, "none of 2 checkpoints in "));
  MUSTER_EXPECT_TRUE (strstr (f.error->message, "model.ckpt-4"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-3"));
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4"));
  MUSTER_EXPECT_EQ (byte_of (&f, "v"), -1);
}

/* B002.22, DIFF.14: an unreadable state isn't none, but the files may stand in for it. */
MUSTER_TEST (RestoreLatest, falls_back_to_the_files_only_on_request)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *older = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *newer = write_as ("model.ckpt-10", three, 3, 10);
  g_autofree char *state = path_of ("checkpoint");
  g_file_set_contents (state, "model_checkpoint_path: \"mod", -1, NULL);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.fall_back_to_files = TRUE}));
  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_STREQ (f.restored.prefix, newer);
  MUSTER_EXPECT_TRUE (f.restored.warning != NULL);
}

/* B002.24, DIFF.15 */
MUSTER_TEST (RestoreLatest, reads_the_files_where_those_named_are_gone)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *there = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *gone = path_of ("model.ckpt-4");
  write_state (gone, NULL);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.fall_back_to_files = TRUE}));
  MUSTER_EXPECT_STREQ (f.restored.prefix, there);
}

/* DIFF.21: also where several ops read, each its own shard, nothing is assigned unless all is
 * whole. */
MUSTER_TEST (RestoreLatest, assigns_no_shard_of_a_checkpoint_with_a_damaged_one)
{
  const MusterShardedModel model = {.max_to_keep = 5};
  g_autoptr (MusterMetaGraph) meta_graph = muster_sharded_model_new (&model);
  g_autoptr (MusterSaver) saver = muster_saver_new (meta_graph, NULL, NULL);
  g_autoptr (MusterMaster) master = muster_local_master_new ();
  g_autoptr (MusterSession) session = muster_master_create_session (
      master, muster_meta_graph_graph (meta_graph), NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
  g_autofree char *directory = path_of ("sharded");
  g_autoptr (GError) error = NULL;
  char *saved[2];

  for (int i = 0; i < 2; i++) {
    MUSTER_EXPECT_TRUE (muster_sharded_model_set (&model, session, (guint8)(i + 1), NULL));
    saved[i] =
        muster_saver_save (saver, session, directory, i + 1, MUSTER_WAIT_FOREVER, NULL, NULL);
    MUSTER_ASSERT_TRUE (saved[i] != NULL);
  }
  g_autofree char *older = saved[0];
  g_autofree char *newer = saved[1];
  g_autofree char *shard = g_strconcat (newer, ".data-00001-of-00002", NULL);
  g_autofree char *bytes = NULL;
  gsize size = 0;
  MUSTER_ASSERT_TRUE (g_file_get_contents (shard, &bytes, &size, NULL) && size > 0);
  bytes[size - 1] ^= 1;
  g_file_set_contents (shard, bytes, (gssize)size, NULL);
  MUSTER_EXPECT_TRUE (muster_sharded_model_set (&model, session, 9, NULL));

  MUSTER_EXPECT_FALSE (muster_saver_restore (saver, session,
                                             &(MusterRestoreOptions){.prefix = newer}, NULL,
                                             MUSTER_WAIT_FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  MUSTER_EXPECT_EQ (muster_sharded_model_get (session, NULL), 9);

  const MusterRestoreOptions latest = {.directory = directory};
  g_auto (MusterRestored) restored = {0};
  MUSTER_EXPECT_TRUE (
      muster_saver_restore (saver, session, &latest, &restored, MUSTER_WAIT_FOREVER, NULL, NULL));
  MUSTER_EXPECT_STREQ (restored.prefix, older);
  MUSTER_EXPECT_EQ (muster_sharded_model_get (session, NULL), 1);
}

/* What a saver at work with max_to_keep does between a reader's look and its lock. */
typedef struct {
  const char *removed[3]; /* prefixes, NULL-terminated */
  const char *saved;      /* the new latest; NULL: none */
} SaverAtWork;

static void
save_and_remove (gpointer user_data)
{
  const SaverAtWork *self = user_data;
  if (self->saved != NULL)
    write_state (self->saved, NULL);
  for (const char *const *prefix = self->removed; *prefix; prefix++)
    MUSTER_EXPECT_TRUE (muster_remove_checkpoint (NULL, *prefix, NULL));
}

static MusterWatchedStorage *
watch (Fixture *f)
{
  MusterWatchedStorage *storage = muster_watched_storage_new ();
  const MusterSaverOptions options = {.storage = MUSTER_STORAGE (storage)};
  g_clear_object (&f->saver);
  f->saver = muster_saver_new (f->meta_graph, &options, NULL);
  return storage;
}

MUSTER_TEST (RestoreLatest, reads_the_state_again_where_a_saver_has_removed_what_it_named)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *third = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *fourth = write_as ("model.ckpt-4", three, 3, 4);
  g_autofree char *fifth = write_as ("model.ckpt-5", three, 3, 5);
  g_autoptr (MusterWatchedStorage) storage = watch (&f);
  write_state (third, fourth, NULL);
  SaverAtWork saver = {{third, fourth}, fifth};
  muster_watched_storage_call (storage, "/model.ckpt-4.index", save_and_remove, &saver);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_STREQ (f.restored.prefix, fifth);
  MUSTER_EXPECT_NULL (f.restored.passed_over);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 5);
}

/* max_to_keep 1, and the latest or none */
MUSTER_TEST (RestoreLatest, reads_the_state_again_also_without_falling_back)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *fourth = write_as ("model.ckpt-4", three, 3, 4);
  g_autofree char *fifth = write_as ("model.ckpt-5", three, 3, 5);
  g_autoptr (MusterWatchedStorage) storage = watch (&f);
  write_state (fourth, NULL);
  SaverAtWork saver = {{fourth}, fifth};
  muster_watched_storage_call (storage, "/model.ckpt-4.index", save_and_remove, &saver);

  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.fall_back_off = TRUE}));

  MUSTER_EXPECT_STREQ (f.restored.prefix, fifth);
}

MUSTER_TEST (RestoreLatest, fails_once_the_state_names_the_same_again)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *fourth = write_as ("model.ckpt-4", three, 3, 4);
  g_autoptr (MusterWatchedStorage) storage = watch (&f);
  write_state (fourth, NULL);
  SaverAtWork saver = {{fourth}, NULL};
  muster_watched_storage_call (storage, "/model.ckpt-4.index", save_and_remove, &saver);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));

  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
}

MUSTER_TEST (LatestCheckpoint, reads_the_state_again_where_a_saver_has_removed_what_it_named)
{
  g_autofree char *fourth = write_as ("model.ckpt-4", three, 3, 4);
  g_autofree char *fifth = write_as ("model.ckpt-5", three, 3, 5);
  g_autoptr (MusterWatchedStorage) storage = muster_watched_storage_new ();
  g_autoptr (GError) error = NULL;
  write_state (fourth, NULL);
  SaverAtWork saver = {{fourth}, fifth};
  muster_watched_storage_call (storage, "/model.ckpt-4.index", save_and_remove, &saver);

  g_autofree char *latest =
      muster_latest_checkpoint (MUSTER_STORAGE (storage), muster_test_tmpdir (), &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (latest, fifth);
}

MUSTER_TEST (RestoreLatest, needs_nobody_who_asks_what_was_restored)
{
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *whole = write_as ("model.ckpt-3", three, 3, 3);
  write_state (whole, NULL);

  const MusterRestoreOptions latest = {.directory = muster_test_tmpdir ()};
  MUSTER_EXPECT_TRUE (muster_saver_restore (f.saver, f.session, &latest, NULL, MUSTER_WAIT_FOREVER,
                                            NULL, &f.error));

  MUSTER_EXPECT_NO_ERROR (f.error);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 3);
}

/* One that was saved by somebody who doesn't know of "u". */
MUSTER_TEST (RestoreLatest, passes_one_over_that_lacks_what_is_needed)
{
  static const char *const needs[] = {"u", NULL};
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *whole = write_as ("model.ckpt-3", three, 3, 3);
  g_autofree char *lacking = write_as ("model.ckpt-4", three, 2, 4);
  write_state (whole, lacking, NULL);

  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){0}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (restore_latest (&f, (MusterRestoreOptions){.needs = needs}));

  MUSTER_EXPECT_STREQ (f.restored.prefix, whole);
  MUSTER_EXPECT_EQ (byte_of (&f, "u"), 3);
  MUSTER_ASSERT_TRUE (f.restored.passed_over != NULL);
  MUSTER_EXPECT_TRUE (strstr (f.restored.passed_over, lacking) != NULL);
  MUSTER_EXPECT_TRUE (strstr (f.restored.passed_over, "u") != NULL);
  MUSTER_EXPECT_TRUE (strstr (f.restored.passed_over, "skipped: ") != NULL);
  MUSTER_EXPECT_TRUE (exists ("model.ckpt-4")); /* it isn't damaged */
}

/* Another misfit is an error still, and so is one where no other is better. */
MUSTER_TEST (RestoreLatest, takes_what_is_needed_for_no_failure)
{
  static const char *const needs[] = {"u", NULL};
  static const MusterSmallVariable other[] = {{"v", MUSTER_FLOAT, 1, {3, 0}},
                                              {"w", MUSTER_INT64, 0, {0, 0}},
                                              {"u", MUSTER_FLOAT, 2, {2, 3}}};
  g_auto (Fixture) f = set_up (three, 3);
  g_autofree char *lacking = write_as ("model.ckpt-3", three, 2, 3);
  g_autofree char *wrong = write_as ("model.ckpt-4", other, 3, 4);

  write_state (lacking, NULL);
  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){.needs = needs}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  write_state (lacking, wrong, NULL);
  MUSTER_EXPECT_FALSE (restore_latest (&f, (MusterRestoreOptions){.needs = needs}));
  MUSTER_EXPECT_ERROR (f.error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (strstr (f.error->message, wrong) != NULL);
}
