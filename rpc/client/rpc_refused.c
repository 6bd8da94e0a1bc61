// SPDX-License-Identifier: Apache-2.0
/* Calls that a server refuses because others use all of its memory. */
#include "base/log_bounded_private.h"
#include "rpc/client/rpc_call_private.h"

#include <string.h>

#define LONGEST_US     (10 * 60 * MUSTER_SECOND) /* of calls without a deadline */
#define FIRST_PAUSE_US (100 * MUSTER_MILLISECOND)
#define LAST_PAUSE_US  (5 * MUSTER_SECOND)

static void
log_refused (const MusterRpcClient *client, const char *method, const MusterRpcUnary *unary,
             gint64 left_us)
{
  g_autofree char *text = grpc_slice_to_c_string (unary->outcome.text);
  g_autofree char *left = muster_format_duration (left_us);
  muster_log_at_most (1, G_LOG_LEVEL_WARNING, "no-memory", "MUSTER_METHOD", method,
                      "MUSTER_ADDRESS", client->address, "MESSAGE",
                      "'%s' has no memory for %s, others use it; retrying for up to %s: %s",
                      client->address, strrchr (method, '/') + 1, left, text);
}

gboolean
muster_rpc_refused_wait (MusterRpcRefused *self, MusterRpcClient *client, const char *method,
                         const MusterRpcUnary *unary, GCancellable *cancellable)
{
  MusterClock *clock = muster_system_clock ();
  if (unary->outcome.status != GRPC_STATUS_RESOURCE_EXHAUSTED ||
      !muster_grpc_may_retry (&unary->trailing))
    return FALSE;
  const gint64 now_us = muster_clock_now_us (clock);
  if (self->pause_us == 0)
    *self = (MusterRpcRefused){
        MIN (unary->outcome.deadline_us, muster_deadline_after (now_us, LONGEST_US)),
        FIRST_PAUSE_US};
  const gint64 pause_us =
      self->pause_us / 2 + (gint64)(muster_clock_random (clock) * (double)self->pause_us / 2);
  if (pause_us >= self->give_up_us - now_us)
    return FALSE;
  log_refused (client, method, unary, self->give_up_us - now_us);
  self->pause_us = MIN (2 * self->pause_us, LAST_PAUSE_US);
  return muster_clock_wait_until (clock, now_us + pause_us, cancellable, NULL);
}
