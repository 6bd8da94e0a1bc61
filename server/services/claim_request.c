// SPDX-License-Identifier: Apache-2.0
#include "server/services/claim_request.h"

#include "graph/graph_builder.h"
#include "server/core/server_private.h"

#include <string.h>

/* A server that has just started doesn't know the chiefs that claimed from it before. Each tries
 * again after at most this, or a third of its lease (master/remote/lease_terms.c) … */
#define RETURN_US (2 * MUSTER_SECOND)
/* … and the claims of others are looked at so often until then. */
#define LOOK_US (50 * MUSTER_MILLISECOND)
/* The time that a chief that ends has before a claim that spares the living is refused. */
#define LEAVING_US (2 * MUSTER_SECOND)

gboolean
muster_server_is_proof (const char *shown, const char *known)
{
  const gsize size = strlen (known);
  guint difference = 0;
  if (size == 0 || strlen (shown) != size)
    return FALSE;
  for (gsize i = 0; i < size; i++)
    difference |= (guint)(shown[i] ^ known[i]);
  return difference == 0;
}

/* The graph that stands for another one, which the server doesn't have: equal if that is.
 * (transfer full) NULL without an error if that is unknown. */
static MusterGraph *
graph_of_digest (const ProtobufCBinaryData *sha256, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new ();
  g_autoptr (GString) text = g_string_new (NULL);
  if (sha256->len == 0)
    return NULL;
  if (sha256->len != MUSTER_DIGEST_BYTES) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "the SHA-256 of the chief's graph has %" G_GSIZE_FORMAT " bytes in place of %d",
                 sha256->len, MUSTER_DIGEST_BYTES);
    return NULL;
  }
  for (gsize i = 0; i < sha256->len; i++)
    g_string_append_printf (text, "%02x", sha256->data[i]);
  muster_graph_builder_node (builder, "NoOp", "graph");
  muster_graph_builder_attr_string (builder, "sha256", text->str);
  return muster_graph_builder_end (builder, error);
}

MusterGraph *
muster_server_claimants_graph (MusterServer *server, const Muster__ClaimRequest *request,
                               GError **error)
{
  if (*request->session_handle == '\0')
    return graph_of_digest (&request->graph_sha256, error);
  g_autoptr (MusterServed) served =
      muster_sessions_find (server->sessions, request->session_handle, error);
  MusterGraph *graph = served != NULL ? muster_session_graph (served->session) : NULL;
  return graph != NULL ? muster_graph_ref (graph) : NULL;
}

typedef gboolean (*WaitsFor) (const MusterAnnouncement *chief, const char *who);

/* Looks at the model's chief (nullable) until it is what the claimant waits for, or the time has
 * come. */
static void
wait_for_chief (MusterServer *server, MusterRpcCall *call, const Muster__ClaimRequest *request,
                WaitsFor is_it, gint64 until_us)
{
  for (gint64 now_us = muster_clock_now_us (server->clock); now_us < until_us;
       now_us = muster_clock_now_us (server->clock)) {
    g_autoptr (MusterAnnouncement) chief =
        muster_chief_registry_find (server->registry, request->model);
    if (is_it (chief, request->who) ||
        !muster_clock_wait_until (server->clock, MIN (now_us + LOOK_US, until_us),
                                  muster_rpc_call_stop_cancellable (call), NULL))
      return;
  }
}

static gboolean
is_known (const MusterAnnouncement *chief, const char *who G_GNUC_UNUSED)
{
  return chief != NULL;
}

static gboolean
is_free (const MusterAnnouncement *chief, const char *who)
{
  return chief == NULL || !chief->alive || chief->phase == MUSTER_CHIEF_OVER ||
         g_strcmp0 (chief->who, who) == 0;
}

void
muster_server_wait_for_return (MusterServer *server, MusterRpcCall *call,
                               const Muster__ClaimRequest *request)
{
  const gint64 third_us = muster_chief_registry_lease_us (server->registry) / 3;
  const gint64 pause_us = MIN (RETURN_US, third_us);
  const gint64 until_us = server->started_us + pause_us + pause_us / 2;
  const gboolean takes_all = request->take_over && !request->spares_living;
  if (*request->session_handle != '\0' || request->again || takes_all)
    return;
  wait_for_chief (server, call, request, is_known, until_us);
}

void
muster_server_wait_for_end (MusterServer *server, MusterRpcCall *call,
                            const Muster__ClaimRequest *request)
{
  if (request->take_over && request->spares_living && request->epoch == 0)
    wait_for_chief (server, call, request, is_free,
                    muster_deadline_after (muster_clock_now_us (server->clock), LEAVING_US));
}
