// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/crash_storage.h"
#include "tests/gtest_shim.h"

/* The model of a crash is itself right: it loses what may be lost, and only that. */

typedef struct {
  MusterCrashStorage *crash;
  MusterStorage *storage;
} Fixture;

static Fixture
set_up (void)
{
  Fixture f = {.crash = muster_crash_storage_new ()};
  f.storage = MUSTER_STORAGE (f.crash);
  MUSTER_EXPECT_TRUE (muster_storage_make_directory (f.storage, "/run/a", NULL));
  MUSTER_EXPECT_TRUE (muster_storage_make_directory (f.storage, "/run/b", NULL));
  return f;
}

static void
tear_down (Fixture *f)
{
  g_clear_object (&f->crash);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

/* Writes a file of this text, of which the first n bytes are synced. */
static void
write_file (Fixture *f, const char *path, const char *text, gsize n)
{
  MusterStorageFile *file = muster_storage_create (f->storage, path, NULL);
  MUSTER_ASSERT_TRUE (file != NULL);
  if (n > 0) {
    muster_storage_append (f->storage, file, text, n, NULL);
    muster_storage_sync (f->storage, file, NULL);
  }
  muster_storage_append (f->storage, file, text + n, strlen (text) - n, NULL);
  muster_storage_close (f->storage, file, NULL);
}

/* The files with their contents, zeros as '0'. */
static char *
describe (MusterCrashStorage *crash)
{
  g_autoptr (GString) text = g_string_new (NULL);
  static const char *const paths[] = {"/run/a/x", "/run/a/y", "/run/b/x"};
  for (gsize i = 0; i < G_N_ELEMENTS (paths); i++) {
    g_autoptr (GBytes) bytes = muster_storage_read (MUSTER_STORAGE (crash), paths[i], NULL);
    gsize size = 0;
    const char *data = bytes != NULL ? g_bytes_get_data (bytes, &size) : NULL;
    if (bytes != NULL)
      g_string_append_printf (text, "%s%s=", text->len > 0 ? " " : "", paths[i] + strlen ("/run/"));
    for (gsize k = 0; k < size; k++)
      g_string_append_c (text, data[k] ? data[k] : '0');
  }
  return g_string_free (g_steal_pointer (&text), FALSE);
}

static int
compare_texts (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Every different outcome, in order of text, between '|'. */
static char *
outcomes (Fixture *f)
{
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < muster_crash_storage_n_outcomes (f->crash); i++) {
    g_autoptr (MusterCrashStorage) after = muster_crash_storage_outcome (f->crash, i, NULL);
    g_autofree char *text = describe (after);
    if (!g_ptr_array_find_with_equal_func (found, text, g_str_equal, NULL))
      g_ptr_array_add (found, g_steal_pointer (&text));
  }
  g_ptr_array_sort (found, compare_texts);
  g_ptr_array_add (found, NULL);
  return g_strjoinv ("|", (char **)found->pdata);
}

MUSTER_TEST (CrashStorage, loses_a_name_until_its_directory_is_synced)
{
  g_auto (Fixture) f = set_up ();
  write_file (&f, "/run/a/x", "text", 4);

  g_autofree char *before = outcomes (&f);
  muster_storage_sync_directory (f.storage, "/run/b", NULL);
  g_autofree char *other = outcomes (&f);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);
  g_autofree char *after = outcomes (&f);

  MUSTER_EXPECT_STREQ (before, "|a/x=text");
  MUSTER_EXPECT_STREQ (other, "|a/x=text");
  MUSTER_EXPECT_STREQ (after, "a/x=text");
}

MUSTER_TEST (CrashStorage, tears_what_was_not_synced)
{
  g_auto (Fixture) f = set_up ();
  write_file (&f, "/run/a/x", "textmore", 4);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);

  g_autofree char *torn = outcomes (&f);
  muster_storage_sync_directory (f.storage, "/run/a/x", NULL); /* as of another program's file */
  g_autofree char *whole = outcomes (&f);

  MUSTER_EXPECT_STREQ (torn, "a/x=text|a/x=text0000|a/x=textmo|a/x=textmore");
  MUSTER_EXPECT_STREQ (whole, "a/x=textmore");
}

MUSTER_TEST (CrashStorage, may_keep_the_old_bytes_of_a_file_that_is_begun_again)
{
  g_auto (Fixture) f = set_up ();
  write_file (&f, "/run/a/x", "old", 3);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);
  write_file (&f, "/run/a/x", "anew", 0);

  g_autofree char *text = outcomes (&f);

  MUSTER_EXPECT_STREQ (text, "a/x=0000|a/x=an|a/x=anew|a/x=old");
}

MUSTER_TEST (CrashStorage, tears_one_file_and_keeps_another)
{
  g_auto (Fixture) f = set_up ();
  write_file (&f, "/run/a/x", "11", 0);
  write_file (&f, "/run/a/y", "22", 0);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);

  g_autofree char *text = outcomes (&f);

  MUSTER_EXPECT_STREQ (text, "a/x= a/y=|a/x=00 a/y=00|a/x=1 a/y=2|a/x=1 a/y=22|a/x=11 a/y=2|"
                             "a/x=11 a/y=22");
}

MUSTER_TEST (CrashStorage, keeps_the_order_of_changes_of_one_name)
{
  g_auto (Fixture) f = set_up ();
  write_file (&f, "/run/a/x", "1", 1);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);
  muster_storage_rename (f.storage, "/run/a/x", "/run/a/y", NULL);
  write_file (&f, "/run/a/x", "2", 1);

  g_autofree char *text = outcomes (&f);

  MUSTER_EXPECT_STREQ (text, "a/x=1|a/x=2 a/y=1|a/y=1");
}

MUSTER_TEST (CrashStorage, may_lose_an_early_change_and_keep_a_late_one)
{
  g_auto (Fixture) f = set_up ();
  write_file (&f, "/run/a/x", "1", 1);
  write_file (&f, "/run/a/y", "2", 1);

  g_autofree char *text = outcomes (&f);

  MUSTER_EXPECT_STREQ (text, "|a/x=1|a/x=1 a/y=2|a/y=2");
}

MUSTER_TEST (CrashStorage, may_do_one_directory_without_the_other)
{
  g_auto (Fixture) f = set_up ();
  write_file (&f, "/run/a/x", "1", 1);
  write_file (&f, "/run/b/x", "2", 1);

  g_autofree char *text = outcomes (&f);

  MUSTER_EXPECT_STREQ (text, "|a/x=1|a/x=1 b/x=2|b/x=2");
}

MUSTER_TEST (CrashStorage, never_loses_both_names_of_a_renamed_file)
{
  g_auto (Fixture) f = set_up ();
  write_file (&f, "/run/a/x", "1", 1);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);
  muster_storage_rename (f.storage, "/run/a/x", "/run/b/x", NULL);

  g_autofree char *neither = outcomes (&f);
  muster_storage_sync_directory (f.storage, "/run/b", NULL);
  g_autofree char *there = outcomes (&f);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);
  g_autofree char *both = outcomes (&f);

  MUSTER_EXPECT_STREQ (neither, "a/x=1|b/x=1");
  MUSTER_EXPECT_STREQ (there, "a/x=1 b/x=1|b/x=1");
  MUSTER_EXPECT_STREQ (both, "b/x=1");
}

MUSTER_TEST (CrashStorage, brings_back_what_was_removed)
{
  g_auto (Fixture) f = set_up ();
  write_file (&f, "/run/a/x", "1", 1);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);
  muster_storage_remove (f.storage, "/run/a/x", NULL);

  g_autofree char *text = outcomes (&f);

  MUSTER_EXPECT_STREQ (text, "|a/x=1");
}

MUSTER_TEST (CrashStorage, is_off_from_the_call_on_that_it_stops_at)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_crash_storage_stop_at (f.crash, 2);
  MusterStorageFile *file = muster_storage_create (f.storage, "/run/a/x", NULL);
  MUSTER_ASSERT_TRUE (file != NULL);
  MUSTER_EXPECT_FALSE (muster_crash_storage_has_stopped (f.crash));
  MUSTER_EXPECT_FALSE (muster_storage_append (f.storage, file, "1", 1, &error));

  MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_IO);
  MUSTER_EXPECT_TRUE (muster_crash_storage_has_stopped (f.crash));
  MUSTER_EXPECT_FALSE (muster_storage_close (f.storage, file, NULL));
  MUSTER_EXPECT_FALSE (muster_storage_remove (f.storage, "/run/a/x", NULL));
  MUSTER_EXPECT_NULL (muster_storage_list (f.storage, "/run/a", NULL));
}

MUSTER_TEST (CrashStorage, fails_once_for_want_of_free_space)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  muster_crash_storage_fail_at (f.crash, 1);
  MUSTER_EXPECT_NULL (muster_storage_create (f.storage, "/run/a/x", &error));

  MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
  MUSTER_EXPECT_TRUE (muster_crash_storage_has_failed (f.crash));
  write_file (&f, "/run/a/x", "1", 1);
}

MUSTER_TEST (CrashStorage, forgets_syncs_when_it_is_asked_to)
{
  g_auto (Fixture) f = set_up ();
  muster_crash_storage_ignore_syncs (f.crash, TRUE, FALSE);
  write_file (&f, "/run/a/x", "11", 2);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);

  g_autofree char *text = outcomes (&f);
  MUSTER_EXPECT_STREQ (text, "a/x=|a/x=00|a/x=1|a/x=11");
}

MUSTER_TEST (CrashStorage, leaves_it_to_others_to_sync_what_a_lazy_writer_wrote)
{
  g_auto (Fixture) f = set_up ();
  muster_crash_storage_set_lazy (f.crash, "/x");
  write_file (&f, "/run/a/x", "1", 1);
  write_file (&f, "/run/a/y", "2", 1);
  muster_storage_sync_directory (f.storage, "/run/a", NULL);
  g_autofree char *lazy = outcomes (&f);
  muster_storage_sync_directory (f.storage, "/run/a/x", NULL);
  g_autofree char *synced = outcomes (&f);

  MUSTER_EXPECT_STREQ (lazy, "a/x= a/y=2|a/x=0 a/y=2|a/x=1 a/y=2");
  MUSTER_EXPECT_STREQ (synced, "a/x=1 a/y=2");
}

MUSTER_TEST (CrashStorage, shares_a_lock_or_keeps_it)
{
  g_auto (Fixture) f = set_up ();
  g_autoptr (GError) error = NULL;
  write_file (&f, "/run/a/x", "1", 1);

  MusterStorageLock *one = muster_storage_lock (f.storage, "/run/a/x", MUSTER_LOCK_SHARED, NULL);
  MusterStorageLock *two = muster_storage_lock (f.storage, "/run/a/x", MUSTER_LOCK_SHARED, NULL);
  MUSTER_EXPECT_NULL (muster_storage_lock (f.storage, "/run/a/x", MUSTER_LOCK_UNUSED, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_BUSY);
  muster_storage_unlock (f.storage, one);
  muster_storage_unlock (f.storage, two);

  one = muster_storage_lock (f.storage, "/run/a/x", MUSTER_LOCK_UNUSED, NULL);
  MUSTER_EXPECT_NULL (muster_storage_lock (f.storage, "/run/a/x", MUSTER_LOCK_SHARED, NULL));
  muster_storage_unlock (f.storage, one);
}
