// SPDX-License-Identifier: Apache-2.0
/* Which gateways a call has passed: one that comes back, or goes through too many, is refused. Each
 * would otherwise call the next without end. Calls on a session need no such check: the session
 * doesn't exist. */
#include "server/gateway/gateway_private.h"

#include "base/clock.h"

#include <string.h>

/* The gateways that a call has passed, in order, with a comma after each. */
#define MOST_GATEWAYS 8

void
muster_gateway_begin_way (MusterGateway *self)
{
  MusterClock *clock =
      muster_system_clock (); /* a fake one's numbers aren't this gateway's alone */
  for (gsize i = 0; i < sizeof self->id - 2; i++)
    self->id[i] = "0123456789abcdef"[(int)(muster_clock_random (clock) * 16)];
  self->id[sizeof self->id - 2] = ',';
}

char *
muster_gateway_way (MusterGateway *self, MusterRpcCall *call, GError **error)
{
  const char *before = muster_rpc_call_header (call, MUSTER_GATEWAY_WAY);
  const char *target = muster_master_target (self->server->master);
  const gsize one = strlen (self->id);
  if (before == NULL)
    return g_strdup (self->id);
  if (strstr (before, self->id) != NULL)
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                 strlen (before) == one
                     ? "the master of this gateway, '%s', is itself; set its --master to another "
                       "server"
                     : "the master of this gateway, '%s', is a gateway that leads back to it; set "
                       "one's --master to another server",
                 target);
  else if (strlen (before) >= MOST_GATEWAYS * one)
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                 "more than %d gateways are in front of '%s'", MOST_GATEWAYS, target);
  else
    return g_strconcat (before, self->id, NULL);
  return NULL;
}
