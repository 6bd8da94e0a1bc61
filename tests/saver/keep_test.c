// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/forwarding_storage.h"
#include "saver/async/checkpoint_manager.h"
#include "saver/builder/saver_builder.h"
#include "tests/doubles/heard.h"
#include "tests/saver/directory_fixture.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>

#define HOUR (3600 * MUSTER_SECOND)

static void
expect_there (Fixture *f, const char *listed, const char *there)
{
  g_autofree char *list = steps_listed (f);
  g_autofree char *files = steps_there ();

  MUSTER_EXPECT_STREQ (list, listed);
  MUSTER_EXPECT_STREQ (files, there);
}

static void
save_hourly (Fixture *f, gint64 first, gint64 last)
{
  for (gint64 step = first; step <= last; step++) {
    muster_fake_clock_pass (f->clock, HOUR);
    save (f, step);
  }
}

/* SAV.54: strictly after the mark and so many hours; and it moves on by so many hours */
MUSTER_TEST (Keep, one_in_every_so_many_hours_by_the_savers_rule)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1, .keep_every_n_hours = 2});
  save_hourly (&f, 1, 9);

  expect_there (&f, "9", "3 5 7 9");
}

/* SAV.54, DIFF.20: the mark is stored */
MUSTER_TEST (Keep, goes_by_the_stored_mark_after_a_restart)
{
  MusterSaverOptions options = {.max_to_keep = 1, .keep_every_n_hours = 2};
  g_auto (Fixture) f = set_up (options);
  save_hourly (&f, 1, 2);
  for (gint64 step = 3; step <= 9; step++) {
    restart (&f, options);
    save_hourly (&f, step, step);
  }

  expect_there (&f, "9", "3 5 7 9");
}

static void
expect_one_after_a_weekend (gboolean restarts)
{
  MusterSaverOptions options = {.max_to_keep = 1, .keep_every_n_hours = 1};
  g_auto (Fixture) f = set_up (options);
  save_hourly (&f, 1, 1);
  muster_fake_clock_pass (f.clock, 72 * HOUR);
  if (restarts)
    restart (&f, options);

  for (gint64 step = 2; step <= 30; step++) {
    muster_fake_clock_pass (f.clock, HOUR / 60);
    save (&f, step);
  }

  expect_there (&f, "30", "2 30");
}

/* SAV.54, where a process stood still */
MUSTER_TEST (Keep, one_after_a_gap_by_the_savers_rule)
{
  expect_one_after_a_weekend (FALSE);
}

/* SAV.54 */
MUSTER_TEST (Keep, one_after_a_gap_between_two_lives_by_the_savers_rule)
{
  expect_one_after_a_weekend (TRUE);
}

/* The clock is set two weeks ahead, and back. */
static void
expect_one_after_jumps (MusterKeepRule rule)
{
  g_auto (Fixture) f =
      set_up ((MusterSaverOptions){.max_to_keep = 3, .keep_every_n_hours = 2, .keep_rule = rule});
  save_hourly (&f, 1, 1);
  muster_fake_clock_set_wall (f.clock, 14 * 24 * HOUR);
  for (gint64 step = 2; step <= 9; step++)
    save (&f, step);
  expect_there (&f, "7 8 9", "2 7 8 9");
  muster_fake_clock_set_wall (f.clock, 0);
  for (gint64 step = 10; step <= 19; step++)
    save (&f, step);
  expect_there (&f, "17 18 19", "2 17 18 19");

  save_hourly (&f, 20, 26);
}

/* SAV.54 */
MUSTER_TEST (Keep, one_after_a_jump_of_the_clock_by_the_savers_rule)
{
  expect_one_after_jumps (MUSTER_KEEP_SAVER);
  g_autofree char *files = steps_there ();
  MUSTER_EXPECT_STREQ (files, "2 22 24 25 26");
}

/* SAV.85 */
MUSTER_TEST (Keep, one_after_a_jump_of_the_clock_by_the_managers_rule)
{
  expect_one_after_jumps (MUSTER_KEEP_MANAGER);
  g_autofree char *files = steps_there ();
  MUSTER_EXPECT_STREQ (files, "2 21 23 24 25 26");
}

/* SAV.83 */
MUSTER_TEST (Keep, by_the_managers_rule_from_the_last_one_kept)
{
  MusterSaverOptions options = {
      .max_to_keep = 1, .keep_every_n_hours = 2, .keep_rule = MUSTER_KEEP_MANAGER};
  g_auto (Fixture) f = set_up (options);
  save_hourly (&f, 1, 5);
  restart (&f, options);
  save_hourly (&f, 6, 9);

  expect_there (&f, "9", "2 4 6 8 9");
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (NULL, muster_test_tmpdir (), NULL);
  MUSTER_EXPECT_GT (state->last_preserved, 0.0);
}

/* SAV.85: with a clock behind the mark nothing of unsure age is deleted */
MUSTER_TEST (Keep, leaves_all_alone_when_the_clock_is_behind_the_mark)
{
  MusterSaverOptions options = {
      .max_to_keep = 1, .keep_every_n_hours = 2, .keep_rule = MUSTER_KEEP_MANAGER};
  g_auto (Fixture) f = set_up (options);
  save_hourly (&f, 1, 5);
  g_auto (Fixture) behind = set_up (options);

  heard_begin (G_LOG_LEVEL_WARNING);
  restart (&behind, options);
  MUSTER_EXPECT_EQ (heard_count ("clock", "*behind the last preserved checkpoint timestamp*"), 1U);
  heard_end ();
  save (&behind, 6);

  expect_there (&behind, "6", "2 4 5 6");
}

/* SAV.85: what isn't newer than the mark is not managed */
MUSTER_TEST (Keep, does_not_manage_what_is_not_newer_than_the_mark)
{
  MusterSaverOptions options = {
      .max_to_keep = 9, .keep_every_n_hours = 2, .keep_rule = MUSTER_KEEP_MANAGER};
  g_auto (Fixture) f = set_up (options);
  g_autoptr (GError) error = NULL;
  save_hourly (&f, 1, 3);
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (NULL, muster_test_tmpdir (), NULL);
  state->last_preserved = g_array_index (state->timestamps, double, 1);
  muster_checkpoint_state_write (NULL, muster_test_tmpdir (), state, &error);

  restart (&f, options);

  expect_there (&f, "3", "1 2 3");
}

/* SAV.51 */
MUSTER_TEST (Keep, what_was_set_without_times_is_never_deleted)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 2});
  save (&f, 1);
  save (&f, 2);
  g_auto (GStrv) list = muster_saver_last_checkpoints (f.saver);

  muster_saver_set_last_checkpoints (f.saver, (const char *const *)list, NULL);
  save (&f, 3);
  save (&f, 4);
  save (&f, 5);

  expect_there (&f, "4 5", "1 2 4 5");
}

/* SAV.51, with times */
MUSTER_TEST (Keep, what_was_set_with_times_is_deleted_in_order)
{
  static const double times[] = {1, 2};
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 2});
  save (&f, 1);
  save (&f, 2);
  g_auto (GStrv) list = muster_saver_last_checkpoints (f.saver);

  muster_saver_set_last_checkpoints (f.saver, (const char *const *)list, times);
  save (&f, 3);

  expect_there (&f, "2 3", "2 3");
}

/* DIFF.19: what the state forgot is still known to the side file */
MUSTER_TEST (Adopt, finds_in_the_directory_what_the_state_does_not_name)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 9});
  g_autofree char *state = below_tmpdir ("checkpoint");
  for (gint64 step = 1; step <= 4; step++)
    save (&f, step);
  g_file_set_contents (state, "model_checkpoint_path: \"model.ckpt-3\"\n", -1, NULL);

  restart (&f, (MusterSaverOptions){.max_to_keep = 3});
  expect_there (&f, "1 2 3 4", "1 2 3 4");
  save (&f, 5);

  expect_there (&f, "3 4 5", "3 4 5");
}

/* What no muster wrote is nobody's to delete, unless somebody says so. */
MUSTER_TEST (Adopt, leaves_strangers_alone_unless_asked)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1});
  g_autofree char *stranger = below_tmpdir ("model.ckpt-1"), *other = below_tmpdir ("best-1");
  save (&f, 2);
  muster_small_model_write (stranger, muster_small_variables, 2, 1, NULL);
  muster_small_model_write (other, muster_small_variables, 2, 1, NULL);

  restart (&f, (MusterSaverOptions){.max_to_keep = 1});
  save (&f, 3);
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (NULL, stranger));
  restart (&f, (MusterSaverOptions){.max_to_keep = 1, .adopt_unknown = TRUE});
  save (&f, 4);

  MUSTER_EXPECT_FALSE (muster_checkpoint_exists (NULL, stranger));
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (NULL, other));
}

MUSTER_TEST (Adopt, never_takes_what_was_quarantined)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 5});
  g_autofree char *one = below_tmpdir ("model.ckpt-1"), *aside = NULL;
  g_autoptr (GError) error = NULL;
  save (&f, 1);
  save (&f, 2);
  muster_checkpoint_quarantine (NULL, one, "bad", &aside, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  restart (&f, (MusterSaverOptions){.max_to_keep = 1, .adopt_unknown = TRUE});
  save (&f, 3);
  save (&f, 4);

  expect_there (&f, "4", "4");
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (NULL, aside));
}

/* DIFF.19, over a restart */
MUSTER_TEST (Adopt, goes_on_removing_what_another_run_could_not)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1});
  g_autofree char *index = below_tmpdir ("model.ckpt-1.index");
  g_autoptr (GError) error = NULL;
  save (&f, 1);
  MusterStorage *storage = muster_local_storage ();
  MusterStorageLock *reads = muster_storage_lock (storage, index, MUSTER_LOCK_SHARED, &error);
  save (&f, 2);
  expect_there (&f, "2", "1 2"); /* DIFF.22: somebody reads it */

  muster_storage_unlock (storage, reads);
  restart (&f, (MusterSaverOptions){.max_to_keep = 1});
  expect_there (&f, "2", "1 2");
  save (&f, 3);

  expect_there (&f, "3", "3");
  save (&f, 4);
  g_autoptr (MusterCheckpointRecord) left = record ();
  MUSTER_EXPECT_NULL (muster_checkpoint_record_find (left, "model.ckpt-1"));
}

/* SAV.2, SAV.10: as absolute as they were asked for */
MUSTER_TEST (Options, absolute_paths_stay_in_the_state_file)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.absolute_paths = TRUE});
  g_autofree char *path = below_tmpdir ("checkpoint"), *text = NULL;
  save (&f, 1);
  g_file_get_contents (path, &text, NULL, NULL);
  g_autofree char *line =
      g_strdup_printf ("model_checkpoint_path: \"%s/model.ckpt-1\"\n", muster_test_tmpdir ());
  MUSTER_EXPECT_TRUE (g_str_has_prefix (text, line));
}

/* SAV.1, SAV.56: two savers, one directory: neither takes the other's */
MUSTER_TEST (Options, two_savers_share_a_directory_by_two_state_files)
{
  MusterSaverOptions best = {.max_to_keep = 1, .latest_filename = "best"};
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1});
  g_autoptr (MusterSaver) other = saver_with (&f, best);
  g_autoptr (GError) error = NULL;
  save (&f, 1);
  g_autofree char *two = save_by (&f, other, 2, &error);
  restart (&f, (MusterSaverOptions){.max_to_keep = 1});
  save (&f, 3);

  MUSTER_EXPECT_NO_ERROR (error);
  expect_there (&f, "3", "2 3");
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read_named (NULL, muster_test_tmpdir (), "best", &error);
  MUSTER_EXPECT_STREQ (state->latest, two);
}

/* SAV.42 */
MUSTER_TEST (Options, the_number_is_padded_when_asked)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.pad_step_number = TRUE});
  g_autoptr (GError) error = NULL;
  g_autofree char *prefix = save_by (&f, f.saver, 1200, &error);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (prefix, "/model.ckpt-00001200"));
}

/* SAV.48 */
MUSTER_TEST (Options, unlisted_saves_write_no_state_and_delete_nothing)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.unlisted = TRUE, .max_to_keep = 1});
  g_autofree char *state = below_tmpdir ("checkpoint");
  save (&f, 1);
  save (&f, 2);
  expect_there (&f, "", "1 2");
  MUSTER_EXPECT_FALSE (g_file_test (state, G_FILE_TEST_EXISTS));
}

/* SAV.41 */
MUSTER_TEST (Options, names_that_cannot_be_are_refused)
{
  static const MusterSaverOptions refused[] = {{.latest_filename = "a/b"},
                                               {.latest_filename = ""},
                                               {.latest_filename = MUSTER_RECORD_FILE},
                                               {.base_name = "m.bad"},
                                               {.base_name = "m.bad-2"}};
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  for (gsize i = 0; i < G_N_ELEMENTS (refused); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterSaver) saver = muster_saver_new (f.meta_graph, &refused[i], &error);
    MUSTER_EXPECT_NULL (saver);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

MUSTER_TEST (Record, reports_what_was_saved)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 5});
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (muster_saver_save_with (f.saver, f.session, muster_test_tmpdir (), 7, 0,
                                              &saved, MUSTER_WAIT_FOREVER, NULL, &error));
  g_autoptr (MusterCheckpointRecord) told = record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (told, "model.ckpt-7");
  MUSTER_ASSERT_TRUE (one != NULL);
  MUSTER_EXPECT_EQ (one->step, 7);
  MUSTER_EXPECT_EQ (one->files->len, 3u);
  guint64 bytes = 0;
  for (guint i = 0; i < one->files->len; i++)
    bytes += g_array_index (one->files, MusterSideFile, i).size;
  MUSTER_EXPECT_EQ (one->bytes, bytes);
  MUSTER_EXPECT_EQ (saved.bytes, bytes);
  MUSTER_EXPECT_EQ (saved.step, 7);
  MUSTER_EXPECT_FALSE (saved.skipped);
  MUSTER_EXPECT_NULL (saved.why);
}

static void
put_old_text (const char *name, const char *text, guint hours)
{
  g_autofree char *path = below_tmpdir (name);
  const gint64 then = g_get_real_time () / G_USEC_PER_SEC - (gint64)hours * 3600;
  const struct timespec times[2] = {{.tv_sec = then}, {.tv_sec = then}};
  g_file_set_contents (path, text, -1, NULL);
  MUSTER_EXPECT_EQ (utimensat (AT_FDCWD, path, times, 0), 0);
}

static void
put_old (const char *name, guint hours)
{
  put_old_text (name, "", hours);
}

/* What a save of this host holds. */
static void
put_lock (const char *name, guint hours)
{
  put_old_text (name, g_get_host_name (), hours);
}

/* What killed savers left goes when it is a day old; nothing that could be anybody's. */
MUSTER_TEST (Sweep, takes_old_temporary_files_only)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  put_old (".saving-0123abcd-model.ckpt-1.index", 30);
  put_old ("x.index.tempstate01234567-89ab-4def-8123-456789abcdef", 30);
  put_old (".saving-11111111-model.ckpt-1.index", 30);
  put_old (".saving-11111111-model.ckpt-1.data-00000-of-00001", 20); /* that save may live */
  put_old (".saving-x-model.ckpt-1.index", 30);
  put_old (".probe-0123456789abcdef0123456789abcdef.index", 30);
  put_old (".probe-0123456789abcdef0123456789abcdef.data-00000-of-00001", 30);
  put_old (".probe-11111111111111111111111111111111.index", 20);
  put_old (".probe-mine.index", 30);
  put_old ("x.index.tempstate1234567", 30); /* TensorFlow's */
  put_old ("model.ckpt-1.index", 30);

  restart (&f, (MusterSaverOptions){0});

  g_auto (GStrv) left = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  g_autofree char *names = g_strjoinv (" ", left);
  MUSTER_EXPECT_STREQ (
      names, ".muster.lock .probe-11111111111111111111111111111111.index .probe-mine.index "
             ".saving-11111111-model.ckpt-1.data-00000-of-00001 "
             ".saving-11111111-model.ckpt-1.index .saving-x-model.ckpt-1.index "
             "model.ckpt-1.index x.index.tempstate1234567");
}

static char *
names_there (void)
{
  g_auto (GStrv) left = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  return g_strjoinv (" ", left);
}

/* The lock of a save that is dead is free, and its files go at once; those of one at work stay. */
MUSTER_TEST (Sweep, distinguishes_the_files_of_the_dead_from_those_of_the_living)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  put_old (".saving-0123abcd-model.ckpt-1.index", 0);
  put_old (".saving-0123abcd-model.ckpt-1.data-00000-of-00001", 0);
  put_lock (".saving-0123abcd-model.ckpt-1-alive", 0);
  put_old (".saving-11111111-model.ckpt-2.index", 30); /* slowly, but it lives */
  put_lock (".saving-11111111-model.ckpt-2-alive", 30);
  g_autofree char *living = below_tmpdir (".saving-11111111-model.ckpt-2-alive");
  MusterStorageLock *lock =
      muster_storage_lock (muster_local_storage (), living, MUSTER_LOCK_EXCLUSIVE, NULL);

  restart (&f, (MusterSaverOptions){0});

  g_autofree char *names = names_there ();
  MUSTER_EXPECT_STREQ (names, ".muster.lock .saving-11111111-model.ckpt-2-alive "
                              ".saving-11111111-model.ckpt-2.index");
  muster_storage_unlock (muster_local_storage (), lock);
}

/* A lock may be one host's alone: another's save isn't dead because its lock can be had here. */
MUSTER_TEST (Sweep, calls_no_save_of_another_host_dead)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  put_old (".saving-0123abcd-model.ckpt-1.index", 0);
  put_old_text (".saving-0123abcd-model.ckpt-1-alive", "another host", 20);
  put_old (".saving-11111111-model.ckpt-2.index", 0);
  put_old (".saving-11111111-model.ckpt-2-alive", 0); /* it hasn't said whose it is */
  put_old (".saving-22222222-model.ckpt-3.index", 30);
  put_old_text (".saving-22222222-model.ckpt-3-alive", "another host", 30);

  restart (&f, (MusterSaverOptions){0});

  g_autofree char *names = names_there ();
  MUSTER_EXPECT_STREQ (names, ".muster.lock .saving-0123abcd-model.ckpt-1-alive "
                              ".saving-0123abcd-model.ckpt-1.index "
                              ".saving-11111111-model.ckpt-2-alive "
                              ".saving-11111111-model.ckpt-2.index");
}

/* A master that fails, but looks around before. */
static gboolean
read_lock (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
           MusterTensor **value G_GNUC_UNUSED, gpointer user_data, GError **error)
{
  g_autofree char *names = names_there ();
  g_auto (GStrv) each = g_strsplit (names, " ", -1);

  for (char **name = each; *name; name++) {
    g_autofree char *path = below_tmpdir (*name);
    if (g_str_has_suffix (*name, "-alive"))
      g_file_get_contents (path, user_data, NULL, NULL);
  }
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL, "it has looked");
  return FALSE;
}

MUSTER_TEST (Sweep, finds_the_host_in_the_lock_of_a_save_at_work)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL;
  muster_fake_master_op_calls (f.master, "save/control_dependency", read_lock, &text);

  g_autofree char *none = save_by (&f, f.saver, 7, &error);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_STREQ (text, g_get_host_name ());
}

/* Another saver may hold the directory's lock just then. */
MUSTER_TEST (Sweep, is_made_up_for_by_the_next_save)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.unlisted = TRUE});
  g_autoptr (GError) error = NULL;
  put_old (".saving-0123abcd-model.ckpt-1.index", 30);
  MusterDirectoryLock *lock =
      muster_directory_lock (muster_local_storage (), muster_test_tmpdir (), MUSTER_WAIT_FOREVER,
                             MUSTER_CLOCK (f.clock), NULL, NULL);
  const gint64 soon_us = muster_clock_now_us (MUSTER_CLOCK (f.clock)) + MUSTER_SECOND;
  g_autofree char *none =
      muster_saver_save (f.saver, f.session, muster_test_tmpdir (), 6, soon_us, NULL, &error);
  MUSTER_EXPECT_NULL (none);
  muster_directory_unlock (lock);

  save (&f, 7);

  g_autofree char *names = names_there ();
  MUSTER_EXPECT_TRUE (strstr (names, ".saving-") == NULL);
}

/* Of a job, of a training state, of a backup: whoever keeps the list himself. */
MUSTER_TEST (Sweep, is_done_by_whoever_saves)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.unlisted = TRUE});
  put_old (".saving-0123abcd-model.ckpt-1.index", 0);
  put_lock (".saving-0123abcd-model.ckpt-1-alive", 0);
  put_old (".saving-22222222-model.ckpt-1.index", 30);

  save (&f, 7);

  g_autofree char *names = names_there ();
  MUSTER_EXPECT_TRUE (strstr (names, ".saving-") == NULL);
}

#define MUSTER_TYPE_LOCKLESS_STORAGE (muster_lockless_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterLocklessStorage, muster_lockless_storage, MUSTER, LOCKLESS_STORAGE,
                      MusterForwardingStorage)

struct _MusterLocklessStorage {
  MusterForwardingStorage parent;
};

static void
lockless_iface_init (MusterStorageInterface *iface)
{
  iface->lock = NULL;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterLocklessStorage, muster_lockless_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE, lockless_iface_init))

static void
muster_lockless_storage_class_init (MusterLocklessStorageClass *klass G_GNUC_UNUSED)
{
}

static void
muster_lockless_storage_init (MusterLocklessStorage *self G_GNUC_UNUSED)
{
}

/* A store without locks grants each: there the day counts alone. */
MUSTER_TEST (Sweep, trusts_no_lock_of_a_store_without_locks)
{
  g_autoptr (MusterLocklessStorage) storage = g_object_new (MUSTER_TYPE_LOCKLESS_STORAGE, NULL);
  g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
  put_old (".muster.lock", 0);
  put_old (".saving-0123abcd-model.ckpt-1.index", 0);
  put_lock (".saving-0123abcd-model.ckpt-1-alive", 0);
  put_old (".saving-22222222-model.ckpt-1.index", 30);

  restart (&f, (MusterSaverOptions){.storage = MUSTER_STORAGE (storage)});

  g_autofree char *names = names_there ();
  MUSTER_EXPECT_STREQ (names, ".muster.lock .saving-0123abcd-model.ckpt-1-alive "
                              ".saving-0123abcd-model.ckpt-1.index");
}

MUSTER_TEST (Keep, max_to_keep_means_the_same_in_every_options)
{
  const struct {
    int max_to_keep;
    guint n_left; /* of six, where the SaverDef says 5; 0: refused */
  } cases[] = {{0, 5}, {2, 2}, {MUSTER_KEEP_ALL, 6}, {-2, 0}, {G_MININT, 0}};

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_auto (Fixture) f = set_up ((MusterSaverOptions){0});
    const MusterSaverOptions options = {.max_to_keep = cases[i].max_to_keep};
    const MusterCheckpointManagerOptions managed = {.saver.max_to_keep = cases[i].max_to_keep};
    const MusterSaverBuild built = {.max_to_keep = cases[i].max_to_keep, .scope = "other"};
    g_autofree char *name = g_strdup_printf ("%u", (guint)i);
    g_autofree char *of_saver = below_tmpdir (name);
    g_autofree char *of_manager = g_strconcat (of_saver, "m", NULL);
    g_autoptr (MusterSaver) saver = muster_saver_new (f.meta_graph, &options, NULL);
    g_autoptr (MusterCheckpointManager) manager =
        muster_checkpoint_manager_new (f.meta_graph, of_manager, &managed, NULL);
    g_autoptr (MusterMetaGraph) graph = muster_saver_build (f.meta_graph, &built, NULL);
    MUSTER_EXPECT_EQ (saver != NULL, cases[i].n_left > 0);
    MUSTER_EXPECT_EQ (manager != NULL, cases[i].n_left > 0);
    for (gint64 step = 1; saver != NULL && manager != NULL && step <= 6; step++) {
      g_auto (MusterSaved) saved = {0};
      g_autofree char *prefix =
          muster_saver_save (saver, f.session, of_saver, step, MUSTER_WAIT_FOREVER, NULL, NULL);
      MUSTER_EXPECT_TRUE (muster_checkpoint_manager_save (manager, f.session, step, FALSE, &saved,
                                                          MUSTER_WAIT_FOREVER, NULL, NULL));
    }
    g_auto (GStrv) by_saver = saver != NULL ? muster_saver_last_checkpoints (saver) : NULL;
    g_auto (GStrv) by_manager =
        manager != NULL ? muster_checkpoint_manager_checkpoints (manager) : NULL;
    MUSTER_EXPECT_EQ (by_saver ? g_strv_length (by_saver) : 0, cases[i].n_left);
    MUSTER_EXPECT_EQ (by_manager ? g_strv_length (by_manager) : 0, cases[i].n_left);
    if (cases[i].n_left == 0)
      MUSTER_EXPECT_NULL (graph);
  }
}

/* Of a living saver's list, while it isn't saving. */
static void
prune_away (const char *name)
{
  g_autofree char *prefix = below_tmpdir (name);
  g_autoptr (MusterCheckpointRecord) told = record ();
  g_autoptr (GError) error = NULL;

  muster_remove_checkpoint (muster_local_storage (), prefix, &error);
  muster_checkpoint_record_forget (told, prefix);
  muster_checkpoint_record_write (NULL, muster_test_tmpdir (), told, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (Keep, what_another_prunes_leaves_the_list)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 3});
  for (gint64 step = 1; step <= 3; step++)
    save (&f, step);
  prune_away ("model.ckpt-2");

  save (&f, 4); /* and 1 still has its place */

  g_auto (GStrv) list = muster_saver_last_checkpoints (f.saver);
  g_autofree char *listed = steps_of (list);
  MUSTER_EXPECT_STREQ (listed, "1 3 4");
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (NULL, muster_test_tmpdir (), NULL);
  MUSTER_ASSERT_TRUE (state != NULL);
  MUSTER_EXPECT_EQ (state->all->len, 3u);
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "1 3 4");
}

/* Two may share a directory and its state file: the second, which begins when the first has saved,
 * must not take the first one's for its own and delete them. */
MUSTER_TEST (Keep, leaves_alone_what_another_saver_has_saved)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = -1});
  g_autoptr (MusterSaver) best =
      saver_with (&f, (MusterSaverOptions){.max_to_keep = 1, .base_name = "best"});
  g_autoptr (GError) error = NULL;
  save (&f, 1);
  save (&f, 2);
  muster_saver_adopt_directory (best, muster_test_tmpdir (), &error);

  for (gint64 step = 3; step <= 4; step++) {
    g_autofree char *prefix = save_by (&f, best, step, &error);
    MUSTER_EXPECT_NO_ERROR (error);
  }

  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "1 2 4");
}

/* Nothing removes a directory that has something in it. */
static void
make_stuck (gint64 step)
{
  g_autofree char *base = g_strdup_printf ("model.ckpt-%d.meta", (int)step);
  g_autofree char *meta = below_tmpdir (base), *inside = g_build_filename (meta, "inside", NULL);
  g_unlink (meta);
  MUSTER_EXPECT_EQ (g_mkdir_with_parents (inside, 0700), 0);
}

static void
free_stuck (gint64 step)
{
  g_autofree char *base = g_strdup_printf ("model.ckpt-%d.meta", (int)step);
  g_autofree char *meta = below_tmpdir (base), *inside = g_build_filename (meta, "inside", NULL);
  g_rmdir (inside);
  g_rmdir (meta);
}

/* SAV.55, DIFF.19 */
MUSTER_TEST (Removal, that_fails_is_reported_once_and_tried_again)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1});
  save (&f, 1);
  make_stuck (1);
  heard_begin (G_LOG_LEVEL_WARNING);

  save (&f, 2);
  make_stuck (2);
  save (&f, 3);
  MUSTER_EXPECT_EQ (
      heard_count ("retention", "can't remove an old checkpoint: *model.ckpt-1.meta*"), 1U);
  MUSTER_EXPECT_EQ (heard_count ("retention", "*"), 1U);
  free_stuck (1);
  free_stuck (2);
  save (&f, 4);

  g_autofree char *names = names_there ();
  MUSTER_EXPECT_NULL (strstr (names, "ckpt-1"));
  MUSTER_EXPECT_NULL (strstr (names, "ckpt-2"));
  make_stuck (4);
  save (&f, 5); /* that is another one */
  MUSTER_EXPECT_EQ (heard_count ("retention", "*model.ckpt-4.meta*"), 1U);
  heard_end ();
  free_stuck (4);
}

/* What a reader holds isn't a failure. */
MUSTER_TEST (Removal, of_what_is_read_is_not_reported)
{
  g_auto (Fixture) f = set_up ((MusterSaverOptions){.max_to_keep = 1});
  g_autofree char *index = below_tmpdir ("model.ckpt-1.index");
  MusterStorage *storage = muster_local_storage ();
  save (&f, 1);
  MusterStorageLock *reads = muster_storage_lock (storage, index, MUSTER_LOCK_SHARED, NULL);
  heard_begin (G_LOG_LEVEL_WARNING);

  save (&f, 2);

  MUSTER_EXPECT_EQ (heard_count ("retention", "*"), 0U);
  heard_end ();
  muster_storage_unlock (storage, reads);
}
