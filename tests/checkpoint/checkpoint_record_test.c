// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_record_private.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/doubles/heard.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static MusterCheckpointRecord *
full_record (void)
{
  static const guint32 crc = 0xe3069283;
  MusterCheckpointRecord *record = muster_checkpoint_record_new ();
  record->epoch = 7;
  record->chief = g_strdup ("worker:0 at host=a;b\n[x]");
  record->over = TRUE;
  record->final_step = 1200;
  record->last_preserved = 1600000000.123456;
  record->life = g_strdup ("model ckpt;1");
  record->run = g_strdup ("5d5c0d7e-0c5c-4c4e-8f3a-6a1a2b3c4d5e");
  record->resumed_run = g_strdup ("0b9f8a7c-1d2e-4f3a-9b8c-7d6e5f4a3b2c");
  record->resumed_step = 1100;
  record->durable_dir = g_strdup ("/nfs/run;\xff");
  record->goodput = (MusterGoodput){.began_us = 1600000000000001,
                                    .spent_us = {1, 2, 3, 4, 5, 6, 7},
                                    .n_restarts = 8,
                                    .n_failures = 7,
                                    .steps_again = 9,
                                    .step = 10,
                                    .is_least = TRUE,
                                    .end = MUSTER_RUN_STOPPED};
  record->goodput_time = 1600000001.5;
  MusterSideCheckpoint *one = muster_checkpoint_record_ensure (record, "/a/b/model ckpt;1");
  one->step = 1;
  one->epoch = 6;
  one->run = g_strdup ("0b9f8a7c-1d2e-4f3a-9b8c-7d6e5f4a3b2c");
  one->time = 1600000060.5;
  one->bytes = G_MAXUINT64;
  one->verified = TRUE;
  one->preserved = TRUE;
  one->pending_delete = TRUE;
  one->deaths = 3;
  one->bad = g_strdup (" the tensor 'w' = [1;2]\\ \xc3\xa4 ");
  one->state_file = g_strdup ("latest");
  one->preserved_for = g_strdup ("every 6 h");
  one->pinned = TRUE;
  one->pinned_for = g_strdup ("the paper's; \xc3\xa4");
  g_array_append_vals (one->holds, (const double[]){1234567890.5, 1234567891}, 2);
  muster_side_checkpoint_set_metric (one, "eval/top 5;\xc3\xa4", 0.1);
  muster_side_checkpoint_set_metric (one, "loss:1", NAN);
  const MusterKeepRules rules = {.newest = 3,
                                 .every_s = 21600,
                                 .every_steps = 1000,
                                 .best = 2,
                                 .metric = (char *)"eval/top 5;\xc3\xa4",
                                 .least_is_best = TRUE};
  muster_checkpoint_record_set_rules (record, "latest", &rules);
  muster_checkpoint_record_set_rules (record, NULL, &(MusterKeepRules){.newest = 5});
  muster_side_checkpoint_add_file (one, ".index", 123, &crc);
  muster_side_checkpoint_add_file (one, ".data-00000-of-00001", G_MAXUINT64, NULL);
  muster_checkpoint_record_ensure (record, "\xff%2fodd #=[]");
  return record;
}

static MusterCheckpointRecord *
parse (const char *text, GError **error)
{
  return muster_checkpoint_record_parse (text, strlen (text), error);
}

MUSTER_TEST (CheckpointRecord, what_is_written_is_read)
{
  g_autoptr (MusterCheckpointRecord) record = full_record ();
  g_autoptr (GError) error = NULL;
  MUSTER_ASSERT_TRUE (muster_checkpoint_record_write (NULL, muster_test_tmpdir (), record, &error));
  g_autoptr (MusterCheckpointRecord) read =
      muster_checkpoint_record_read (NULL, muster_test_tmpdir (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autofree char *text = muster_checkpoint_record_print (record);
  g_autofree char *again = muster_checkpoint_record_print (read);
  MUSTER_EXPECT_STREQ (again, text);
  MUSTER_EXPECT_STREQ (read->chief, record->chief);
  MUSTER_EXPECT_EQ (read->last_preserved, record->last_preserved);
  MUSTER_EXPECT_STREQ (read->run, record->run);
  MUSTER_EXPECT_STREQ (read->resumed_run, record->resumed_run);
  MUSTER_EXPECT_EQ (read->resumed_step, 1100);
  MUSTER_EXPECT_STREQ (read->durable_dir, record->durable_dir);
  MUSTER_EXPECT_EQ (memcmp (&read->goodput, &record->goodput, sizeof read->goodput), 0);
  MUSTER_EXPECT_EQ (read->goodput_time, 1600000001.5);
  MUSTER_EXPECT_EQ (read->checkpoints->len, 2);
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (read, "elsewhere/model ckpt;1");
  MUSTER_ASSERT_TRUE (one != NULL);
  MUSTER_EXPECT_STREQ (one->bad, " the tensor 'w' = [1;2]\\ \xc3\xa4 ");
  MUSTER_EXPECT_EQ (one->bytes, G_MAXUINT64);
  MUSTER_EXPECT_EQ (one->deaths, 3);
  MUSTER_EXPECT_STREQ (one->run, record->resumed_run);
  MUSTER_ASSERT_TRUE (one->files->len == 2);
  const MusterSideFile *file = &g_array_index (one->files, MusterSideFile, 0);
  MUSTER_EXPECT_STREQ (file->name, ".index");
  MUSTER_EXPECT_EQ (file->crc32c, 0xe3069283u);
  MUSTER_EXPECT_FALSE (g_array_index (one->files, MusterSideFile, 1).has_crc);
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_find (read, "\xff%2fodd #=[]") != NULL);
}

MUSTER_TEST (CheckpointRecord, what_keeps_checkpoints_is_read)
{
  g_autoptr (MusterCheckpointRecord) record = full_record ();
  g_autofree char *text = muster_checkpoint_record_print (record);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterCheckpointRecord) read = parse (text, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (read, "model ckpt;1");
  MUSTER_EXPECT_TRUE (one->pinned && one->preserved);
  MUSTER_EXPECT_STREQ (one->pinned_for, "the paper's; \xc3\xa4");
  MUSTER_EXPECT_FALSE (muster_side_checkpoint_is_held (one, 1234567891));
  MUSTER_EXPECT_TRUE (muster_side_checkpoint_is_held (one, 1234567890.7));
  MUSTER_EXPECT_EQ (one->holds->len, 2u);
  MUSTER_EXPECT_STREQ (one->preserved_for, "every 6 h");
  MUSTER_EXPECT_EQ (muster_side_checkpoint_metric (one, "eval/top 5;\xc3\xa4"), 0.1);
  MUSTER_EXPECT_EQ (one->metrics->len, 2U);
  MUSTER_EXPECT_TRUE (isnan (muster_side_checkpoint_metric (one, "loss:1")));
  MUSTER_EXPECT_TRUE (isnan (muster_side_checkpoint_metric (one, "loss")));
  const MusterKeepRules *rules = muster_checkpoint_record_rules (read, "latest");
  MUSTER_ASSERT_TRUE (rules != NULL);
  MUSTER_EXPECT_EQ (rules->newest, 3);
  MUSTER_EXPECT_EQ (rules->every_s, 21600.0);
  MUSTER_EXPECT_EQ (rules->every_steps, 1000);
  MUSTER_EXPECT_EQ (rules->best, 2);
  MUSTER_EXPECT_STREQ (rules->metric, "eval/top 5;\xc3\xa4");
  MUSTER_EXPECT_TRUE (rules->least_is_best);
  MUSTER_EXPECT_EQ (muster_checkpoint_record_rules (read, NULL)->newest, 5);
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_rules (read, "another") == NULL);
}

/* An older muster keeps it by the key that it knows. */
MUSTER_TEST (CheckpointRecord, a_pinned_one_is_preserved_for_an_older_muster)
{
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  muster_checkpoint_record_ensure (record, "m-1")->pinned = TRUE;

  g_autofree char *text = muster_checkpoint_record_print (record);
  g_autoptr (MusterCheckpointRecord) read = parse (text, NULL);

  MUSTER_EXPECT_TRUE (strstr (text, "preserved=true\n") != NULL);
  MUSTER_EXPECT_TRUE (strstr (text, "pinned=only\n") != NULL);
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (read, "m-1");
  MUSTER_EXPECT_TRUE (one->pinned);
  MUSTER_EXPECT_FALSE (one->preserved);
}

MUSTER_TEST (CheckpointRecord, absent_is_empty)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_read (NULL, muster_test_tmpdir (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (record->epoch, 0);
  MUSTER_EXPECT_EQ (record->final_step, -1);
  MUSTER_EXPECT_EQ (record->resumed_step, -1);
  MUSTER_EXPECT_EQ (record->checkpoints->len, 0);
}

MUSTER_TEST (CheckpointRecord, every_flipped_bit_and_every_truncation_is_found)
{
  g_autoptr (MusterCheckpointRecord) record = full_record ();
  g_autofree char *text = muster_checkpoint_record_print (record);
  const gsize size = strlen (text);
  for (gsize bit = 0; bit < size * 8; bit++) {
    g_autoptr (GError) error = NULL;
    text[bit / 8] ^= (char)(1 << bit % 8);
    g_autoptr (MusterCheckpointRecord) read = muster_checkpoint_record_parse (text, size, &error);
    text[bit / 8] ^= (char)(1 << bit % 8);
    MUSTER_ASSERT_TRUE (muster_error_is (error, MUSTER_ERROR_DATA_LOSS));
  }
  for (gsize cut = 0; cut < size; cut++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterCheckpointRecord) read = muster_checkpoint_record_parse (text, cut, &error);
    MUSTER_ASSERT_TRUE (muster_error_is (error, MUSTER_ERROR_DATA_LOSS));
  }
}

/* With the right checksum in front, as somebody would write it who means harm. */
static char *
summed (const char *body)
{
  return g_strdup_printf ("# muster %08x\n%s", muster_crc32c_extend (0, body, strlen (body)), body);
}

MUSTER_TEST (CheckpointRecord, what_no_muster_writes_is_damage)
{
  static const char *const bodies[] = {
      "epoch=1\n",
      "[directory]\nepoch=-1\n",
      "[directory]\nepoch=one\n",
      "[directory]\nepoch=99999999999999999999\n",
      "[directory]\nversion=0\n",
      "[directory]\nover=maybe\n",
      "[directory]\nlast-preserved=nan\n",
      "[directory]\nlast-preserved=-1\n",
      "[directory]\nchief=\xff\n",
      "[directory]\nlife=../model\n",
      "[checkpoint 0]\nstep=1\n",
      "[checkpoint 0]\nname=\n",
      "[checkpoint 0]\nname=..\n",
      "[checkpoint 0]\nname=a/b\n",
      "[checkpoint 0]\nname=a%2fb\n",
      "[checkpoint 0]\nname=a%00b\n",
      "[checkpoint 0]\nname=a%\n",
      "[checkpoint 0]\nname=a\n[checkpoint 1]\nname=a\n",
      "[checkpoint 0]\nname=a\nstep=-2\n",
      "[checkpoint 0]\nname=a\nbytes=-1\n",
      "[checkpoint 0]\nname=a\ndeaths=4294967296\n",
      "[checkpoint 0]\nname=a\nfiles=.index\n",
      "[checkpoint 0]\nname=a\nfiles=.index 1 2 3\n",
      "[checkpoint 0]\nname=a\nfiles=.index 1 1ffffffff\n",
      "[checkpoint 0]\nname=a\nfiles=./../b 1\n",
      "[checkpoint 0]\nname=a\nfiles=index 1\n",
      "[checkpoint 0]\nname=a\nfiles=.index 1;\n",
  };
  for (gsize i = 0; i < G_N_ELEMENTS (bodies); i++) {
    g_autoptr (GError) error = NULL;
    g_autofree char *text = summed (bodies[i]);
    g_autoptr (MusterCheckpointRecord) read = parse (text, &error);
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
    MUSTER_EXPECT_NULL (read);
    if (read != NULL)
      MUSTER_FAIL ("%s", bodies[i]);
  }
}

MUSTER_TEST (CheckpointRecord, what_a_newer_muster_adds_is_stepped_over)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = summed ("[directory]\nversion=1\nmood=good\n[moon]\nfull=true\n"
                                  "[checkpoint 3]\nname=a\ncolour=red\n");
  g_autoptr (MusterCheckpointRecord) read = parse (text, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_find (read, "a") != NULL);
}

MUSTER_TEST (CheckpointRecord, that_of_a_newer_version_is_left_alone)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = summed ("[directory]\nversion=2\n");
  put_file (MUSTER_RECORD_FILE, text, strlen (text));
  g_autoptr (MusterCheckpointRecord) read =
      muster_checkpoint_record_read_to_write (NULL, muster_test_tmpdir (), &error);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED);
  MUSTER_EXPECT_NULL (read);
}

MUSTER_TEST (CheckpointRecord, a_damaged_one_is_kept_beside_before_another_is_written)
{
  g_autoptr (GError) damage = NULL, error = NULL;
  put_file (MUSTER_RECORD_FILE, "noise", 5);
  g_autoptr (MusterCheckpointRecord) read =
      muster_checkpoint_record_read (NULL, muster_test_tmpdir (), &damage);
  MUSTER_EXPECT_ERROR (damage, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
  heard_begin (G_LOG_LEVEL_WARNING);
  g_autoptr (MusterCheckpointRecord) anew =
      muster_checkpoint_record_read_to_write (NULL, muster_test_tmpdir (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (heard_count ("quarantine", "*kept as '*checkpoint.muster.bad*"), 1U);
  heard_end ();
  MUSTER_EXPECT_EQ (anew->checkpoints->len, 0);
  g_autofree char *kept = in_tmpdir (MUSTER_RECORD_FILE ".bad");
  g_autoptr (GBytes) bytes = get_file (kept);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes), "noise", 5);
}

/* It may have pinned any: nothing is removed before somebody has looked. */
MUSTER_TEST (CheckpointRecord, the_one_after_a_damaged_one_pins_what_is_there)
{
  g_autoptr (GError) error = NULL;
  put_file ("model.ckpt-7.index", "", 0);
  put_file (MUSTER_RECORD_FILE, "noise", 5);
  heard_begin (G_LOG_LEVEL_WARNING);
  g_autoptr (MusterCheckpointRecord) anew =
      muster_checkpoint_record_read_to_write (NULL, muster_test_tmpdir (), &error);
  heard_end ();
  MUSTER_ASSERT_NO_ERROR (error);

  g_autoptr (MusterCheckpointRecord) read =
      muster_checkpoint_record_read (NULL, muster_test_tmpdir (), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (read, "model.ckpt-7");
  MUSTER_ASSERT_TRUE (one != NULL);
  MUSTER_EXPECT_TRUE (one->pinned && one->pinned_for != NULL);
  MUSTER_EXPECT_EQ (one->step, 7);
}

/* Damages the file at a place in its text, and reads it to write. */
static MusterCheckpointRecord *
after_damage (const char *text, const char *place, gsize cut)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *damaged = g_strdup (text);
  if (place != NULL)
    *strstr (damaged, place) ^= 1;
  put_file ("model ckpt;1.index", "", 0);
  put_file ("model.ckpt-7.index", "", 0);
  put_file (MUSTER_RECORD_FILE, damaged, cut > 0 ? cut : strlen (damaged));
  heard_begin (G_LOG_LEVEL_WARNING);
  MusterCheckpointRecord *record =
      muster_checkpoint_record_read_to_write (NULL, muster_test_tmpdir (), &error);
  heard_end ();
  if (error != NULL)
    MUSTER_FAIL ("%s", error->message);
  return record;
}

MUSTER_TEST (CheckpointRecord, a_flipped_bit_costs_what_is_in_its_group)
{
  g_autoptr (MusterCheckpointRecord) record = full_record ();
  g_autofree char *text = muster_checkpoint_record_print (record);

  g_autoptr (MusterCheckpointRecord) read = after_damage (text, "bytes=18446744073709551615", 0);

  MUSTER_ASSERT_TRUE (read != NULL);
  MUSTER_EXPECT_EQ (read->epoch, 7);
  MUSTER_EXPECT_STREQ (read->chief, record->chief);
  MUSTER_EXPECT_STREQ (read->run, record->run);
  MUSTER_EXPECT_EQ (read->goodput.step, 10);
  MUSTER_EXPECT_EQ (muster_checkpoint_record_rules (read, "latest")->every_steps, 1000);
  const MusterSideCheckpoint *lost = muster_checkpoint_record_find (read, "model ckpt;1");
  MUSTER_ASSERT_TRUE (lost != NULL && lost->pinned);
  MUSTER_EXPECT_EQ (lost->epoch, 0);
}

/* What was cut off may have been the rules that kept the others. */
MUSTER_TEST (CheckpointRecord, where_some_was_cut_off_all_is_pinned_and_the_rest_goes_on)
{
  g_autoptr (MusterCheckpointRecord) record = full_record ();
  MusterSideCheckpoint *known = muster_checkpoint_record_find (record, "model ckpt;1");
  g_clear_pointer (&known->pinned_for, g_free);
  known->pinned = known->pending_delete = FALSE;
  g_autofree char *text = muster_checkpoint_record_print (record);
  const gsize cut = (gsize)(strstr (text, "[checkpoint 1]") - text);

  g_autoptr (MusterCheckpointRecord) read = after_damage (text, NULL, cut);

  MUSTER_ASSERT_TRUE (read != NULL);
  MUSTER_EXPECT_EQ (read->epoch, 7);
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (read, "model ckpt;1");
  MUSTER_EXPECT_TRUE (one->verified && one->preserved && one->pinned);
  MUSTER_EXPECT_EQ (muster_side_checkpoint_metric (one, "eval/top 5;\xc3\xa4"), 0.1);
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_find (read, "model.ckpt-7")->pinned);
  MUSTER_EXPECT_NULL (muster_checkpoint_record_rules (read, "latest"));
}

/* The chief that saved the newest one may be the one that goes on. */
MUSTER_TEST (CheckpointRecord, without_the_directorys_group_the_checkpoints_have_its_epoch)
{
  g_autoptr (MusterCheckpointRecord) record = full_record ();
  g_autofree char *text = muster_checkpoint_record_print (record);

  g_autoptr (MusterCheckpointRecord) read = after_damage (text, "epoch=7", 0);

  MUSTER_ASSERT_TRUE (read != NULL);
  MUSTER_EXPECT_EQ (read->epoch, 5);
  MUSTER_EXPECT_NULL (read->chief);
  MUSTER_EXPECT_STREQ (muster_checkpoint_record_find (read, "model ckpt;1")->pinned_for,
                       "the paper's; \xc3\xa4");
}

/* It has the epoch of the job that it comes from. */
MUSTER_TEST (CheckpointRecord, a_copy_tells_no_epoch)
{
  g_autoptr (MusterCheckpointRecord) record = full_record ();
  MusterSideCheckpoint *one = muster_checkpoint_record_find (record, "model ckpt;1");
  one->copied = TRUE;
  one->epoch = 40;
  g_autofree char *text = muster_checkpoint_record_print (record);

  g_autoptr (MusterCheckpointRecord) whole = after_damage (text, "bytes=18446744073709551615", 0);
  g_autoptr (MusterCheckpointRecord) read = after_damage (text, "epoch=7", 0);

  MUSTER_ASSERT_TRUE (whole != NULL && read != NULL);
  MUSTER_EXPECT_EQ (whole->epoch, 7);
  MUSTER_EXPECT_LT (read->epoch, 7);
}

/* A writer that found none would begin anew, without its pins. */
MUSTER_TEST (CheckpointRecord, a_damaged_one_stays_until_another_is_written)
{
  g_autofree char *path = in_tmpdir (MUSTER_RECORD_FILE);
  gboolean is_replaced = FALSE;
  for (int fail_at = 1; fail_at < 100 && !is_replaced;
       fail_at++) { /* from then on, as in a crash */
    g_autoptr (MusterFaultyStorage) storage = faulty_storage_new (fail_at);
    g_autoptr (GError) error = NULL;
    put_file (MUSTER_RECORD_FILE, "noise", 5);
    heard_begin (G_LOG_LEVEL_WARNING);
    g_autoptr (MusterCheckpointRecord) anew = muster_checkpoint_record_read_to_write (
        MUSTER_STORAGE (storage), muster_test_tmpdir (), &error);
    is_replaced = anew != NULL;
    MUSTER_EXPECT_EQ (heard_count ("quarantine", "*"), is_replaced ? 1U : 0U);
    heard_end ();
    g_autoptr (MusterCheckpointRecord) read =
        muster_checkpoint_record_read (NULL, muster_test_tmpdir (), NULL);
    MUSTER_EXPECT_TRUE (g_file_test (path, G_FILE_TEST_EXISTS));
    MUSTER_EXPECT_TRUE (read != NULL || !is_replaced);
  }
  MUSTER_EXPECT_TRUE (is_replaced);
}

/* One flipped bit costs one group, or two, where it joins them. */
MUSTER_TEST (CheckpointRecord, what_is_salvaged_was_written)
{
  g_autoptr (MusterCheckpointRecord) record = full_record ();
  g_autofree char *text = muster_checkpoint_record_print (record);
  const gsize size = strlen (text);
  for (gsize bit = 0; bit < size * 8; bit++) {
    text[bit / 8] ^= (char)(1 << bit % 8);
    g_autoptr (MusterCheckpointRecord) read = muster_checkpoint_record_salvage (text, size);
    text[bit / 8] ^= (char)(1 << bit % 8);
    MUSTER_ASSERT_TRUE (read->epoch == 7 || (read->epoch == 5 && read->run == NULL));
    MUSTER_ASSERT_TRUE (read->checkpoints->len + read->rules->len >= 2);
  }
}

MUSTER_TEST (CheckpointRecord, a_damaged_one_is_kept_beside_those_before)
{
  static const char *const texts[] = {"first", "second", "third"};
  static const char *const names[] = {MUSTER_RECORD_FILE ".bad", MUSTER_RECORD_FILE ".bad-2",
                                      MUSTER_RECORD_FILE ".bad-3"};
  heard_begin (G_LOG_LEVEL_WARNING);
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++) {
    g_autoptr (GError) error = NULL;
    put_file (MUSTER_RECORD_FILE, texts[i], strlen (texts[i]));
    g_autoptr (MusterCheckpointRecord) anew =
        muster_checkpoint_record_read_to_write (NULL, muster_test_tmpdir (), &error);
    MUSTER_ASSERT_NO_ERROR (error);
  }
  heard_end ();

  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = in_tmpdir (names[i]);
    g_autofree char *text = NULL;
    MUSTER_EXPECT_TRUE (g_file_get_contents (path, &text, NULL, NULL));
    MUSTER_EXPECT_STREQ (text, texts[i]);
  }
}

MUSTER_TEST (CheckpointRecord, entries_are_found_renamed_and_forgotten)
{
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  muster_checkpoint_record_ensure (record, "d/a")->step = 1;
  muster_checkpoint_record_ensure (record, "d/b")->step = 2;
  MUSTER_EXPECT_EQ (muster_checkpoint_record_ensure (record, "a")->step, 1);
  muster_checkpoint_record_rename (record, "a", "b");
  MUSTER_EXPECT_EQ (record->checkpoints->len, 1);
  MUSTER_EXPECT_EQ (muster_checkpoint_record_find (record, "b")->step, 1);
  muster_checkpoint_record_rename (record, "b", "b");
  muster_checkpoint_record_rename (record, "none", "b");
  MUSTER_EXPECT_EQ (muster_checkpoint_record_find (record, "b")->step, 1);
  muster_checkpoint_record_forget (record, "b");
  muster_checkpoint_record_forget (record, "b");
  MUSTER_EXPECT_NULL (muster_checkpoint_record_find (record, "b"));
}

MUSTER_TEST (CheckpointRecord, a_huge_one_is_refused_unread)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = in_tmpdir (MUSTER_RECORD_FILE);
  put_file (MUSTER_RECORD_FILE, "", 0);
  MUSTER_ASSERT_TRUE (truncate (path, (off_t)1 << 40) == 0);
  g_autoptr (MusterCheckpointRecord) read =
      muster_checkpoint_record_read (NULL, muster_test_tmpdir (), &error);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS);
}
