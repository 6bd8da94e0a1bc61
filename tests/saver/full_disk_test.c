// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_mark.h"
#include "tests/doubles/narrow_storage.h"
#include "tests/saver/directory_fixture.h"

#include <glib/gstdio.h>

typedef struct {
  Fixture f;
  MusterNarrowStorage *disk;
  guint n_pauses;
} Story;

static void
note_pause (const char *why, gpointer data)
{
  ((Story *)data)->n_pauses++;
  MUSTER_EXPECT_TRUE (strstr (why, "needs about") != NULL);
}

static void
begin (Story *self, MusterWhenFull when_full)
{
  self->disk = muster_narrow_storage_new ();
  self->f = set_up ((MusterSaverOptions){.storage = MUSTER_STORAGE (self->disk),
                                         .when_full = when_full,
                                         .max_to_keep = 5,
                                         .paused = note_pause,
                                         .paused_data = self});
}

static void
story_clear (Story *self)
{
  tear_down (&self->f);
  g_clear_object (&self->disk);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Story, story_clear)

static gboolean
save_within (Story *self, gint64 step, gint64 timeout_us, MusterSaved *saved, GError **error)
{
  const gint64 now_us = muster_clock_now_us (MUSTER_CLOCK (self->f.clock));
  return muster_saver_save_with (self->f.saver, self->f.session, muster_test_tmpdir (), step, 0,
                                 saved, muster_deadline_after (now_us, timeout_us), NULL, error);
}

static guint
n_files (const char *start)
{
  g_auto (GStrv) files = muster_storage_list (muster_local_storage (), muster_test_tmpdir (), NULL);
  guint n = 0;
  for (char **file = files; file != NULL && *file != NULL; file++)
    n += g_str_has_prefix (*file, start);
  return n;
}

MUSTER_TEST (FullDisk, fails_before_the_master_writes_and_says_what_is_needed)
{
  g_auto (Story) story = {0};
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  begin (&story, MUSTER_WHEN_FULL_FAIL);
  save (&story.f, 1);
  muster_narrow_storage_set_free (story.disk, 1000);

  MUSTER_EXPECT_FALSE (save_within (&story, 2, MUSTER_WAIT_FOREVER, &saved, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_ASSERT_TRUE (error != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, muster_test_tmpdir ()) != NULL);
  MUSTER_EXPECT_TRUE (strstr (error->message, " is free in ") != NULL);
  const char *what = strstr (error->message, "not enough free space: ");
  MUSTER_ASSERT_TRUE (what != NULL);
  MUSTER_EXPECT_NULL (strstr (what + 1, "not enough free space")); /* once */
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (story.f.master, "save/control_dependency"), 1u);
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "1");
}

MUSTER_TEST (FullDisk, skips_when_asked_and_says_why)
{
  g_auto (Story) story = {0};
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL, plain = NULL;
  begin (&story, MUSTER_WHEN_FULL_SKIP);
  muster_narrow_storage_set_free (story.disk, 1000);

  MUSTER_EXPECT_TRUE (save_within (&story, 2, MUSTER_WAIT_FOREVER, &saved, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (saved.skipped);
  MUSTER_EXPECT_NULL (saved.prefix);
  MUSTER_EXPECT_TRUE (saved.why != NULL && strstr (saved.why, "needs about") != NULL);
  MUSTER_EXPECT_NULL (save_by (&story.f, story.f.saver, 3, &plain));
  MUSTER_EXPECT_ERROR (plain, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}

static void
free_disk_space (gpointer disk)
{
  muster_narrow_storage_set_free (disk, G_MAXUINT64);
}

MUSTER_TEST (FullDisk, pauses_until_there_is_free_space)
{
  g_auto (Story) story = {0};
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  begin (&story, MUSTER_WHEN_FULL_PAUSE);
  muster_narrow_storage_set_free (story.disk, 1000);
  muster_fake_clock_at (story.f.clock, 600 * MUSTER_SECOND, free_disk_space, story.disk);

  MUSTER_EXPECT_TRUE (save_within (&story, 2, MUSTER_WAIT_FOREVER, &saved, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (saved.prefix != NULL);
  MUSTER_EXPECT_GE (saved.took_us, 600 * MUSTER_SECOND);
  MUSTER_EXPECT_GE (story.n_pauses, 10u);
  MUSTER_EXPECT_LE (story.n_pauses, 20u);
}

MUSTER_TEST (FullDisk, pauses_no_longer_than_the_deadline)
{
  g_auto (Story) story = {0};
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  begin (&story, MUSTER_WHEN_FULL_PAUSE);
  muster_narrow_storage_set_free (story.disk, 1000);

  MUSTER_EXPECT_FALSE (save_within (&story, 2, 100 * MUSTER_SECOND, &saved, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_EQ (muster_fake_clock_elapsed_us (story.f.clock), 100 * MUSTER_SECOND);
}

/* The disk fills up while the master writes: half of it is there, twice. The model's own play has
 * written before, and yielded its value. */
static gboolean
write_until_full (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step,
                  MusterTensor **value, gpointer user_data, GError **error)
{
  int *n_left = user_data;
  MusterString name = muster_tensor_string (step->feeds[0].tensor, 0);
  g_autofree char *prefix = g_strndup (name.data, name.size);
  g_autofree char *data = g_strconcat (prefix, ".data-00000-of-00001", NULL);
  g_autofree char *parts = g_strconcat (prefix, "_temp_1", NULL);
  g_autofree char *part = g_build_filename (parts, "part-0.index", NULL);

  if ((*n_left)-- <= 0)
    return TRUE;
  g_mkdir_with_parents (parts, 0700);
  g_file_set_contents (part, "half", 4, NULL);
  g_file_set_contents (data, "half", 4, NULL);
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC, "'%s': could not write", data);
  g_clear_pointer (value, muster_tensor_unref);
  return FALSE;
}

MUSTER_TEST (FullDisk, met_in_the_middle_leaves_nothing_behind_under_any_policy)
{
  static const MusterWhenFull policies[] = {MUSTER_WHEN_FULL_FAIL, MUSTER_WHEN_FULL_SKIP,
                                            MUSTER_WHEN_FULL_PAUSE};
  for (gsize i = 0; i < G_N_ELEMENTS (policies); i++) {
    int n_left = 2;
    g_auto (Story) story = {0};
    g_auto (MusterSaved) saved = {0};
    g_autoptr (GError) error = NULL;
    begin (&story, policies[i]);
    save (&story.f, 1);
    muster_fake_master_op_calls (story.f.master, "save/control_dependency", write_until_full,
                                 &n_left);

    const gboolean done = save_within (&story, 2, 1000 * MUSTER_SECOND, &saved, &error);

    MUSTER_EXPECT_EQ (done, policies[i] != MUSTER_WHEN_FULL_FAIL);
    MUSTER_EXPECT_EQ (saved.skipped, policies[i] == MUSTER_WHEN_FULL_SKIP);
    MUSTER_EXPECT_EQ (n_left, policies[i] == MUSTER_WHEN_FULL_PAUSE ? -1 : 1);
    if (!done)
      MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
    MUSTER_EXPECT_EQ (n_files (".saving"), 0u);
    g_autofree char *one = below_tmpdir ("model.ckpt-1");
    MUSTER_EXPECT_TRUE (muster_checkpoint_exists (NULL, one));
  }
}

/* A master says the same of its memory, which no pause would mend. */
MUSTER_TEST (FullDisk, a_masters_lack_of_memory_is_none_of_the_disks)
{
  g_auto (Story) story = {0};
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  begin (&story, MUSTER_WHEN_FULL_PAUSE);
  muster_fake_master_fail (story.f.master, "save/control_dependency", 1, G_MAXUINT,
                           MUSTER_ERROR_RESOURCE_EXHAUSTED, "OOM");

  MUSTER_EXPECT_FALSE (save_within (&story, 2, 1000 * MUSTER_SECOND, &saved, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_EQ (story.n_pauses, 0u);
}

/* --- room is made by what the rules give up --- */

static const MusterSaverOptions keep_one = {.max_to_keep = 1};

/* Steps 1 and 2 are there; then the job starts again with other rules. */
static void
begin_again (Story *self, MusterSaverOptions options)
{
  begin (self, MUSTER_WHEN_FULL_FAIL);
  save (&self->f, 1);
  save (&self->f, 2);
  options.storage = MUSTER_STORAGE (self->disk);
  restart (&self->f, options);
}

/* There is no room for a third. */
static void
fill (Story *self)
{
  muster_narrow_storage_fill (self->disk, muster_test_tmpdir (),
                              muster_saver_estimate_bytes (self->f.saver) - 1);
}

static gboolean
write_once_alone (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
                  MusterTensor **value G_GNUC_UNUSED, gpointer user_data,
                  GError **error G_GNUC_UNUSED)
{
  g_autofree char *there = steps_there ();
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (NULL, muster_test_tmpdir (), NULL);
  *(char **)user_data = g_strdup_printf ("%s; %u listed", there, state->all->len);
  return TRUE;
}

MUSTER_TEST (Room, is_made_before_the_save_by_what_the_rules_give_up)
{
  g_auto (Story) story = {0};
  g_autofree char *before = NULL;
  begin_again (&story, keep_one);
  fill (&story);
  muster_fake_master_op_calls (story.f.master, "save/control_dependency", write_once_alone,
                               &before);

  save (&story.f, 3);

  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "3");
  MUSTER_EXPECT_STREQ (before, "2; 1 listed");
}

/* Not even for the state, which otherwise is written before the files go. */
MUSTER_TEST (Room, is_made_on_a_disk_without_a_free_byte)
{
  g_auto (Story) story = {0};
  g_autofree char *before = NULL;
  g_autofree char *meta = below_tmpdir ("model.ckpt-1.meta");
  begin_again (&story, keep_one);
  const gsize size = muster_saver_estimate_bytes (story.f.saver);
  g_autofree char *large = g_strnfill (size, 'x'); /* so that one is enough for another */
  MUSTER_EXPECT_TRUE (g_file_set_contents (meta, large, (gssize)size, NULL));
  muster_narrow_storage_fill (story.disk, muster_test_tmpdir (), 0);
  muster_fake_master_op_calls (story.f.master, "save/control_dependency", write_once_alone,
                               &before);

  save (&story.f, 3);

  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "3");
  MUSTER_EXPECT_STREQ (before, "2; 1 listed");
}

/* A job that starts on a disk without a free byte; what is enough for the save that follows. */
static gboolean
start_on_full_disk (Story *story, MusterSaverOptions options, const char *resumed, GError **error)
{
  g_autofree char *meta = below_tmpdir ("model.ckpt-1.meta");
  g_autofree char *from = below_tmpdir (resumed);
  MusterSaver *saver;
  begin_again (story, options);
  saver = story->f.saver;
  g_autofree char *large = g_strnfill (muster_saver_estimate_bytes (saver), 'x');
  MUSTER_EXPECT_TRUE (g_file_set_contents (meta, large, -1, NULL));
  muster_narrow_storage_fill (story->disk, muster_test_tmpdir (), 0);
  return muster_saver_take_directory (saver, NULL, muster_test_tmpdir (), MUSTER_WAIT_FOREVER, NULL,
                                      error) &&
         muster_saver_begin_run (saver, muster_test_tmpdir (), from, -1, MUSTER_WAIT_FOREVER, NULL,
                                 error);
}

MUSTER_TEST (Room, is_made_for_the_claim_of_a_job_that_starts)
{
  g_auto (Story) story = {0};
  g_autoptr (GError) error = NULL;

  (void)start_on_full_disk (&story, keep_one, "model.ckpt-2", &error);

  g_autofree char *there = steps_there ();
  g_autoptr (MusterCheckpointRecord) after = record ();
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (there, "2");
  MUSTER_EXPECT_TRUE (after->chief != NULL && after->run != NULL);
}

MUSTER_TEST (Room, is_not_made_for_a_claim_by_what_the_rules_keep_or_the_run_was_restored_from)
{
  const MusterSaverOptions keep_three = {.max_to_keep = 3};
  for (int i = 0; i < 2; i++) {
    g_auto (Story) story = {0};
    g_autoptr (GError) error = NULL;

    MUSTER_EXPECT_FALSE (start_on_full_disk (&story, i == 0 ? keep_three : keep_one,
                                             i == 0 ? "model.ckpt-2" : "model.ckpt-1", &error));

    g_autofree char *there = steps_there ();
    MUSTER_EXPECT_STREQ (there, "1 2");
    MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC);
  }
}

MUSTER_TEST (Room, is_made_when_the_disk_fills_up_in_the_middle)
{
  g_auto (Story) story = {0};
  int n_left = 1;
  begin (&story, MUSTER_WHEN_FULL_FAIL);
  save (&story.f, 1);
  save (&story.f, 2);
  restart (&story.f,
           (MusterSaverOptions){.max_to_keep = 1, .storage = MUSTER_STORAGE (story.disk)});
  muster_narrow_storage_set_free (story.disk, G_MAXUINT64); /* unknown, as a quota's */
  muster_fake_master_op_calls (story.f.master, "save/control_dependency", write_until_full,
                               &n_left);

  save (&story.f, 3);

  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, "3");
  MUSTER_EXPECT_EQ (n_left, -1);
}

/* The save fails as before, and nothing was removed for it. */
static void
expect_no_room (Story *story, const char *expected)
{
  g_auto (MusterSaved) saved = {0};
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (save_within (story, 3, MUSTER_WAIT_FOREVER, &saved, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_autofree char *there = steps_there ();
  MUSTER_EXPECT_STREQ (there, expected);
}

MUSTER_TEST (Room, is_not_made_by_what_the_rules_keep)
{
  static const MusterSaverOptions rules[] = {
      {.max_to_keep = 3},
      {.max_to_keep = 1, .keep_every_steps = 1},
      {.max_to_keep = 1, .keep_best = 1, .metric = "a:max"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (rules); i++) {
    g_auto (Story) story = {0};
    g_autofree char *one = below_tmpdir ("model.ckpt-1");
    begin_again (&story, rules[i]);
    muster_checkpoint_set_metric (NULL, one, "a", 0.9, MUSTER_WAIT_FOREVER, NULL, NULL);
    fill (&story);
    expect_no_room (&story, "1 2");
  }
}

MUSTER_TEST (Room, is_not_made_by_what_is_pinned)
{
  g_auto (Story) story = {0};
  g_autofree char *one = below_tmpdir ("model.ckpt-1");
  begin_again (&story, keep_one);
  MUSTER_EXPECT_TRUE (muster_checkpoint_pin (NULL, one, "a test", MUSTER_WAIT_FOREVER, NULL, NULL));
  fill (&story);

  expect_no_room (&story, "1 2");
}

MUSTER_TEST (Room, is_not_made_by_what_is_read)
{
  g_auto (Story) story = {0};
  g_autofree char *index = below_tmpdir ("model.ckpt-1.index");
  MusterStorage *storage = muster_local_storage ();
  begin_again (&story, keep_one);
  MusterStorageLock *reads = muster_storage_lock (storage, index, MUSTER_LOCK_SHARED, NULL);
  fill (&story);

  expect_no_room (&story, "1 2");

  muster_storage_unlock (storage, reads);
}

MUSTER_TEST (Room, is_not_made_by_what_the_run_was_restored_from)
{
  g_auto (Story) story = {0};
  begin_again (&story, keep_one);
  g_autoptr (MusterCheckpointRecord) trial = record ();
  trial->life = g_strdup ("model.ckpt-1");
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_write (NULL, muster_test_tmpdir (), trial, NULL));
  fill (&story);

  expect_no_room (&story, "1 2");
}

/* By its bytes, not by its index alone: the last whole one stays. */
MUSTER_TEST (Room, is_not_made_by_the_only_whole_one)
{
  g_auto (Story) story = {0};
  g_autofree char *data = below_tmpdir ("model.ckpt-2.data-00000-of-00001"), *text = NULL;
  gsize size = 0;
  begin_again (&story, keep_one);
  MUSTER_ASSERT_TRUE (g_file_get_contents (data, &text, &size, NULL) && size > 0);
  text[0] ^= 1;
  g_file_set_contents (data, text, (gssize)size, NULL);
  fill (&story);

  expect_no_room (&story, "1 2");
}

/* Nothing of it would be removed: muster wrote none of its files. */
MUSTER_TEST (Room, is_not_made_by_one_in_the_old_format)
{
  g_auto (Story) story = {0};
  MusterSaverOptions options = keep_one;
  g_autofree char *before = NULL;
  g_autofree char *old = below_tmpdir ("model.ckpt-1");
  g_autofree char *index = below_tmpdir ("model.ckpt-1.index");
  begin_again (&story, (MusterSaverOptions){.max_to_keep = 5});
  save (&story.f, 3);
  MUSTER_EXPECT_EQ (g_rename (index, old), 0); /* a table is what such a file is, too */
  options.storage = MUSTER_STORAGE (story.disk);
  restart (&story.f, options);
  fill (&story);
  muster_fake_master_op_calls (story.f.master, "save/control_dependency", write_once_alone,
                               &before);

  save (&story.f, 4);

  MUSTER_EXPECT_STREQ (before, "3; 2 listed"); /* the old one, too */
}

MUSTER_TEST (Room, is_not_made_where_all_of_it_is_not_enough)
{
  g_auto (Story) story = {0};
  begin_again (&story, keep_one);
  muster_narrow_storage_fill (story.disk, "/nowhere", 1);

  expect_no_room (&story, "1 2");
}
