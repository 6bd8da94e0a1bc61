// SPDX-License-Identifier: Apache-2.0
/* Reconnects to a server that couldn't be reached. */
#include "rpc/client/rpc_call_private.h"

#include "base/blocking_private.h"
#include "base/wait_private.h"
#include "rpc/fork_private.h"

#include <errno.h>
#include <string.h>

/* Minimum interval between two reconnects caused by failed calls. */
#define LEAST_NUDGE_US (100 * MUSTER_MILLISECOND)
/* How long a channel is polled after it was told to connect: nothing else polls it between two
 * calls, and gRPC's own check is every five seconds. */
#define POLL_US (2 * MUSTER_SECOND)
/* How long connecting and HTTP/2's settings may take once the port accepts connections. */
#define CONNECT_US MUSTER_SECOND
/* How long gRPC waits for a server's settings. */
#define SILENCE_US (20 * MUSTER_SECOND)
/* The cause if nothing was probed yet, and if a server that accepts connections never answers. */
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

/* Continues until the channel is connected or the time is over; holds a reference. */
static void
poll_channel (MusterRpcClient *self)
{
  g_autoptr (MusterRpcChannel) held = muster_rpc_client_hold_channel (self);
  const grpc_connectivity_state state = grpc_channel_check_connectivity_state (held->channel, 1);
  const gint64 at_us = now_us ();
  g_mutex_lock (&self->lock);
  const gint64 until_us = self->polled_until_us;
  self->is_polled =
      state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_SHUTDOWN && at_us < until_us;
  const gboolean goes_on = self->is_polled;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
  if (goes_on)
    grpc_channel_watch_connectivity_state (held->channel, state,
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

void
muster_rpc_client_init_reach (MusterRpcClient *self)
{
  g_cond_init (&self->changed);
  self->polled = (MusterRpcTag){.done = on_polled, .owner = self};
}

/* Makes the channel connect now, not after gRPC's pause, unless that was done since_us ago or less.
 */
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
  g_autoptr (MusterRpcChannel) held = muster_rpc_client_hold_channel (self);
  grpc_channel_reset_connect_backoff (held->channel);
  if (!begins)
    return;
  poll_channel (muster_rpc_client_ref (self));
}

/* Makes the channel connect soon instead of after gRPC's own pause. */
static void
nudge_channel (MusterRpcClient *self)
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
  nudge_channel (self);
}

void
muster_rpc_client_note_answer (MusterRpcClient *self, MusterRpcChannel *channel)
{
  muster_rpc_channel_note_heard (channel);
  if (!g_atomic_int_get (&self->is_down)) /* the common case, without the lock */
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

/* The port accepts connections: waits until the channel is connected too. */
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

/* Takes the prober while it is used: two threads that probe at once have one each. */
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
  if (why != ECONNREFUSED) /* gRPC reports more about other causes */
    return TRUE;
  g_mutex_lock (&self->lock);
  if (!self->is_down)
    set_down (self, TRUE, why);
  g_mutex_unlock (&self->lock);
  return muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "no answer from '%s': %s", self->address,
                      g_strerror (why));
}

/* TRUE if a probe may find out more than gRPC's own attempt. That isn't so if the server accepts
 * connections but doesn't answer: probes would pile up there. */
static gboolean
may_probe (MusterRpcClient *self)
{
  g_mutex_lock (&self->lock);
  const gboolean is_silent = self->is_down && self->down_why == SILENT;
  const gint64 answered_us = self->probe_answered_us;
  g_mutex_unlock (&self->lock);
  return !is_silent || now_us () >= answered_us + SILENCE_US;
}

/* 0 if the server can be called, else an errno; EAGAIN if that is unknown. */
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
      nudge_channel (self); /* gRPC waits longer, and tries every address */
    if (why != 0)
      return why;
  }
  return connect_channel (self, limit_us, cancellable) ? 0 : SILENT;
}

MusterServerState
muster_rpc_client_reach (MusterRpcClient *self, gint64 deadline_us, GCancellable *cancellable)
{
  if (muster_rpc_is_forked ())
    return MUSTER_SERVER_UP; /* the call reports it */
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
