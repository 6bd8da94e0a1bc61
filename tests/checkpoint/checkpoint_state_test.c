// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_state.h"

#include "base/error.h"
#include "checkpoint/state/checkpoint_look_private.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/state/state_text_private.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/doubles/object_storage.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

static MusterCheckpointState *
state_of (const char *latest, ...)
{
  MusterCheckpointState *state = muster_checkpoint_state_new ();
  va_list paths;
  state->latest = g_strdup (latest);
  va_start (paths, latest);
  for (const char *path; (path = va_arg (paths, const char *)) != NULL;)
    g_ptr_array_add (state->all, g_strdup (path));
  va_end (paths);
  return state;
}

/* What is in the state file of the test's folder. */
static char *
written_text (void)
{
  g_autofree char *path = in_tmpdir ("checkpoint");
  char *text = NULL;
  g_file_get_contents (path, &text, NULL, NULL);
  return text;
}

static void
put_text (const char *text)
{
  put_file ("checkpoint", text, strlen (text));
}

static MusterCheckpointState *
read_text (const char *text, GError **error)
{
  put_text (text);
  return muster_checkpoint_state_read (NULL, muster_test_tmpdir (), error);
}

MUSTER_TEST (CheckpointState, prints_what_tensorflow_printed)
{
  static const char *const files[] = {"checkpoint", "checkpoint.odd"};
  for (gsize i = 0; i < G_N_ELEMENTS (files); i++) {
    g_autofree char *path = golden (files[i]);
    g_autoptr (GBytes) bytes = get_file (path);
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterCheckpointState) state =
        muster_state_text_parse (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), &error);
    MUSTER_ASSERT_NO_ERROR (error);
    g_autofree char *text = muster_state_text_print (state);
    MUSTER_EXPECT_MEMEQ (text, strlen (text), g_bytes_get_data (bytes, NULL),
                         g_bytes_get_size (bytes));
  }
}

MUSTER_TEST (CheckpointState, numbers_print_as_pythons_do)
{
  static const struct {
    double number;
    const char *text;
  } cases[] = {
      {0.1, "0.1"},
      {1600000000, "1600000000.0"},
      {1e15, "1000000000000000.0"},
      {1e16, "1e+16"},
      {1.5e300, "1.5e+300"},
      {1.0 / 3, "0.3333333333333333"},
      {1e-5, "1e-05"},
      {0.0001, "0.0001"},
      {123456789.123456789, "123456789.12345679"},
      {G_MAXDOUBLE, "1.7976931348623157e+308"},
      {-2.5, "-2.5"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
    state->last_preserved = cases[i].number;
    g_autofree char *text = muster_state_text_print (state);
    g_autofree char *expected = g_strdup_printf ("last_preserved_timestamp: %s\n", cases[i].text);
    MUSTER_EXPECT_STREQ (text, expected);
  }
}

MUSTER_TEST (CheckpointState, reads_any_text_format)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCheckpointState) state =
      read_text ("# a comment\n  model_checkpoint_path:'/a\\x41\\101\\n\\u00e9' \"b\" ; "
                 "all_model_checkpoint_paths: [\"x\", 'y']\n"
                 "all_model_checkpoint_timestamps: 1.5, all_model_checkpoint_timestamps:2e3f\n"
                 "newer { nested < deep: [1, {a: 2}] > text: \"}\" } [an.extension]: -ENUM "
                 "empty: []\n"
                 "last_preserved_timestamp: 7 # the end",
                 &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *y = in_tmpdir ("y");
  MUSTER_EXPECT_STREQ (state->latest, "/aAA\n\xc3\xa9"
                                      "b");
  MUSTER_ASSERT_EQ (state->all->len, 2u);
  MUSTER_EXPECT_STREQ (state->all->pdata[1], y);
  MUSTER_ASSERT_EQ (state->timestamps->len, 2u);
  MUSTER_EXPECT_EQ (g_array_index (state->timestamps, double, 1), 2000.0);
  MUSTER_EXPECT_EQ (state->last_preserved, 7.0);
}

/* Of a field that isn't known; of one that is, it would be another number if it were cut. */
MUSTER_TEST (CheckpointState, skips_words_of_any_length)
{
  g_autofree char *word = g_strnfill (1000, '1');
  g_autofree char *cut =
      g_strdup_printf ("model_checkpoint_path: 'a' last_preserved_timestamp: %s", word);
  g_autofree char *skipped =
      g_strdup_printf ("newer: %s model_checkpoint_path: '/a' newer { x%s: %s }", word, word, word);
  g_autoptr (GError) error = NULL, too_long = NULL;

  g_autoptr (MusterCheckpointState) state = read_text (skipped, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (state->latest, "/a");
  g_autoptr (MusterCheckpointState) other = read_text (cut, &too_long);
  MUSTER_EXPECT_ERROR (too_long, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

/* SAV.5, SAV.6 with DIFF.14. */
MUSTER_TEST (CheckpointState, what_cannot_be_read_is_data_loss)
{
  static const char *texts[] = {"",
                                "all_model_checkpoint_paths: \"a\"",
                                "model_checkpoint_path: \"a",
                                "model_checkpoint_path \"a\"",
                                "model_checkpoint_path: a",
                                "model_checkpoint_path: \"\"",
                                "model_checkpoint_path: \"a\\0b\"",
                                "model_checkpoint_path: \"a\\q\"",
                                "model_checkpoint_path: \"a\" x {",
                                "model_checkpoint_path: \"a\" }",
                                "model_checkpoint_path: \"a\" x: [1",
                                "model_checkpoint_path: \"a\" last_preserved_timestamp: soon",
                                "{",
                                ":",
                                "model_checkpoint_path"};
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_TRACE ("text '%s'", texts[i]);
    g_autoptr (MusterCheckpointState) state = read_text (texts[i], &error);
    MUSTER_EXPECT_NULL (state);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  }
}

MUSTER_TEST (CheckpointState, deep_nesting_is_refused)
{
  g_autoptr (GError) error = NULL;
  GString *text = g_string_new ("model_checkpoint_path: 'a' ");
  for (int i = 0; i < 100000; i++)
    g_string_append (text, i % 2 ? "x{" : "x:[{");
  g_autofree char *deep = g_string_free (text, FALSE);

  MUSTER_EXPECT_NULL (read_text (deep, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

MUSTER_TEST (CheckpointState, absent_is_none_without_an_error)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_checkpoint_state_read (NULL, muster_test_tmpdir (), &error));
  MUSTER_EXPECT_NULL (muster_latest_checkpoint (NULL, muster_test_tmpdir (), &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (CheckpointState, a_state_that_cannot_be_opened_is_not_absent)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = in_tmpdir ("checkpoint");
  g_mkdir_with_parents (path, 0700);

  MUSTER_EXPECT_NULL (muster_checkpoint_state_read (NULL, muster_test_tmpdir (), &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}

/* SAV.7 */
MUSTER_TEST (CheckpointState, relative_paths_are_put_behind_the_directory_as_they_are)
{
  g_autoptr (MusterCheckpointState) state =
      read_text ("model_checkpoint_path: \"./model.ckpt-5\"\n"
                 "all_model_checkpoint_paths: \"/else/where\"\n"
                 "all_model_checkpoint_timestamps: 1 all_model_checkpoint_timestamps: 2",
                 NULL);
  MUSTER_ASSERT_NOT_NULL (state);
  g_autofree char *expected = g_strconcat (muster_test_tmpdir (), "/./model.ckpt-5", NULL);
  MUSTER_EXPECT_STREQ (state->latest, expected);
  MUSTER_EXPECT_STREQ (state->all->pdata[0], "/else/where");
  MUSTER_EXPECT_EQ (state->timestamps->len, 0u); /* not one for each path: dropped */
}

/* SAV.1, SAV.2, SAV.10 with DIFF.16. */
MUSTER_TEST (CheckpointState, is_written_relative_with_the_latest_in_its_list)
{
  g_autofree char *one = in_tmpdir ("model-1"), *two = in_tmpdir ("sub/model-2");
  g_autoptr (MusterCheckpointState) state =
      state_of (two, "model-0", one, "/else/where/model-9", NULL);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_checkpoint_state_write (NULL, muster_test_tmpdir (), state, &error));

  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *text = written_text ();
  MUSTER_EXPECT_STREQ (text, "model_checkpoint_path: \"sub/model-2\"\n"
                             "all_model_checkpoint_paths: \"model-0\"\n"
                             "all_model_checkpoint_paths: \"model-1\"\n"
                             "all_model_checkpoint_paths: \"/else/where/model-9\"\n"
                             "all_model_checkpoint_paths: \"sub/model-2\"\n");
  MUSTER_EXPECT_EQ (state->all->len, 3u); /* the caller's is left alone */
  g_autoptr (MusterCheckpointState) read =
      muster_checkpoint_state_read (NULL, muster_test_tmpdir (), NULL);
  MUSTER_EXPECT_STREQ (read->latest, two);
}

/* SAV.3 */
MUSTER_TEST (CheckpointState, relative_to_a_relative_directory)
{
  static const struct {
    const char *directory, *path, *written;
  } cases[] = {
      {"train", "train/model-0", "model-0"},
      {"./train/", "train/model-0", "model-0"},
      {"train", "./train//model-0", "model-0"},
      {"train", "elsewhere/model-0", "../elsewhere/model-0"},
      {"train/a", "train/b/model-0", "../b/model-0"},
      {"train", "/train/model-0", "/train/model-0"},
      {"train", "trainer/model-0", "../trainer/model-0"},
  };
  g_autofree char *here = g_get_current_dir ();
  g_autofree char *a = in_tmpdir ("train/a");
  g_mkdir_with_parents (a, 0700);
  MUSTER_ASSERT_EQ (g_chdir (muster_test_tmpdir ()), 0);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterCheckpointState) state = state_of (cases[i].path, NULL);
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_TRUE (muster_checkpoint_state_write (NULL, cases[i].directory, state, &error));
    MUSTER_EXPECT_NO_ERROR (error);
    g_autofree char *path = g_build_filename (cases[i].directory, "checkpoint", NULL);
    g_autofree char *text = NULL;
    g_file_get_contents (path, &text, NULL, NULL);
    g_autoptr (MusterCheckpointState) raw = muster_state_text_parse (text, strlen (text), &error);
    MUSTER_EXPECT_STREQ (raw->latest, cases[i].written);
  }
  MUSTER_EXPECT_EQ (g_chdir (here), 0);
}

/* SAV.4, SAV.9 */
MUSTER_TEST (CheckpointState, refuses_to_write_nonsense_and_leaves_the_file)
{
  const double time = 1;
  g_autofree char *itself = in_tmpdir ("checkpoint");
  g_autoptr (MusterCheckpointState) conflict = state_of (itself, NULL),
                                    none = state_of (NULL, NULL),
                                    times = state_of ("m-2", "m-1", NULL);
  g_autoptr (GError) of_conflict = NULL, of_none = NULL, of_times = NULL;
  g_array_append_val (times->timestamps, time);
  put_file ("checkpoint", "old", 3);

  MUSTER_EXPECT_FALSE (
      muster_checkpoint_state_write (NULL, muster_test_tmpdir (), conflict, &of_conflict));
  MUSTER_EXPECT_FALSE (muster_checkpoint_state_write (NULL, muster_test_tmpdir (), none, &of_none));
  MUSTER_EXPECT_FALSE (
      muster_checkpoint_state_write (NULL, muster_test_tmpdir (), times, &of_times));

  MUSTER_EXPECT_ERROR (of_conflict, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  MUSTER_EXPECT_TRUE (
      strstr (of_conflict->message, "conflicts with path used for checkpoint state") != NULL);
  MUSTER_EXPECT_ERROR (of_none, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_ERROR (of_times, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  g_autofree char *text = written_text ();
  MUSTER_EXPECT_STREQ (text, "old");
}

/* SAV.15, SAV.16 with DIFF.16. */
MUSTER_TEST (LatestCheckpoint, is_found_in_a_directory_that_was_moved)
{
  g_autoptr (GError) error = NULL, gone = NULL;
  g_autofree char *here = in_tmpdir ("model-3");
  put_file ("model-3.index", "", 0);
  put_text ("model_checkpoint_path: \"/old/place/model-3\"");

  g_autofree char *latest = muster_latest_checkpoint (NULL, muster_test_tmpdir (), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (latest, here);

  put_text ("model_checkpoint_path: \"sub/dir/model-3\"");
  MUSTER_EXPECT_NULL (muster_latest_checkpoint (NULL, muster_test_tmpdir (), &gone));
  MUSTER_EXPECT_SAYS (gone, MUSTER_ERROR, MUSTER_ERROR_NOT_FOUND,
                      "Couldn't match files for checkpoint");
}

static gboolean
matches (const char *pattern)
{
  g_autofree char *path = in_tmpdir (pattern);
  return muster_checkpoint_matches (NULL, path);
}

/* SAV.15: wildcards, and the old format's files, without a look at the data */
MUSTER_TEST (CheckpointMatches, honours_wildcards)
{
  const char *const there[] = {
      "new-3", "x-????\?-of-00002", "x-00001-of-00002", "n*-3", "*", "new-?", "**3", "?*w-3"};
  const char *const not_there[] = {"new", "x-???\?-of-00002", "x-????\?-of-00003", "new-3?", "?"};
  put_file ("new-3.index", "", 0);
  put_file ("x-00001-of-00002", "", 0);
  g_autofree char *many = g_strnfill (200, '*');
  g_autofree char *hard = g_strconcat (many, "0", many, "1", many, "nowhere", NULL);

  for (gsize i = 0; i < G_N_ELEMENTS (there); i++)
    MUSTER_EXPECT_STREQ (matches (there[i]) ? there[i] : "none", there[i]);
  for (gsize i = 0; i < G_N_ELEMENTS (not_there); i++)
    MUSTER_EXPECT_STREQ (matches (not_there[i]) ? not_there[i] : "none", "none");
  MUSTER_EXPECT_FALSE (matches (hard));
  MUSTER_EXPECT_FALSE (matches ("nowhere/new-3"));
}

/* SAV.17: in seconds, and what isn't there is left out */
MUSTER_TEST (CheckpointMtimes, are_those_of_the_indexes_in_seconds)
{
  g_autofree char *one = in_tmpdir ("m-1"), *two = in_tmpdir ("m-2"), *gone = in_tmpdir ("m-3");
  g_autofree char *index = in_tmpdir ("m-2.index");
  const char *const prefixes[] = {gone, two, one, NULL};
  const struct timespec then[2] = {{.tv_sec = 5}, {.tv_sec = 1000, .tv_nsec = 500000000}};
  put_file ("m-1.index", "", 0);
  put_file ("m-2.index", "", 0);
  MUSTER_ASSERT_EQ (utimensat (AT_FDCWD, index, then, 0), 0);
  g_autoptr (GArray) times = muster_checkpoint_mtimes (NULL, prefixes);
  MUSTER_ASSERT_EQ (times->len, 2u);
  MUSTER_EXPECT_EQ (g_array_index (times, double, 0), 1000.5);
  MUSTER_EXPECT_GT (g_array_index (times, double, 1), 1.5e9);
}

/* SAV.19 */
MUSTER_TEST (CheckpointMetaPath, is_without_the_shard)
{
  static const char *const cases[][2] = {{"m-3", "m-3.meta"},
                                         {"m-3-00001-of-00002", "m-3.meta"},
                                         {"m-3-\?\?\?\?\?-of-00002", "m-3.meta"},
                                         {"d/m-3-of-4", "d/m.meta"},
                                         {"-1-of-2", ".meta"},
                                         {"m-1-of-", "m-1-of-.meta"},
                                         {"m--of-2", "m--of-2.meta"},
                                         {"12", "12.meta"},
                                         {"", ".meta"}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = muster_checkpoint_meta_path (cases[i][0]);
    MUSTER_EXPECT_STREQ (path, cases[i][1]);
  }
}

/* SAV.18 */
MUSTER_TEST (RemoveCheckpoint, takes_its_files_index_first_and_no_others)
{
  static const char *const names[] = {"m-1.index",
                                      "m-1.meta",
                                      "m-1.data-00000-of-00002",
                                      "m-1.data-00001-of-00002",
                                      "m-10.index",
                                      "m-10.meta",
                                      "m-10.data-00000-of-00001",
                                      "m-1.data-x",
                                      "xm-1.data-00000-of-00001",
                                      "m-1.data-00000-of-00001.orig"};
  g_autofree char *prefix = in_tmpdir ("m-1"), *absent = in_tmpdir ("absent/m");
  g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (0);
  g_autoptr (GError) error = NULL;
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++)
    put_file (names[i], "", 0);

  MUSTER_EXPECT_TRUE (muster_remove_checkpoint (MUSTER_STORAGE (storage), prefix, &error));
  MUSTER_EXPECT_TRUE (muster_remove_checkpoint (NULL, prefix, &error)); /* absent: nothing */
  MUSTER_EXPECT_TRUE (muster_remove_checkpoint (NULL, absent, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (
      storage->log->str,
      "remove m-1.index; sync directory; remove m-1.meta; list; remove m-1.data-00000-of-00002; "
      "remove m-1.data-00001-of-00002; ");
  g_auto (GStrv) left = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  MUSTER_EXPECT_EQ (g_strv_length (left), 6u);
}

/* Neither that it is there nor that it is gone. */
MUSTER_TEST (CheckpointState, an_outage_says_nothing_of_a_file)
{
  static const char prefix[] = "s3://bucket/run/model.ckpt-1", run[] = "s3://bucket/run";
  g_autoptr (MusterObjectStorage) store = object_storage_new ();
  MusterStorage *storage = MUSTER_STORAGE (store);
  g_autofree char *index = g_strconcat (prefix, ".index", NULL);
  g_autoptr (GError) error = NULL, unread = NULL;
  gboolean is_there;
  MUSTER_ASSERT_TRUE (muster_storage_publish (storage, index, "", 0, NULL));

  object_storage_miss_at (store, 1);
  MUSTER_EXPECT_FALSE (muster_checkpoint_look (storage, prefix, &is_there, NULL));
  object_storage_miss_at (store, 1);
  MUSTER_EXPECT_FALSE (muster_checkpoint_is_gone (storage, prefix));
  for (guint n = 1; n <= 2; n++) { /* the list, and the look at each name */
    object_storage_miss_at (store, n);
    MUSTER_EXPECT_NULL (muster_checkpoint_list (storage, run, NULL));
  }
  object_storage_miss_at (store, 1);
  MUSTER_EXPECT_NULL (muster_checkpoint_state_version (storage, run, NULL, &error));
  MUSTER_EXPECT_TRUE (error != NULL);
  object_storage_miss_at (store, 1);
  MUSTER_EXPECT_NULL (muster_checkpoint_state_read (storage, run, &unread));
  MUSTER_EXPECT_ERROR (unread, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
}

/* What isn't known to be gone isn't called removed. */
MUSTER_TEST (CheckpointState, an_outage_while_one_is_removed_leaves_nothing_behind)
{
  static const char prefix[] = "s3://bucket/run/model.ckpt-1";
  gboolean is_removed = FALSE;
  for (guint n = 1; n < 20; n++) {
    g_autoptr (MusterObjectStorage) store = object_storage_new ();
    MusterStorage *storage = MUSTER_STORAGE (store);
    g_autofree char *index = g_strconcat (prefix, ".index", NULL);
    g_autofree char *data = g_strconcat (prefix, ".data-00000-of-00001", NULL);
    MUSTER_ASSERT_TRUE (muster_storage_publish (storage, index, "", 0, NULL));
    MUSTER_ASSERT_TRUE (muster_storage_publish (storage, data, "", 0, NULL));
    object_storage_miss_at (store, n);
    is_removed = muster_remove_checkpoint (storage, prefix, NULL);
    MUSTER_TRACE ("call %u", n);
    MUSTER_EXPECT_TRUE (!is_removed || object_storage_n_files (store) == 0);
  }
  MUSTER_EXPECT_TRUE (is_removed);
}
