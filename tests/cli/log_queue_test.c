// SPDX-License-Identifier: Apache-2.0
#include "cli/output/log_queue.h"

#include "base/clock.h"
#include "base/log_private.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

#include <string.h>

#define MAX_BYTES 4096

/* A writer that may be stuck. */
typedef struct {
  MusterLogQueue *queue; /* (owned) */
  GMutex lock;
  GCond changed;
  gboolean is_stuck; /* guarded by lock, as what follows */
  guint n_begun;
  GString *written; /* (owned) the messages, and the counts of dropped ones */
} Fixture;

static void
write_slowly (const MusterLogMessage *message, gpointer data)
{
  Fixture *f = data;
  g_autofree char *text = muster_log_message_find (message, "MESSAGE");
  g_autofree char *count = muster_log_message_find (message, "MUSTER_COUNT");
  g_mutex_lock (&f->lock);
  f->n_begun++;
  g_cond_broadcast (&f->changed);
  while (f->is_stuck)
    g_cond_wait (&f->changed, &f->lock);
  if (count != NULL)
    g_string_append_printf (f->written, "dropped %s;", count);
  else
    g_string_append_printf (f->written, "%s;", text);
  g_mutex_unlock (&f->lock);
}

static void
fixture_start (Fixture *f)
{
  g_mutex_init (&f->lock);
  g_cond_init (&f->changed);
  f->written = g_string_new (NULL);
  f->queue = muster_log_queue_new (MAX_BYTES, write_slowly, f);
}

static void
set_stuck (Fixture *f, gboolean is_stuck)
{
  g_mutex_lock (&f->lock);
  f->is_stuck = is_stuck;
  g_cond_broadcast (&f->changed);
  g_mutex_unlock (&f->lock);
}

/* The queue frees what it has written before. */
static void
fixture_clear (Fixture *f)
{
  set_stuck (f, FALSE);
  muster_log_queue_free (f->queue);
  g_string_free (f->written, TRUE);
  g_cond_clear (&f->changed);
  g_mutex_clear (&f->lock);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

static void
add (Fixture *f, const char *text)
{
  const GLogField fields[] = {{"MUSTER_EVENT", "test", -1}, {"MESSAGE", text, -1}};
  muster_log_queue_add (f->queue, &(MusterLogMessage){G_LOG_LEVEL_INFO, 0, fields, 2});
}

/* Adds one whose write begins and is stuck. */
static void
add_stuck (Fixture *f, const char *text)
{
  set_stuck (f, TRUE);
  const gint64 until_us = test_deadline ();
  add (f, text);
  g_mutex_lock (&f->lock);
  while (f->n_begun == 0)
    MUSTER_ASSERT_TRUE (g_cond_wait_until (&f->changed, &f->lock, until_us));
  g_mutex_unlock (&f->lock);
}

static void
expect_written (Fixture *f, const char *wanted)
{
  MUSTER_EXPECT_TRUE (muster_log_queue_flush (f->queue, test_deadline ()));
  MUSTER_EXPECT_STREQ (f->written->str, wanted);
}

MUSTER_TEST (LogQueue, writes_all_in_order)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  g_autoptr (GString) wanted = g_string_new (NULL);
  for (int i = 0; i < 20; i++) {
    g_autofree char *text = g_strdup_printf ("%d", i);
    add (&f, text);
    g_string_append_printf (wanted, "%d;", i);
  }
  expect_written (&f, wanted->str);
}

MUSTER_TEST (LogQueue, does_not_make_wait_who_logs_while_a_write_is_stuck)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  add_stuck (&f, "first");
  add (&f, "second");
  MUSTER_EXPECT_FALSE (muster_log_queue_flush (f.queue, test_deadline_in (MUSTER_MILLISECOND)));
  MUSTER_EXPECT_STREQ (f.written->str, "");

  set_stuck (&f, FALSE);

  expect_written (&f, "first;second;");
}

MUSTER_TEST (LogQueue, reports_how_many_did_not_fit_where_they_are_missing)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  g_autofree char *half = g_strnfill (MAX_BYTES / 2, 'x');
  add_stuck (&f, "first");
  add (&f, half);
  add (&f, half);
  add (&f, "small, but after one that is missing");
  set_stuck (&f, FALSE);
  MUSTER_EXPECT_TRUE (muster_log_queue_flush (f.queue, test_deadline ()));
  add (&f, "last");

  g_autofree char *wanted = g_strdup_printf ("first;%s;dropped 2;last;", half);
  expect_written (&f, wanted);
}

MUSTER_TEST (LogQueue, drops_what_never_fits)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  g_autofree char *huge = g_strnfill (MAX_BYTES, 'x');
  add (&f, huge);
  expect_written (&f, "dropped 1;");
}

MUSTER_TEST (LogQueue, writes_the_rest_when_it_is_freed)
{
  g_auto (Fixture) f = {0};
  fixture_start (&f);
  add_stuck (&f, "first");
  add (&f, "second");
  set_stuck (&f, FALSE);
  g_clear_pointer (&f.queue, muster_log_queue_free);
  MUSTER_EXPECT_STREQ (f.written->str, "first;second;");
}

MUSTER_TEST (LogQueue, keeps_fields_of_any_kind)
{
  const char bytes[] = {'a', 'b', 'c'};
  const GLogField fields[] = {{"MESSAGE", bytes, 2}, {"NOTHING", NULL, -1}, {"EMPTY", "", -1}};
  const MusterLogMessage message = {G_LOG_LEVEL_DEBUG, 42, fields, G_N_ELEMENTS (fields)};
  gsize size;
  g_autofree MusterLogMessage *copy = muster_log_message_copy (&message, &size);
  g_autofree char *text = muster_log_message_find (copy, "MESSAGE");
  g_autofree char *nothing = muster_log_message_find (copy, "NOTHING");
  g_autofree char *empty = muster_log_message_find (copy, "EMPTY");

  MUSTER_EXPECT_STREQ (text, "ab");
  MUSTER_EXPECT_NULL (nothing);
  MUSTER_EXPECT_STREQ (empty, "");
  MUSTER_EXPECT_EQ (copy->level, G_LOG_LEVEL_DEBUG);
  MUSTER_EXPECT_EQ (copy->wall_us, 42);
  MUSTER_EXPECT_GE (size, sizeof *copy + sizeof fields + 2);
}
