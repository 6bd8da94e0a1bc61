// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/quarantine.h"

#include "base/error.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/doubles/object_storage.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

static MusterCheckpointState *
state_of (const char *const *names, gsize n)
{
  MusterCheckpointState *state = muster_checkpoint_state_new ();
  for (gsize i = 0; i < n; i++) {
    const double time = 100.0 + (double)i;
    g_ptr_array_add (state->all, in_tmpdir (names[i]));
    g_array_append_val (state->timestamps, time);
  }
  state->latest = in_tmpdir (names[n - 1]);
  return state;
}

static void
put_state (const char *const *names, gsize n)
{
  g_autoptr (MusterCheckpointState) state = state_of (names, n);
  g_autoptr (GError) error = NULL;
  muster_checkpoint_state_write (NULL, muster_test_tmpdir (), state, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static void
put_checkpoint (const char *name)
{
  static const char *const parts[] = {".index", ".meta", ".data-00000-of-00002",
                                      ".data-00001-of-00002"};
  for (gsize i = 0; i < G_N_ELEMENTS (parts); i++) {
    g_autofree char *file = g_strconcat (name, parts[i], NULL);
    put_file (file, file, strlen (file));
  }
}

static char *
names_of (char **prefixes)
{
  GString *names = g_string_new (NULL);
  for (gsize i = 0; prefixes != NULL && prefixes[i] != NULL; i++) {
    g_autofree char *name = g_path_get_basename (prefixes[i]);
    g_string_append_printf (names, "%s%s", i > 0 ? " " : "", name);
  }
  return g_string_free (names, FALSE);
}

MUSTER_TEST (Quarantine, deletes_nothing_and_is_a_prefix_itself)
{
  static const char *const listed[] = {"m-1", "model-42"};
  g_autofree char *prefix = in_tmpdir ("model-42"), *aside = NULL;
  g_autofree char *expected = in_tmpdir ("model-42.bad");
  g_autoptr (GError) error = NULL;
  copy_golden ("model-42");
  put_checkpoint ("m-1");
  put_state (listed, 2);

  MUSTER_ASSERT_TRUE (muster_checkpoint_quarantine (NULL, prefix, "a flipped bit", &aside, &error));

  MUSTER_EXPECT_STREQ (aside, expected);
  MUSTER_EXPECT_FALSE (muster_checkpoint_exists (NULL, prefix));
  g_autoptr (MusterBundleReader) reader = muster_bundle_reader_open (NULL, aside, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *data = muster_bundle_data_path (aside, 0, 1);
  MUSTER_EXPECT_TRUE (g_file_test (data, G_FILE_TEST_EXISTS));
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (NULL, muster_test_tmpdir (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (record, "model-42.bad");
  MUSTER_ASSERT_TRUE (one != NULL);
  MUSTER_EXPECT_STREQ (one->bad, "a flipped bit");
  MUSTER_EXPECT_EQ (one->step, 42);
  g_autofree char *latest = muster_latest_checkpoint (NULL, muster_test_tmpdir (), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (latest, "/m-1"));
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (NULL, muster_test_tmpdir (), &error);
  MUSTER_EXPECT_EQ (state->all->len, 1u);
  MUSTER_EXPECT_EQ (g_array_index (state->timestamps, double, 0), 100.0);
}

MUSTER_TEST (Quarantine, a_second_one_of_the_name_gets_a_number)
{
  g_autofree char *prefix = in_tmpdir ("m-7");
  static const char *const expected[] = {"m-7.bad", "m-7.bad-2", "m-7.bad-3"};
  for (gsize i = 0; i < G_N_ELEMENTS (expected); i++) {
    g_autofree char *quarantined = NULL, *there = in_tmpdir (expected[i]);
    g_autoptr (GError) error = NULL;
    put_checkpoint ("m-7");
    muster_checkpoint_quarantine (NULL, prefix, "bad", &quarantined, &error);
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_STREQ (quarantined, there);
    MUSTER_EXPECT_EQ (muster_checkpoint_step (quarantined), 7);
    MUSTER_EXPECT_TRUE (muster_checkpoint_is_quarantined (quarantined));
  }
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  guint n = 0;
  for (gsize i = 0; files[i] != NULL; i++)
    n += g_str_has_prefix (files[i], "m-7");
  MUSTER_EXPECT_EQ (n, 3u * 4);
}

/* A job must not begin anew because its only checkpoint was bad. */
MUSTER_TEST (Quarantine, the_last_one_is_still_named_by_the_state)
{
  static const char *const listed[] = {"m-7"};
  g_autofree char *prefix = in_tmpdir ("m-7");
  g_autoptr (GError) error = NULL, gone = NULL;
  put_checkpoint ("m-7");
  put_state (listed, 1);
  muster_checkpoint_quarantine (NULL, prefix, "bad", NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *latest = muster_latest_checkpoint (NULL, muster_test_tmpdir (), &gone);
  MUSTER_EXPECT_NULL (latest);
  MUSTER_EXPECT_ERROR (gone, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
}

MUSTER_TEST (Quarantine, one_that_is_not_there_is_not_found)
{
  g_autofree char *prefix = in_tmpdir ("m-7");
  g_autoptr (GError) error = NULL;
  put_file ("m-7.data-00000-of-00001", "x", 1);
  MUSTER_EXPECT_FALSE (muster_checkpoint_quarantine (NULL, prefix, "bad", NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND);
}

/* Stopped anywhere, its files are all there, and never under two names. */
MUSTER_TEST (Quarantine, a_crash_at_any_call_loses_nothing)
{
  static const char *const listed[] = {"m-1", "m-7"};
  g_autofree char *prefix = in_tmpdir ("m-7");
  for (int at = 1;; at++) {
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (at);
    g_autoptr (GError) error = NULL;
    put_checkpoint ("m-1");
    put_checkpoint ("m-7");
    put_state (listed, 2);
    const gboolean is_done =
        muster_checkpoint_quarantine (MUSTER_STORAGE (storage), prefix, "bad", NULL, &error);
    g_auto (GStrv) files =
        muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
    guint n = 0;
    for (gsize i = 0; files[i] != NULL; i++)
      if (g_str_has_prefix (files[i], "m-7")) {
        g_autofree char *path = in_tmpdir (files[i]);
        n++;
        g_remove (path);
      }
    MUSTER_EXPECT_EQ (n, 4u);
    g_autofree char *latest = muster_latest_checkpoint (NULL, muster_test_tmpdir (), NULL);
    g_autofree char *record = in_tmpdir (MUSTER_RECORD_FILE);
    g_remove (record);
    if (storage->n_calls < at) {
      MUSTER_EXPECT_TRUE (is_done);
      MUSTER_EXPECT_TRUE (latest != NULL && g_str_has_suffix (latest, "m-1"));
      break;
    }
    MUSTER_ASSERT_TRUE (at < 100);
  }
}

MUSTER_TEST (CheckpointList, is_by_steps_and_without_what_is_no_checkpoint)
{
  static const char *const names[] = {"b-10",          "b-9",   "b-100",   "a",
                                      ".saving-1-b-3", "b-008", "b-7.bad", "b-7.bad-2",
                                      "c.bad-x-002",   ".index"};
  g_autoptr (GError) error = NULL, absent = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *file = g_strconcat (names[i], ".index", NULL);
    g_autofree char *path = in_tmpdir (file);
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000 - (time_t)i}};
    put_file (file, "", 0);
    MUSTER_ASSERT_EQ (utimensat (AT_FDCWD, path, times, 0), 0);
  }
  put_file ("d-1.data-00000-of-00001", "", 0);
  g_auto (GStrv) list = muster_checkpoint_list (NULL, muster_test_tmpdir (), &error);
  g_auto (GStrv) bad = muster_checkpoint_list_quarantined (NULL, muster_test_tmpdir (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *listed = names_of (list), *set_aside = names_of (bad);
  MUSTER_EXPECT_STREQ (listed, "c.bad-x-002 a b-008 b-9 b-10 b-100");
  MUSTER_EXPECT_STREQ (set_aside, "b-7.bad b-7.bad-2");
  g_autofree char *nowhere = in_tmpdir ("nowhere");
  MUSTER_EXPECT_NULL (muster_checkpoint_list (NULL, nowhere, &absent));
  MUSTER_EXPECT_ERROR (absent, G_FILE_ERROR, G_FILE_ERROR_NOENT);
}

MUSTER_TEST (CheckpointStep, is_the_number_at_the_end)
{
  static const struct {
    const char *prefix;
    gint64 step;
  } cases[] = {{"a/model.ckpt-1200", 1200},
               {"model-0", 0},
               {"model.ckpt-00000007", 7},
               {"model", -1},
               {"a-7/model", -1},
               {"model-", -1},
               {"model--1", 1},
               {"model-9223372036854775807", G_MAXINT64},
               {"model-9223372036854775808", -1},
               {"model-12.bad", 12},
               {"model-12.bad-3", 12},
               {"model.bad-3", -1},
               {".bad", -1},
               {"", -1}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++)
    MUSTER_EXPECT_EQ (muster_checkpoint_step (cases[i].prefix), cases[i].step);
}

/* --- in an object store --- */

#define RUN "s3://bucket/run"

static void
save_in (gpointer storage)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  muster_checkpoint_state_add (state, RUN "/m-1", 100);
  muster_checkpoint_state_add (state, RUN "/m-2", 200);
  MUSTER_EXPECT_TRUE (muster_storage_publish (storage, RUN "/m-1.index", "", 0, NULL));
  MUSTER_EXPECT_TRUE (muster_storage_publish (storage, RUN "/m-2.index", "", 0, NULL));
  MUSTER_EXPECT_TRUE (muster_checkpoint_state_write (storage, RUN, state, NULL));
}

/* Another writer saves the name anew before the state is written. */
MUSTER_TEST (Quarantine, leaves_a_new_one_of_the_name_in_the_list)
{
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  g_autoptr (MusterObjectStorage) other = object_storage_process (store);
  MusterStorage *storage = MUSTER_STORAGE (store);
  g_autoptr (GError) error = NULL;
  save_in (storage);
  object_storage_before_replace (store, "checkpoint", save_in, other);

  MUSTER_EXPECT_TRUE (muster_checkpoint_quarantine (storage, RUN "/m-1", "bad", NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_checkpoint_exists (storage, RUN "/m-1"));
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_read (storage, RUN, NULL);
  MUSTER_EXPECT_EQ (state->all->len, 2u);
}
