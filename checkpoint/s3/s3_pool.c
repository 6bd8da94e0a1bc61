// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_pool_private.h"

#include "base/error.h"
#include "base/wait_private.h"
#include "checkpoint/s3/s3_metrics_private.h"

typedef struct {
  MusterS3Task run;
  gpointer data;
} Job;

static void
run_job (gpointer data, gpointer unused G_GNUC_UNUSED)
{
  g_autofree Job *job = data;
  job->run (job->data);
}

static gpointer
make_pool (gpointer unused G_GNUC_UNUSED)
{
  return g_thread_pool_new (run_job, NULL, MUSTER_S3_THREADS, FALSE, NULL);
}

void
muster_s3_pool_push (MusterS3Task task, gpointer data)
{
  static GOnce once = G_ONCE_INIT;
  Job *job = g_new (Job, 1);
  *job = (Job){task, data};
  g_thread_pool_push (g_once (&once, make_pool, NULL), job, NULL);
}

static GMutex lock;
static GCond changed;
static gsize n_taken;                                                 /* guarded by lock */
static guint n_sending;                                               /* guarded by lock */
static guint8 *unused[MUSTER_S3_BUFFERS_MAX / MUSTER_S3_BUFFER_SIZE]; /* guarded by lock */
static guint n_unused;                                                /* guarded by lock */

/* With lock held. */
static gboolean
has_space (gpointer data)
{
  const gsize n = *(const gsize *)data;
  return n_taken + n <= MUSTER_S3_BUFFERS_MAX || n_sending == 0;
}

static gboolean
wait_for_space (gsize n, const MusterS3Bound *bound, GError **error)
{
  if (muster_wait_for (&changed, &lock, has_space, &n, bound->deadline_us, bound->cancellable))
    return TRUE;
  if (g_cancellable_set_error_if_cancelled (bound->cancellable, error))
    return FALSE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "the deadline passed while parts before this one were sent");
}

/* With lock held: memory for n bytes that are taken, or NULL. */
static guint8 *
find_memory (gsize n)
{
  if (n == MUSTER_S3_BUFFER_SIZE && n_unused > 0)
    return unused[--n_unused];
  while (n_unused > 0 && n_taken + n_unused * MUSTER_S3_BUFFER_SIZE > MUSTER_S3_BUFFERS_MAX)
    g_free (unused[--n_unused]);
  return g_try_malloc (n);
}

guint8 *
muster_s3_buffers_take (gsize size, const MusterS3Bound *bound, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  if (!wait_for_space (size, bound, error))
    return NULL;
  n_taken += size;
  if (n_taken > muster_s3_counted.buffered_max)
    __atomic_store_n (&muster_s3_counted.buffered_max, n_taken, __ATOMIC_RELAXED);
  guint8 *buffer = find_memory (size);
  if (buffer == NULL) {
    n_taken -= size;
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "no memory for a part of %" G_GSIZE_FORMAT " bytes", size);
  }
  return buffer;
}

void
muster_s3_buffers_give (guint8 *buffer, gsize size)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  if (buffer == NULL)
    return;
  n_taken -= size;
  const gsize n_held = n_taken + (n_unused + 1) * MUSTER_S3_BUFFER_SIZE;
  if (size == MUSTER_S3_BUFFER_SIZE && n_taken > 0 && n_held <= MUSTER_S3_BUFFERS_MAX)
    unused[n_unused++] = buffer;
  else
    g_free (buffer);
  while (n_taken == 0 && n_unused > 0)
    g_free (unused[--n_unused]);
  g_cond_broadcast (&changed);
}

void
muster_s3_buffers_begin_sending (void)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  n_sending++;
}

void
muster_s3_buffers_end_sending (void)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  n_sending--;
  g_cond_broadcast (&changed);
}
