// SPDX-License-Identifier: Apache-2.0
/* How a client finds a server again that it couldn't reach. */
#include "rpc/client/rpc_client_private.h"

#include "base/blocking.h"
#include "base/wait.h"

#include <errno.h>
#include <string.h>

/* Calls that fail have the channel connect at once no more often than this. */
#define LEAST_NUDGE_US (100 * MUSTER_MILLISECOND)
/* So long a channel that was told to connect is polled: nobody does so between two calls, and
 * gRPC's own look comes every five seconds. */
#define POLL_US (2 * MUSTER_SECOND)
/* How long connecting and HTTP/2's settings may take once somebody is known to listen. */
#define CONNECT_US MUSTER_SECOND
/* So long gRPC waits for the settings of one who listens. */
#define SILENCE_US (20 * MUSTER_SECOND)
/* Why it is down where nobody has probed yet, and where who listens never says a word. */
#define UNKNOWN (-1)
#define SILENT  (-2)

static void
set_down (MusterRpcClient *self, gboolean is_down, int why)
{
  g_atomic_int_set (&self->is_down, is_down);
  self->down_why = why;
}

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

/* Goes on until the channel is connected or its time is over; holds a reference meanwhile. */
static void
poll_channel (MusterRpcClient *self)
{
  const grpc_connectivity_state state = grpc_channel_check_connectivity_state (self->channel, 1);
  const gint64 at_us = now_us ();
  g_mutex_lock (&self->lock);
  const gint64 until_us = self->polled_until_us;
  self->is_polled =
      state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_SHUTDOWN && at_us < until_us;
  const gboolean goes_on = self->is_polled;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  if (goes_on)
    grpc_channel_watch_connectivity_state (self->channel, state,
                                           muster_grpc_deadline (until_us, at_us),
                                           muster_rpc_client_pump (self), &self->polled);
  else
    muster_rpc_client_unref (self);
}

static void
on_polled (gpointer owner, gboolean ok G_GNUC_UNUSED)
{
  poll_channel (owner);
}

/* Has the channel connect now, not when gRPC's pause is over; unless it was told so since_us ago or
 * less. */
static void
nudge (MusterRpcClient *self, gint64 since_us)
{
  const gint64 at_us = now_us ();
  g_mutex_lock (&self->lock);
  const gboolean is_due = at_us >= self->nudged_us + since_us;
  const gboolean begins = is_due && !self->is_polled;
  if (is_due) {
    self->nudged_us = at_us;
    self->polled_until_us = at_us + POLL_US;
    self->is_polled = TRUE;
  }
  g_mutex_unlock (&self->lock);
  if (!is_due)
    return;
  grpc_channel_reset_connect_backoff (muster_rpc_client_channel (self));
  if (!begins)
    return;
  self->polled = (MusterRpcTag){on_polled, self};
  poll_channel (muster_rpc_client_ref (self));
}

void
muster_rpc_client_nudge (MusterRpcClient *self)
{
  nudge (self, LEAST_NUDGE_US);
}

void
muster_rpc_client_note_unreachable (MusterRpcClient *self)
{
  g_mutex_lock (&self->lock);
  if (!self->is_down)
    set_down (self, TRUE, UNKNOWN);
  g_mutex_unlock (&self->lock);
  muster_rpc_client_nudge (self);
}

void
muster_rpc_client_note_answer (MusterRpcClient *self)
{
  if (!g_atomic_int_get (&self->is_down)) /* as a rule: no lock */
    return;
  g_mutex_lock (&self->lock);
  set_down (self, FALSE, 0);
  g_mutex_unlock (&self->lock);
}

/* Call with the lock held. */
static gboolean
is_not_polled (gpointer data)
{
  const MusterRpcClient *self = data;
  return !self->is_polled;
}

/* Somebody listens: waits until the channel has found out, too. */
static gboolean
connect_channel (MusterRpcClient *self, gint64 deadline_us, GCancellable *cancellable)
{
  nudge (self, 0);
  g_mutex_lock (&self->lock);
  (void)muster_wait_for (&self->changed, &self->lock, is_not_polled, self, deadline_us,
                         cancellable);
  g_mutex_unlock (&self->lock);
  return muster_rpc_client_is_connected (self);
}

/* Takes the prober out while it is used: two threads that probe at once have one each. */
static int
probe (MusterRpcClient *self, gint64 deadline_us, GCancellable *cancellable)
{
  g_mutex_lock (&self->lock);
  MusterReachProber prober = self->prober;
  self->prober = (MusterReachProber){0};
  g_mutex_unlock (&self->lock);
  if (prober.host == NULL)
    muster_reach_prober_init (&prober, self->address);
  int why = muster_reach_probe (&prober, deadline_us, cancellable);
  g_mutex_lock (&self->lock);
  MusterReachProber other = self->prober;
  self->prober = prober;
  if (why == 0)
    self->probe_answered_us = now_us ();
  g_mutex_unlock (&self->lock);
  muster_reach_prober_clear (&other);
  return why;
}

gboolean
muster_rpc_client_probe_first (MusterRpcClient *self, const MusterRpcOptions *options,
                               GCancellable *cancellable, GError **error)
{
  if (options->wait_for_ready || muster_rpc_client_has_channel (self))
    return TRUE;
  muster_about_to_block ();
  const int why = probe (self, MIN (options->deadline_us, now_us () + CONNECT_US), cancellable);
  if (why != ECONNREFUSED) /* of all else gRPC finds out more */
    return TRUE;
  g_mutex_lock (&self->lock);
  if (!self->is_down)
    set_down (self, TRUE, why);
  g_mutex_unlock (&self->lock);
  return muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "no answer from '%s': %s", self->address,
                      g_strerror (why));
}

/* Whether a probe may find out more than gRPC's own try, which is under way at one who listens and
 * says nothing: what probes leave behind would pile up there. */
static gboolean
may_probe (MusterRpcClient *self)
{
  g_mutex_lock (&self->lock);
  const gboolean is_silent = self->is_down && self->down_why == SILENT;
  const gint64 answered_us = self->probe_answered_us;
  g_mutex_unlock (&self->lock);
  return !is_silent || now_us () >= answered_us + SILENCE_US;
}

/* 0 where the server can be called, else why not; EAGAIN where that couldn't be found out. */
static int
look (MusterRpcClient *self, gint64 deadline_us, GCancellable *cancellable)
{
  const gint64 limit_us = MIN (deadline_us, now_us () + CONNECT_US);
  if (muster_rpc_client_is_connected (self))
    return 0;
  muster_about_to_block ();
  if (may_probe (self)) {
    int why = probe (self, limit_us, cancellable);
    if (why == EAGAIN || why == ETIMEDOUT)
      muster_rpc_client_nudge (self); /* gRPC has more patience, and tries every address */
    if (why != 0)
      return why;
  }
  return connect_channel (self, limit_us, cancellable) ? 0 : SILENT;
}

MusterServerState
muster_rpc_client_reach (MusterRpcClient *self, gint64 deadline_us, GCancellable *cancellable)
{
  const int why = look (self, deadline_us, cancellable);
  if (g_cancellable_is_cancelled (cancellable))
    return MUSTER_SERVER_DOWN;
  if (why == EAGAIN)
    return MUSTER_SERVER_UP;
  g_mutex_lock (&self->lock);
  const gboolean was_down = self->is_down;
  const int before = self->down_why;
  set_down (self, why != 0, why);
  g_mutex_unlock (&self->lock);
  if (why == 0)
    return was_down ? MUSTER_SERVER_CHANGED : MUSTER_SERVER_UP;
  return was_down && before != UNKNOWN && before != why ? MUSTER_SERVER_CHANGED
                                                        : MUSTER_SERVER_DOWN;
}
