// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_pool.h"

#include "base/error.h"
#include "base/wait.h"
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
static gsize n_taken;   /* guarded by lock */
static guint n_sending; /* guarded by lock */

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

gboolean
muster_s3_buffers_take (gsize n, const MusterS3Bound *bound, GError **error)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  if (!wait_for_space (n, bound, error))
    return FALSE;
  n_taken += n;
  if (n_taken > muster_s3_counted.buffered_max)
    __atomic_store_n (&muster_s3_counted.buffered_max, n_taken, __ATOMIC_RELAXED);
  return TRUE;
}

void
muster_s3_buffers_give (gsize n)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  n_taken -= n;
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
