// SPDX-License-Identifier: Apache-2.0
/* Runs the pieces of a loop on idle processors. The caller's thread takes pieces, too, so that a
 * loop doesn't depend on other threads. */
#include "engine/run/parallel.h"

#include "engine/run/denormals.h"

#define MAX_THREADS 63

/* A loop, on its caller's stack. */
typedef struct {
  MusterPiece piece;
  gpointer data;
  gint64 n, size, n_pieces;
  gint64 next;     /* atomic: the next piece to take */
  guint n_wanted;  /* threads that may still join; with the lock */
  guint n_helpers; /* that are in it; with the lock */
} Loop;

static GMutex lock;
static GCond has_work;              /* a loop wants threads */
static GCond has_left;              /* a thread has left a loop */
static GQueue loops = G_QUEUE_INIT; /* (element-type Loop) that want threads */
static guint n_threads;             /* of the pool */
static guint n_idle;                /* of them */
static gint n_running;              /* atomic: callers that need a processor */
static gint limit = -1;             /* atomic */
static GPrivate is_in_piece;

static void
run_alone (gint64 n, gint64 size, MusterPiece piece, gpointer data)
{
  for (gint64 begin = 0; begin < n; begin += size)
    piece (begin, MIN (begin + size, n), data);
}

static void
run_pieces (Loop *self)
{
  for (;;) {
    const gint64 i = __atomic_fetch_add (&self->next, 1, __ATOMIC_RELAXED);
    if (i >= self->n_pieces)
      return;
    const gint64 begin = i * self->size;
    self->piece (begin, MIN (begin + self->size, self->n), self->data);
  }
}

static gpointer
help (gpointer unused G_GNUC_UNUSED)
{
  g_private_set (&is_in_piece, GINT_TO_POINTER (TRUE));
  (void)muster_flush_denormals ();
  g_mutex_lock (&lock);
  for (;;) {
    Loop *loop = g_queue_peek_head (&loops);
    if (loop == NULL) {
      n_idle++;
      g_cond_wait (&has_work, &lock);
      n_idle--;
      continue;
    }
    loop->n_helpers++;
    if (--loop->n_wanted == 0)
      g_queue_remove (&loops, loop);
    g_mutex_unlock (&lock);
    run_pieces (loop);
    g_mutex_lock (&lock);
    if (--loop->n_helpers == 0)
      g_cond_broadcast (&has_left);
  }
  return NULL;
}

static guint
n_processors (void)
{
  static guint n; /* atomic: asking is a system call */
  guint known = __atomic_load_n (&n, __ATOMIC_RELAXED);
  if (known == 0) {
    known = g_get_num_processors ();
    __atomic_store_n (&n, known, __ATOMIC_RELAXED);
  }
  return known;
}

/* The threads that may join a loop of n pieces. */
static guint
n_free (gint64 n_pieces)
{
  const gint most = g_atomic_int_get (&limit);
  const guint n_callers = (guint)MAX (g_atomic_int_get (&n_running), 1);
  gint64 n = MIN (n_processors () > n_callers ? n_processors () - n_callers : 0, MAX_THREADS);
  if (most >= 0)
    n = most; /* a test's, with more threads than processors too */
  return (guint)MIN (n, n_pieces - 1);
}

/* Call with the lock held. */
static void
offer (Loop *self)
{
  while (n_threads < self->n_wanted) {
    g_autoptr (GThread) thread = g_thread_try_new ("parallel", help, NULL, NULL);
    if (thread == NULL)
      break; /* the caller does it */
    n_threads++;
  }
  g_queue_push_tail (&loops, self);
  for (guint i = 0; i < MIN (self->n_wanted, n_idle); i++)
    g_cond_signal (&has_work);
}

/* Ends the loop: no thread may join any more, and those that did are waited for. */
static void
end_loop (Loop *self)
{
  g_mutex_lock (&lock);
  g_queue_remove (&loops, self);
  while (self->n_helpers > 0)
    g_cond_wait (&has_left, &lock);
  g_mutex_unlock (&lock);
}

void
muster_parallel_for (gint64 n, gint64 size, MusterPiece piece, gpointer data)
{
  const guint n_wanted =
      n > size && g_private_get (&is_in_piece) == NULL ? n_free ((n - 1) / size + 1) : 0;
  if (n_wanted == 0) {
    run_alone (n, size, piece, data);
    return;
  }
  Loop self = {.piece = piece,
               .data = data,
               .n = n,
               .size = size,
               .n_pieces = (n - 1) / size + 1,
               .n_wanted = n_wanted};
  g_mutex_lock (&lock);
  offer (&self);
  g_mutex_unlock (&lock);
  g_private_set (&is_in_piece, GINT_TO_POINTER (TRUE));
  run_pieces (&self);
  g_private_set (&is_in_piece, NULL);
  end_loop (&self);
}

void
muster_parallel_enter (void)
{
  g_atomic_int_inc (&n_running);
}

void
muster_parallel_leave (void)
{
  (void)g_atomic_int_add (&n_running, -1);
}

void
muster_parallel_limit (int n)
{
  g_atomic_int_set (&limit, n);
}
