// SPDX-License-Identifier: Apache-2.0
#include "server/core/handler_pool.h"

/* The pool allows at least this many blocked handlers; they may wait for one another. */
#define LEAST_AT_ONCE 4096

struct _MusterHandlerPool {
  gint n_free; /* atomic: how many more may run on the RPC server's thread */
  GThreadPool *pool;
};

typedef struct {
  MusterRpcHandler handler;
  MusterRpcCall *call; /* (not owned) it holds its own reference until it is answered */
  GBytes *request;     /* (owned) */
  gpointer user_data;
} Job;

static void
run_job (gpointer data, gpointer user_data G_GNUC_UNUSED)
{
  Job *job = data;
  job->handler (job->call, job->request, job->user_data);
  g_bytes_unref (job->request);
  g_free (job);
}

MusterHandlerPool *
muster_handler_pool_new (guint n_on_the_spot, guint n_at_once)
{
  MusterHandlerPool *self = g_new0 (MusterHandlerPool, 1);
  self->n_free = (gint)n_on_the_spot;
  gint max_threads = (gint)CLAMP (n_at_once, LEAST_AT_ONCE, G_MAXINT);
  self->pool = g_thread_pool_new (run_job, NULL, max_threads, FALSE, NULL);
  return self;
}

void
muster_handler_pool_free (MusterHandlerPool *self)
{
  if (self == NULL)
    return;
  g_thread_pool_free (self->pool, FALSE, TRUE);
  g_free (self);
}

void
muster_handler_pool_run (MusterHandlerPool *self, MusterRpcHandler handler, MusterRpcCall *call,
                         GBytes *request, gpointer user_data)
{
  if (g_atomic_int_add (&self->n_free, -1) > 0) {
    handler (call, request, user_data);
    g_atomic_int_inc (&self->n_free);
    return;
  }
  g_atomic_int_inc (&self->n_free);
  Job *job = g_new (Job, 1);
  *job = (Job){handler, call, g_bytes_ref (request), user_data};
  /* The push can only fail to start a thread now; the job is queued. */
  (void)g_thread_pool_push (self->pool, job, NULL);
}
