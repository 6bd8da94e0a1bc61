// SPDX-License-Identifier: Apache-2.0
/* The hooks that tell how training goes. */
#include "base/protowire_private.h"
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"
#include "tests/train/events.h"
#include "tests/train/monitored_fixture.h"
#include "train/hooks/hooks.h"
#include "train/hooks/timeline_private.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <sys/resource.h>

#define SET_UP(f)                                                                                  \
  g_auto (Monitored) f = monitored_set_up ();                                                      \
  g_autoptr (GError) error = NULL;                                                                 \
  g_autoptr (MusterEventWriter) writer =                                                           \
      muster_event_writer_new (muster_test_tmpdir (), MUSTER_CLOCK (f.clock), &error);             \
  MUSTER_ASSERT_NO_ERROR (error);                                                                  \
  monitored_script (&f)

/* A second passes in each run. */
static void
train (Monitored *f, int n)
{
  g_autoptr (GError) error = NULL;
  for (int i = 0; i < n; i++) {
    MUSTER_EXPECT_TRUE (monitored_train (f, NULL, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    muster_fake_clock_pass (f->clock, MUSTER_SECOND);
  }
}

/* What was written, less the version. */
static char *
written (MusterEventWriter *writer)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_event_writer_flush (writer, &error));
  g_autofree char *all = events_read (muster_event_writer_path (writer));
  g_assert_true (g_str_has_prefix (all, "0 version\n"));
  return g_strdup (all + strlen ("0 version\n"));
}

/* From now on no file of this process grows beyond so many bytes, as on a full disk. What fails
 * under a limit is reported after it, since that may write to a file. */
static void
limit_files (rlim_t bytes)
{
  (void)signal (SIGXFSZ, SIG_IGN);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &(struct rlimit){bytes, RLIM_INFINITY}), ==, 0);
}

static rlim_t
size_of (MusterEventWriter *writer)
{
  GStatBuf is;
  g_assert_cmpint (g_stat (muster_event_writer_path (writer), &is), ==, 0);
  return (rlim_t)is.st_size;
}

/* --- step counter --- */

/* MON.79 */
MUSTER_TEST (StepCounter, wants_exactly_one_of_its_numbers)
{
  const gint64 wrong[][2] = {{0, 0}, {1, 1}};
  for (gsize i = 0; i < G_N_ELEMENTS (wrong); i++) {
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NULL (
        muster_step_counter_hook_new (wrong[i][0], wrong[i][1], NULL, NULL, &error));
    MUSTER_EXPECT_STREQ (error->message,
                         "exactly one of every_n_steps and every_n_secs should be provided.");
  }
}

/* MON.79: the first time only sets the base */
MUSTER_TEST (StepCounter, records_every_so_many_steps_from_the_second_time_on)
{
  SET_UP (f);
  monitored_add (&f, muster_step_counter_hook_new (10, 0, writer, MUSTER_CLOCK (f.clock), &error));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  train (&f, 30);

  g_autofree char *events = written (writer);
  MUSTER_EXPECT_STREQ (events, "11 scalar global_step/sec\n21 scalar global_step/sec\n");
}

/* MON.79, DMON.15: without a writer it only logs; a clock that stands still gives no speed */
MUSTER_TEST (StepCounter, does_without_a_writer_and_without_time)
{
  SET_UP (f);
  monitored_add (&f, muster_step_counter_hook_new (1, 0, NULL, MUSTER_CLOCK (f.clock), &error));
  monitored_add (&f, muster_step_counter_hook_new (1, 0, writer, MUSTER_CLOCK (f.clock), &error));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  for (int i = 0; i < 5; i++)
    MUSTER_EXPECT_TRUE (monitored_train (&f, NULL, &error));

  g_autofree char *events = written (writer);
  MUSTER_EXPECT_STREQ (events, "");
}

/* MON.80 */
MUSTER_TEST (StepCounter, warns_once_of_a_step_that_stands_still)
{
  SET_UP (f);
  static const char *const fetches[] = {"loss:0"};
  MusterStep look = {.fetches = fetches, .n_fetches = 1};
  monitored_add (&f, muster_step_counter_hook_new (100, 0, NULL, MUSTER_CLOCK (f.clock), &error));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  heard_begin (G_LOG_LEVEL_WARNING);
  for (int i = 0; i < 39; i++) { /* the 21st look is the 20th that is the same */
    g_autoptr (MusterTensor) value = NULL;
    MUSTER_EXPECT_TRUE (muster_monitored_session_run (f.session, &look, &value, NULL, &error));
  }

  MUSTER_EXPECT_EQ (heard_count ("step", "*global step has not been increased*"), 1U);
  heard_end ();
}

/* --- summaries --- */

static gboolean
yield_summary (MusterFakeMaster *master G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
               MusterTensor **value, gpointer user_data, GError **error G_GNUC_UNUSED)
{
  /* Summary { value { tag: "loss" simple_value: 1 } }, as often as is asked for */
  static const guint8 summary[] = {10, 11, 10, 4, 'l', 'o', 's', 's', 0x15, 0, 0, 0x80, 0x3f};
  int n = *(int *)user_data;
  g_autofree MusterString *strings = g_new0 (MusterString, n);
  gint64 dims[] = {n};

  for (int i = 0; i < n; i++)
    strings[i] = (MusterString){.data = (const char *)summary, .size = sizeof summary};
  *value = muster_tensor_new_strings (1, dims, strings);
  return TRUE;
}

/* MON.82: a START record first; "v" stands for the summary op, as it is in the graph */
MUSTER_TEST (SummarySaver, writes_at_the_first_run_and_then_every_so_often)
{
  SET_UP (f);
  int n_summaries = 1;
  muster_fake_master_op_calls (f.master, "v", yield_summary, &n_summaries);
  monitored_add (
      &f, muster_summary_saver_hook_new ("v:0", 8, 0, writer, MUSTER_CLOCK (f.clock), &error));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  train (&f, 30);

  g_autofree char *events = written (writer);
  MUSTER_EXPECT_STREQ (events,
                       "1 log 1\n1 scalar loss\n9 scalar loss\n17 scalar loss\n25 scalar loss\n");
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "v"), 4u); /* else not fetched */
}

/* MON.82: by time; several at once; the end flushes */
MUSTER_TEST (SummarySaver, writes_all_that_the_op_yields_and_flushes_at_the_end)
{
  SET_UP (f);
  int n_summaries = 2;
  muster_fake_master_op_calls (f.master, "v", yield_summary, &n_summaries);
  monitored_add (&f, muster_summary_saver_hook_new ("v:0", 0, 2 * MUSTER_SECOND, writer,
                                                    MUSTER_CLOCK (f.clock), &error));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  train (&f, 4);
  MUSTER_EXPECT_TRUE (
      muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));

  g_autofree char *events = events_read (muster_event_writer_path (writer));
  MUSTER_EXPECT_STREQ (events, "0 version\n1 log 1\n1 scalar loss\n1 scalar loss\n3 scalar loss\n"
                               "3 scalar loss\n");
}

/* MON.82: no writer, or no summary op anywhere: nothing is fetched */
MUSTER_TEST (SummarySaver, fetches_nothing_that_it_could_not_write)
{
  SET_UP (f);
  int n_summaries = 1;
  muster_fake_master_op_calls (f.master, "v", yield_summary, &n_summaries);
  monitored_add (&f,
                 muster_summary_saver_hook_new ("v:0", 1, 0, NULL, MUSTER_CLOCK (f.clock), &error));
  monitored_add (
      &f, muster_summary_saver_hook_new (NULL, 1, 0, writer, MUSTER_CLOCK (f.clock), &error));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  train (&f, 3);

  g_autofree char *events = written (writer);
  MUSTER_EXPECT_STREQ (events, "");
  MUSTER_EXPECT_EQ (muster_fake_master_n_calls (f.master, "v"), 0u);
}

/* --- profiler --- */

static void
put_node (GByteArray *device, const char *name, const char *label, guint64 start_us,
          guint64 took_us)
{
  g_autoptr (GByteArray) node = g_byte_array_new ();
  muster_proto_put_string (node, 1, name);
  muster_proto_put_uint (node, 2, start_us);
  muster_proto_put_uint (node, 5, took_us);
  muster_proto_put_string (node, 8, label);
  muster_proto_put_uint (node, 10, 7);
  muster_proto_put_bytes (device, 2, node->data, node->len);
}

/* A RunMetadata of one device that ran two nodes. */
static GBytes *
make_metadata (void)
{
  g_autoptr (GByteArray) device = g_byte_array_new ();
  g_autoptr (GByteArray) stats = g_byte_array_new ();
  GByteArray *metadata = g_byte_array_new ();
  muster_proto_put_string (device, 1, "/device:CPU:0");
  put_node (device, "dense/sum", "dense/sum = AddV2(dense/mul, \"b\")", 1000, 12);
  put_node (device, "lo\"ss\001", NULL, 1012, 0);
  muster_proto_put_bytes (stats, 1, device->data, device->len);
  muster_proto_put_bytes (metadata, 1, stats->data, stats->len);
  return g_byte_array_free_to_bytes (metadata);
}

/* MON.87 */
MUSTER_TEST (Timeline, is_chromes_trace)
{
  g_autoptr (GBytes) metadata = make_metadata ();
  g_autoptr (GBytes) nothing = g_bytes_new_static ("", 0);
  g_autoptr (GBytes) cut = g_bytes_new_from_bytes (metadata, 0, g_bytes_get_size (metadata) - 1);
  g_autoptr (GError) error = NULL, failure = NULL;
  g_autofree char *json = muster_timeline_of (metadata, &error);
  g_autofree char *none = muster_timeline_of (nothing, &error);
  g_autofree char *bad = muster_timeline_of (cut, &failure);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (
      json,
      "{\"traceEvents\":[\n"
      "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"/device:CPU:0\"}},\n"
      "{\"ph\":\"X\",\"cat\":\"Op\",\"name\":\"AddV2\",\"pid\":1,\"tid\":7,\"ts\":1000,\"dur\":12,"
      "\"args\":{\"name\":\"dense/sum\"}},\n"
      "{\"ph\":\"X\",\"cat\":\"Op\",\"name\":\"lo\\\"ss\\u0001\",\"pid\":1,\"tid\":7,\"ts\":1012,"
      "\"dur\":0,"
      "\"args\":{\"name\":\"lo\\\"ss\\u0001\"}}\n]}\n");
  MUSTER_EXPECT_NULL (none);
  MUSTER_EXPECT_NULL (bad);
  MUSTER_EXPECT_ERROR (failure, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* Runs in which a full trace was asked for: "2 4". */
static gboolean
note_traced (MusterFakeMaster *master, const MusterStep *step, MusterTensor **value G_GNUC_UNUSED,
             gpointer user_data, GError **error G_GNUC_UNUSED)
{
  static const guint8 full_trace[] = {8, 3};
  g_assert_true (MUSTER_IS_FAKE_MASTER (master));
  if (step->options == NULL)
    return TRUE;
  g_assert_cmpmem (g_bytes_get_data (step->options, NULL), 2, full_trace, 2);
  g_string_append_printf (user_data, "%u ", muster_fake_master_n_calls (master, "train"));
  return TRUE;
}

/* MON.87: not the first run. The fake master traces nothing, which is said once. */
MUSTER_TEST (Profiler, asks_for_a_trace_every_so_often)
{
  SET_UP (f);
  g_autoptr (GString) traced = g_string_new (NULL);
  muster_fake_master_op_calls (f.master, "train", note_traced, traced);
  monitored_add (&f, muster_profiler_hook_new (2, 0, muster_test_tmpdir (), writer,
                                               MUSTER_CLOCK (f.clock), &error));
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  heard_begin (G_LOG_LEVEL_MESSAGE);
  train (&f, 7);

  MUSTER_EXPECT_EQ (heard_count ("profile", "*returned no trace*"), 1U);
  heard_end ();
  MUSTER_EXPECT_STREQ (traced->str, "2 4 6 ");
}

/* --- event files --- */

/* Whatever a writer that died has left, what stands before the cut can be read. */
MUSTER_TEST (EventWriter, leaves_a_file_that_is_readable_up_to_any_truncation)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *contents = NULL;
  gsize size, n_whole = 0;
  g_autofree char *cut = g_build_filename (muster_test_tmpdir (), "cut", NULL);
  g_autoptr (MusterEventWriter) writer =
      muster_event_writer_new (muster_test_tmpdir (), NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  for (int step = 1; step <= 3; step++)
    MUSTER_EXPECT_TRUE (muster_event_writer_add_scalar (writer, "loss", 1, step, &error));
  MUSTER_EXPECT_TRUE (muster_event_writer_flush (writer, &error));
  g_autofree char *all = events_read (muster_event_writer_path (writer));
  MUSTER_ASSERT_TRUE (
      g_file_get_contents (muster_event_writer_path (writer), &contents, &size, &error));

  for (gsize i = 0; i <= size; i++) {
    MUSTER_ASSERT_TRUE (g_file_set_contents (cut, contents, (gssize)i, &error));
    g_autofree char *some = events_read (cut);
    MUSTER_EXPECT_TRUE (g_str_has_prefix (all, some));
    n_whole += strcmp (all, some) == 0;
  }

  MUSTER_EXPECT_STREQ (all, "0 version\n1 scalar loss\n2 scalar loss\n3 scalar loss\n");
  MUSTER_EXPECT_EQ (n_whole, 1u);
}

static gboolean
add_steps (Monitored *f, MusterEventWriter *writer, int first, int last)
{
  gboolean is_well = TRUE;
  for (int step = first; step <= last; step++) {
    muster_fake_clock_pass (f->clock, 121 * MUSTER_SECOND); /* a flush is due */
    is_well = muster_event_writer_add_scalar (writer, "loss", 1, step, NULL) && is_well;
  }
  return is_well;
}

/* The disk is full in the middle of a record. */
MUSTER_TEST (EventWriter, keeps_what_a_full_disk_does_not_take_until_it_can_be_written)
{
  SET_UP (f);
  g_autoptr (GError) full = NULL;
  heard_begin (G_LOG_LEVEL_WARNING);

  limit_files (size_of (writer) + 20);
  const gboolean is_well = add_steps (&f, writer, 1, 4);
  const gboolean is_flushed = muster_event_writer_flush (writer, &full);
  limit_files (RLIM_INFINITY);

  MUSTER_EXPECT_TRUE (is_well);
  MUSTER_EXPECT_FALSE (is_flushed);
  MUSTER_EXPECT_ERROR (full, G_FILE_ERROR, G_FILE_ERROR_FAILED);
  MUSTER_EXPECT_EQ (heard_count ("summary", "*could not write events*"), 1U);
  g_autofree char *events = written (writer);
  MUSTER_EXPECT_STREQ (events, "1 scalar loss\n2 scalar loss\n3 scalar loss\n4 scalar loss\n");
  heard_end ();
}

/* What is dropped is whole records: the one that has begun in the file is completed. */
MUSTER_TEST (EventWriter,
             leaves_a_readable_file_where_a_disk_is_full_for_longer_than_it_keeps_events)
{
  SET_UP (f);
  static const guint8 large[600 * 1024];
  heard_begin (G_LOG_LEVEL_WARNING);

  limit_files (size_of (writer) + 20);
  for (int step = 1; step <= 5; step++)
    (void)muster_event_writer_add_summary (writer, large, sizeof large, step, &error);
  limit_files (RLIM_INFINITY);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (add_steps (&f, writer, 6, 6));

  g_autofree char *events = written (writer);
  MUSTER_EXPECT_STREQ (events, "1 scalar \n5 scalar \n6 scalar loss\n");
  heard_end ();
}

MUSTER_TEST (EventWriter, begins_its_file_as_soon_as_a_full_disk_has_space)
{
  g_auto (Monitored) f = monitored_set_up ();
  g_autoptr (GError) error = NULL;
  heard_begin (G_LOG_LEVEL_WARNING);

  limit_files (0);
  g_autoptr (MusterEventWriter) writer =
      muster_event_writer_new (muster_test_tmpdir (), MUSTER_CLOCK (f.clock), &error);
  limit_files (RLIM_INFINITY);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (add_steps (&f, writer, 1, 1));

  g_autofree char *events = written (writer);
  MUSTER_EXPECT_STREQ (events, "1 scalar loss\n");
  MUSTER_EXPECT_EQ (heard_count ("summary", NULL), 1U);
  heard_end ();
}

MUSTER_TEST (EventWriter, refuses_a_directory_that_can_not_be_one)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *file = g_build_filename (muster_test_tmpdir (), "file", NULL);
  MUSTER_ASSERT_TRUE (g_file_set_contents (file, "", 0, NULL));

  MUSTER_EXPECT_NULL (muster_event_writer_new (file, NULL, &error));

  MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOTDIR);
}

/* Neither a step nor the end fails for want of an event. */
MUSTER_TEST (EventWriter, ends_no_training_where_the_disk_is_full)
{
  SET_UP (f);
  int n_summaries = 1;
  muster_fake_master_op_calls (f.master, "v", yield_summary, &n_summaries);
  monitored_add (
      &f, muster_summary_saver_hook_new ("v:0", 1, 0, writer, MUSTER_CLOCK (f.clock), &error));
  monitored_add (&f, muster_step_counter_hook_new (1, 0, writer, MUSTER_CLOCK (f.clock), &error));
  heard_begin (G_LOG_LEVEL_WARNING);
  MUSTER_ASSERT_TRUE (monitored_open (&f, &error));

  limit_files (size_of (writer));
  for (int i = 0; i < 3 && error == NULL; i++) {
    (void)monitored_train (&f, NULL, &error);
    muster_fake_clock_pass (f.clock, 121 * MUSTER_SECOND);
  }
  (void)(error == NULL &&
         muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));
  limit_files (RLIM_INFINITY);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (heard_count ("summary", "*could not write events*"), 1U);
  heard_end ();
}

/* --- the end of a chief --- */

typedef struct {
  Monitored *f;
  int n_left;
} Others;

/* Workers make a step in each half second, and then no more. */
static void
others_train (gpointer user_data)
{
  Others *others = user_data;
  others->f->step++;
  if (--others->n_left > 0)
    muster_fake_clock_at (others->f->clock,
                          muster_fake_clock_elapsed_us (others->f->clock) + MUSTER_SECOND / 2,
                          others_train, others);
}

/* DMON.14 */
MUSTER_TEST (FinishBarrier, waits_until_the_step_stands_still)
{
  const gint64 timeouts_us[] = {60 * MUSTER_SECOND, 3 * MUSTER_SECOND};
  for (gsize i = 0; i < G_N_ELEMENTS (timeouts_us); i++) {
    SET_UP (f);
    Others others = {&f, 20};
    f.keeps_step = TRUE;
    monitored_add (&f, muster_finish_barrier_hook_new (2 * MUSTER_SECOND, timeouts_us[i],
                                                       MUSTER_CLOCK (f.clock)));
    MUSTER_ASSERT_TRUE (monitored_open (&f, &error));
    muster_fake_clock_at (f.clock, MUSTER_SECOND / 2, others_train, &others);

    MUSTER_EXPECT_TRUE (
        muster_monitored_session_finish (f.session, NULL, MUSTER_WAIT_FOREVER, &error));

    gint64 waited_us = muster_fake_clock_elapsed_us (f.clock);
    MUSTER_EXPECT_EQ (others.n_left, i == 0 ? 0 : 14);
    MUSTER_EXPECT_LE (waited_us, (i == 0 ? 13 : 3) * MUSTER_SECOND);
    others.n_left = 1; /* what is still due finds f alive no more */
    muster_fake_clock_pass (f.clock, MUSTER_SECOND);
  }
}
