// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/checkpoint_mark_private.h"

#include "base/error.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/store/directory_lock_private.h"
#include "tests/checkpoint/bundle_fixture.h"
#include "tests/doubles/object_storage.h"

#include <math.h>
#include <string.h>

#define FOREVER MUSTER_WAIT_FOREVER

static void
put_index (const char *name)
{
  g_autofree char *file = g_strconcat (name, ".index", NULL);
  put_file (file, file, strlen (file));
}

/* m-1 to m-3, listed; the record knows the first two. */
static void
put_directory (void)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  g_autoptr (MusterCheckpointRecord) record = muster_checkpoint_record_new ();
  for (guint i = 1; i <= 3; i++) {
    g_autofree char *name = g_strdup_printf ("m-%u", i), *prefix = in_tmpdir (name);
    put_index (name);
    muster_checkpoint_state_add (state, prefix, 100.0 * i);
    if (i < 3)
      muster_side_checkpoint_add_file (muster_checkpoint_record_ensure (record, name), ".index", 1,
                                       NULL);
  }
  muster_checkpoint_state_write (NULL, muster_test_tmpdir (), state, NULL);
  muster_checkpoint_record_write (NULL, muster_test_tmpdir (), record, NULL);
}

static MusterCheckpointRecord *
read_record (void)
{
  return muster_checkpoint_record_read (NULL, muster_test_tmpdir (), NULL);
}

/* "1 3", with the times of those. */
static void
expect_listed (const char *expected)
{
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read (NULL, muster_test_tmpdir (), NULL);
  g_autoptr (GString) listed = g_string_new (NULL);
  MUSTER_ASSERT_TRUE (state->timestamps->len == state->all->len);
  for (guint i = 0; i < state->all->len; i++) {
    const char *prefix = state->all->pdata[i];
    g_string_append_printf (listed, "%s%c", i > 0 ? " " : "", prefix[strlen (prefix) - 1]);
    MUSTER_EXPECT_EQ (g_array_index (state->timestamps, double, i),
                      100.0 * (prefix[strlen (prefix) - 1] - '0'));
  }
  MUSTER_EXPECT_STREQ (listed->str, expected);
}

MUSTER_TEST (CheckpointMark, a_pin_takes_it_from_the_list)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  g_autoptr (GError) error = NULL;
  put_directory ();

  MUSTER_EXPECT_TRUE (muster_checkpoint_pin (NULL, prefix, "the paper's", FOREVER, NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  expect_listed ("2 3");
  g_autoptr (MusterCheckpointRecord) record = read_record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (record, "m-1");
  MUSTER_EXPECT_TRUE (one->pinned);
  MUSTER_EXPECT_FALSE (one->preserved);
  MUSTER_EXPECT_STREQ (one->pinned_for, "the paper's");
}

/* A state file without its latest is none. */
MUSTER_TEST (CheckpointMark, the_latest_stays_in_the_list)
{
  g_autofree char *prefix = in_tmpdir ("m-3");
  put_directory ();

  MUSTER_EXPECT_TRUE (muster_checkpoint_pin (NULL, prefix, NULL, FOREVER, NULL, NULL));

  expect_listed ("1 2 3");
  g_autoptr (MusterCheckpointRecord) record = read_record ();
  const MusterSideCheckpoint *three = muster_checkpoint_record_find (record, "m-3");
  MUSTER_EXPECT_TRUE (three->pinned);
  MUSTER_EXPECT_EQ (three->step, 3);
  MUSTER_EXPECT_EQ (three->files->len, 0u); /* no muster saved it */
}

MUSTER_TEST (CheckpointMark, a_pin_may_get_another_reason)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  put_directory ();

  muster_checkpoint_pin (NULL, prefix, "one", FOREVER, NULL, NULL);
  muster_checkpoint_pin (NULL, prefix, "", FOREVER, NULL, NULL);

  g_autoptr (MusterCheckpointRecord) record = read_record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (record, "m-1");
  MUSTER_EXPECT_TRUE (one->pinned);
  MUSTER_EXPECT_NULL (one->pinned_for);
}

MUSTER_TEST (CheckpointMark, unpinned_is_what_it_was)
{
  g_autofree char *known = in_tmpdir ("m-1"), *unknown = in_tmpdir ("m-3");
  g_autoptr (GError) error = NULL;
  put_directory ();
  muster_checkpoint_pin (NULL, known, "why", FOREVER, NULL, NULL);
  muster_checkpoint_pin (NULL, unknown, "why", FOREVER, NULL, NULL);

  MUSTER_EXPECT_TRUE (muster_checkpoint_unpin (NULL, known, FOREVER, NULL, &error));
  MUSTER_EXPECT_TRUE (muster_checkpoint_unpin (NULL, unknown, FOREVER, NULL, &error));

  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterCheckpointRecord) record = read_record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (record, "m-1");
  MUSTER_EXPECT_FALSE (one->pinned || one->preserved);
  MUSTER_EXPECT_NULL (one->pinned_for);
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_find (record, "m-3") == NULL);
}

MUSTER_TEST (CheckpointMark, unpinned_is_preserved_if_a_rule_has_done_that)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  put_directory ();
  g_autoptr (MusterCheckpointRecord) before = read_record ();
  muster_checkpoint_record_find (before, "m-1")->preserved = TRUE;
  muster_checkpoint_record_write (NULL, muster_test_tmpdir (), before, NULL);

  muster_checkpoint_pin (NULL, prefix, NULL, FOREVER, NULL, NULL);
  muster_checkpoint_unpin (NULL, prefix, FOREVER, NULL, NULL);

  g_autoptr (MusterCheckpointRecord) record = read_record ();
  MUSTER_EXPECT_TRUE (muster_checkpoint_record_find (record, "m-1")->preserved);
}

MUSTER_TEST (CheckpointMark, a_value_is_added_or_replaced)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  g_autoptr (GError) error = NULL;
  put_directory ();

  muster_checkpoint_set_metric (NULL, prefix, "loss:0", 2, FOREVER, NULL, &error);
  muster_checkpoint_set_metric (NULL, prefix, "eval/top", 0.97, FOREVER, NULL, &error);
  muster_checkpoint_set_metric (NULL, prefix, "loss", NAN, FOREVER, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (MusterCheckpointRecord) record = read_record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (record, "m-1");
  MUSTER_EXPECT_EQ (one->metrics->len, 2u);
  MUSTER_EXPECT_EQ (muster_side_checkpoint_metric (one, "eval/top"), 0.97);
  MUSTER_EXPECT_TRUE (isnan (muster_side_checkpoint_metric (one, "loss")));
}

MUSTER_TEST (CheckpointMark, there_is_a_limit_of_values)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  put_directory ();
  g_autoptr (MusterCheckpointRecord) before = read_record ();
  for (guint i = 0; i < MUSTER_MOST_METRICS; i++) {
    g_autofree char *name = g_strdup_printf ("m%u", i);
    muster_side_checkpoint_set_metric (muster_checkpoint_record_find (before, "m-1"), name, i);
  }
  muster_checkpoint_record_write (NULL, muster_test_tmpdir (), before, NULL);
  g_autoptr (GError) error = NULL;

  MUSTER_EXPECT_TRUE (muster_checkpoint_set_metric (NULL, prefix, "m0", 7, FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (
      muster_checkpoint_set_metric (NULL, prefix, "another", 7, FOREVER, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}

typedef gboolean (*Marking) (const char *prefix, gint64 deadline_us, GError **error);

static gboolean
by_pin (const char *prefix, gint64 deadline_us, GError **error)
{
  return muster_checkpoint_pin (NULL, prefix, NULL, deadline_us, NULL, error);
}

static gboolean
by_unpin (const char *prefix, gint64 deadline_us, GError **error)
{
  return muster_checkpoint_unpin (NULL, prefix, deadline_us, NULL, error);
}

static gboolean
by_metric (const char *prefix, gint64 deadline_us, GError **error)
{
  return muster_checkpoint_set_metric (NULL, prefix, "loss", 1, deadline_us, NULL, error);
}

static const Marking markings[] = {by_pin, by_unpin, by_metric};

static void
expect_refused (const char *prefix, gint64 deadline_us, MusterError code, const char *text)
{
  for (gsize i = 0; i < G_N_ELEMENTS (markings); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (markings[i](prefix, deadline_us, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);
    MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, text) != NULL);
  }
}

MUSTER_TEST (CheckpointMark, needs_a_checkpoint)
{
  g_autofree char *missing = in_tmpdir ("m-4"), *nowhere = in_tmpdir ("nowhere/m-1"),
                  *directory = in_tmpdir ("nowhere");
  put_directory ();

  expect_refused (missing, FOREVER, MUSTER_ERROR_NOT_FOUND, "m-4.index' doesn't exist");
  expect_refused (nowhere, FOREVER, MUSTER_ERROR_NOT_FOUND, "m-1.index' doesn't exist");

  MUSTER_EXPECT_FALSE (g_file_test (directory, G_FILE_TEST_EXISTS));
}

MUSTER_TEST (CheckpointMark, leaves_what_is_being_removed)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  put_directory ();
  g_autoptr (MusterCheckpointRecord) record = read_record ();
  muster_checkpoint_record_find (record, "m-1")->pending_delete = TRUE;
  muster_checkpoint_record_write (NULL, muster_test_tmpdir (), record, NULL);

  expect_refused (prefix, FOREVER, MUSTER_ERROR_FAILED_PRECONDITION, "is being removed");
}

MUSTER_TEST (CheckpointMark, there_is_no_pin_to_take_back)
{
  g_autofree char *prefix = in_tmpdir ("m-1"), *unknown = in_tmpdir ("m-3");
  put_directory ();
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (by_unpin (i == 0 ? prefix : unknown, FOREVER, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  }
}

MUSTER_TEST (CheckpointMark, waits_for_the_directorys_lock)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  put_directory ();
  g_autoptr (MusterDirectoryLock) lock = muster_directory_lock (
      muster_local_storage (), muster_test_tmpdir (), FOREVER, NULL, NULL, NULL);
  MUSTER_ASSERT_TRUE (lock != NULL);

  expect_refused (prefix, 0, MUSTER_ERROR_DEADLINE_EXCEEDED, muster_test_tmpdir ());
}

MUSTER_TEST (CheckpointMark, refuses_a_name_that_cannot_be)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  static const char *const names[] = {"", ":0", "a\tb", "\xff"};
  put_directory ();
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_FALSE (
        muster_checkpoint_set_metric (NULL, prefix, names[i], 1, FOREVER, NULL, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

/* A store that is away says nothing of what is there. */
MUSTER_TEST (CheckpointMark, an_outage_is_not_a_missing_checkpoint)
{
  static const char prefix[] = "s3://bucket/run/m-1";
  gboolean is_pinned = FALSE;
  for (guint n = 1; !is_pinned && n < 20; n++) {
    g_autoptr (MusterObjectStorage) store = object_storage_new ();
    g_autofree char *index = g_strconcat (prefix, ".index", NULL);
    g_autoptr (GError) error = NULL;
    MUSTER_ASSERT_TRUE (muster_storage_publish (MUSTER_STORAGE (store), index, "", 0, NULL));
    object_storage_miss_at (store, n);
    is_pinned = muster_checkpoint_pin (MUSTER_STORAGE (store), prefix, NULL, FOREVER, NULL, &error);
    MUSTER_EXPECT_TRUE (is_pinned ||
                        g_error_matches (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE));
  }
  MUSTER_EXPECT_TRUE (is_pinned);
}

/* --- an evaluator's --- */

static double
hold (const char *prefix, double before)
{
  g_autoptr (GError) error = NULL;
  double hold = before;
  MUSTER_EXPECT_TRUE (
      muster_checkpoint_hold (NULL, prefix, 3600 * MUSTER_SECOND, &hold, FOREVER, NULL, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return hold;
}

static void
end_hold (const char *prefix, double hold)
{
  const MusterEvaluationMarks marks = {.hold = hold};
  g_autoptr (GError) error = NULL;
  (void)muster_checkpoint_set_evaluated (NULL, prefix, &marks, FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

static guint
n_holds (const char *prefix)
{
  g_autoptr (MusterCheckpointRecord) record = read_record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (record, prefix);
  return one != NULL ? one->holds->len : 0;
}

MUSTER_TEST (CheckpointMark, an_evaluator_ends_its_own_hold_only)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  put_directory ();
  const double first = hold (prefix, 0), second = hold (prefix, 0);
  MUSTER_EXPECT_EQ (n_holds (prefix), 2u);
  end_hold (prefix, second);
  MUSTER_EXPECT_EQ (n_holds (prefix), 1u);
  end_hold (prefix, second);
  MUSTER_EXPECT_EQ (n_holds (prefix), 1u);
  end_hold (prefix, first);
  MUSTER_EXPECT_EQ (n_holds (prefix), 0u);
}

MUSTER_TEST (CheckpointMark, a_hold_that_is_renewed_takes_the_place_of_the_one_before)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  put_directory ();
  const double first = hold (prefix, 0), second = hold (prefix, first);
  MUSTER_EXPECT_GT (second, first);
  MUSTER_EXPECT_EQ (n_holds (prefix), 1u);
  end_hold (prefix, second);
  MUSTER_EXPECT_EQ (n_holds (prefix), 0u);
}

MUSTER_TEST (CheckpointMark, the_values_of_one_that_was_replaced_are_refused)
{
  g_autofree char *prefix = in_tmpdir ("m-1");
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (double));
  const char *const names[] = {"eval/accuracy", NULL};
  const double value = 0.5;
  g_autoptr (GError) error = NULL;
  put_directory ();
  g_array_append_val (values, value);
  const MusterEvaluationMarks marks = {.names = names, .values = values, .mtime_us = 1};
  MUSTER_EXPECT_FALSE (
      muster_checkpoint_set_evaluated (NULL, prefix, &marks, FOREVER, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_FAILED_PRECONDITION);
  g_autoptr (MusterCheckpointRecord) record = read_record ();
  const MusterSideCheckpoint *one = muster_checkpoint_record_find (record, "m-1");
  MUSTER_EXPECT_EQ (one->metrics->len, 0u);
}
