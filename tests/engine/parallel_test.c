// SPDX-License-Identifier: Apache-2.0
#include "engine/run/parallel.h"

#include "engine/run/denormals.h"
#include "tests/gtest_shim.h"

#include <math.h>

enum { N = 100003, SIZE = 1000, N_CALLERS = 4, N_ROUNDS = 50 };

static void
count (gint64 begin, gint64 end, gpointer data)
{
  gint *counts = data;
  for (gint64 i = begin; i < end; i++)
    counts[i]++;
}

static void
expect_each_once (const gint *counts, gint64 n)
{
  gint64 n_wrong = 0;
  for (gint64 i = 0; i < n; i++)
    n_wrong += counts[i] != 1;
  MUSTER_EXPECT_EQ (n_wrong, 0);
}

MUSTER_TEST (Parallel, handles_each_element_once)
{
  static const gint64 sizes[] = {1, 2, SIZE, SIZE + 1, N};
  for (int threads = -1; threads < 4; threads++)
    for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++) {
      g_autofree gint *counts = g_new0 (gint, N);
      muster_parallel_limit (threads);
      muster_parallel_for (N, sizes[i], count, counts);
      expect_each_once (counts, N);
    }
  muster_parallel_for (0, SIZE, count, NULL);
  muster_parallel_limit (-1);
}

/* Each piece waits until all of them have begun, which one thread alone would do without end. */
typedef struct {
  GMutex lock;
  GCond has_begun;
  gint n_begun, n_wanted;
} Meeting;

static void
meet (gint64 begin G_GNUC_UNUSED, gint64 end G_GNUC_UNUSED, gpointer data)
{
  Meeting *self = data;
  const gint64 deadline_us = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;
  gboolean is_late = FALSE;
  g_mutex_lock (&self->lock);
  self->n_begun++;
  g_cond_broadcast (&self->has_begun);
  while (self->n_begun < self->n_wanted && !is_late)
    is_late = !g_cond_wait_until (&self->has_begun, &self->lock, deadline_us);
  g_mutex_unlock (&self->lock);
  MUSTER_EXPECT_FALSE (is_late);
}

MUSTER_TEST (Parallel, runs_pieces_at_the_same_time)
{
  Meeting meeting = {.n_wanted = 4};
  muster_parallel_limit (3);
  muster_parallel_for (4, 1, meet, &meeting);
  muster_parallel_limit (-1);
}

/* What each of the threads makes of a denormal number. */
typedef struct {
  Meeting meeting;
  gboolean are_flushed[4];
} Division;

static void
divide (gint64 begin, gint64 end, gpointer data)
{
  volatile const float tiny = 1e-40F;
  Division *self = data;
  meet (begin, end, &self->meeting);
  self->are_flushed[begin] = isnan (tiny / tiny);
}

MUSTER_TEST (Parallel, flushes_denormals_in_its_threads)
{
  Division division = {.meeting = {.n_wanted = 4}};
  const guint64 mode = muster_flush_denormals ();
  muster_parallel_limit (3);
  muster_parallel_for (4, 1, divide, &division);
  muster_parallel_limit (-1);
  muster_restore_denormals (mode);
  for (int i = 0; i < 4; i++)
    MUSTER_EXPECT_TRUE (division.are_flushed[i]);
}

static void
nest (gint64 begin, gint64 end, gpointer data)
{
  gint *counts = data;
  for (gint64 i = begin; i < end; i++)
    muster_parallel_for (10, 1, count, counts + 10 * i);
}

MUSTER_TEST (Parallel, runs_a_loop_within_a_piece_alone)
{
  g_autofree gint *counts = g_new0 (gint, 1000);
  muster_parallel_limit (3);
  muster_parallel_for (100, 1, nest, counts);
  muster_parallel_limit (-1);
  expect_each_once (counts, 1000);
}

static gpointer
call_often (gpointer unused G_GNUC_UNUSED)
{
  for (int i = 0; i < N_ROUNDS; i++) {
    g_autofree gint *counts = g_new0 (gint, N);
    muster_parallel_enter ();
    muster_parallel_for (N, SIZE, count, counts);
    muster_parallel_leave ();
    expect_each_once (counts, N);
  }
  return NULL;
}

MUSTER_TEST (Parallel, serves_many_callers)
{
  GThread *threads[N_CALLERS];
  muster_parallel_limit (2);
  for (int i = 0; i < N_CALLERS; i++)
    threads[i] = g_thread_new ("caller", call_often, NULL);
  for (int i = 0; i < N_CALLERS; i++)
    g_thread_join (threads[i]);
  muster_parallel_limit (-1);
}

static void
note_thread (gint64 begin, gint64 end G_GNUC_UNUSED, gpointer data)
{
  GThread **threads = data;
  threads[begin] = g_thread_self ();
}

MUSTER_TEST (Parallel, leaves_the_processors_to_other_callers)
{
  GThread *threads[64] = {NULL};
  for (guint i = 0; i < g_get_num_processors (); i++)
    muster_parallel_enter ();
  muster_parallel_for (64, 1, note_thread, threads);
  for (guint i = 0; i < g_get_num_processors (); i++)
    muster_parallel_leave ();
  for (int i = 0; i < 64; i++)
    MUSTER_EXPECT_TRUE (threads[i] == g_thread_self ());
}
