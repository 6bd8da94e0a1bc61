// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include "base/blocking_private.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/server/rpc_server_private.h"

static const char *const methods[] = {
    "CreateSession", "ExtendSession", "PartialRunSetup", "RunStep",     "CloseSession",
    "ListDevices",   "Reset",         "MakeCallable",    "RunCallable", "ReleaseCallable",
};

typedef struct {
  BenchRelay *relay; /* (not owned) */
  char *path;        /* (owned) */
  gint64 n_calls;    /* atomic */
} Method;

struct _BenchRelay {
  MusterRpcClient *client; /* (owned) */
  MusterRpcServer *server; /* (owned) */
  Method methods[G_N_ELEMENTS (methods)];
  char *address; /* (owned) */
};

static void
pass_on (MusterRpcCall *call, GBytes *request, gpointer data)
{
  Method *method = data;
  g_autoptr (GError) error = NULL;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  MusterRpcOptions options = {.deadline_us = muster_rpc_call_deadline_us (call)};
  __atomic_fetch_add (&method->n_calls, 1, __ATOMIC_RELAXED);
  muster_about_to_block ();
  muster_rope_append (&rope, request);
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (method->relay->client, method->path, &rope, &options,
                              muster_rpc_call_cancellable (call), &error);
  if (answer == NULL) {
    muster_rpc_call_finish (call, error);
    return;
  }
  g_auto (MusterRope) reply = MUSTER_ROPE_INIT;
  muster_rope_append (&reply, answer);
  muster_rpc_call_reply (call, &reply);
}

BenchRelay *
bench_relay_new (const char *address)
{
  g_autoptr (GError) error = NULL;
  BenchRelay *self = g_new0 (BenchRelay, 1);
  self->client = muster_rpc_client_new (address, NULL);
  self->server = muster_rpc_server_new ();
  for (gsize i = 0; i < G_N_ELEMENTS (methods); i++) {
    self->methods[i].relay = self;
    self->methods[i].path = g_strconcat ("/tensorflow.MasterService/", methods[i], NULL);
    muster_rpc_server_add_method (self->server, self->methods[i].path, pass_on, &self->methods[i]);
  }
  int port = muster_rpc_server_listen (self->server, "127.0.0.1:0", NULL, &error);
  bench_check (error, "relaying");
  self->address = g_strdup_printf ("127.0.0.1:%d", port);
  muster_rpc_server_start (self->server);
  return self;
}

const char *
bench_relay_address (BenchRelay *self)
{
  return self->address;
}

gint64
bench_relay_n_steps (BenchRelay *self)
{
  gint64 n = 0;
  for (gsize i = 0; i < G_N_ELEMENTS (methods); i++)
    if (g_str_equal (methods[i], "RunStep") || g_str_equal (methods[i], "RunCallable"))
      n += __atomic_load_n (&self->methods[i].n_calls, __ATOMIC_RELAXED);
  return n;
}

void
bench_relay_free (BenchRelay *self)
{
  if (self == NULL)
    return;
  muster_rpc_server_free (self->server);
  muster_rpc_client_unref (self->client);
  for (gsize i = 0; i < G_N_ELEMENTS (methods); i++)
    g_free (self->methods[i].path);
  g_free (self->address);
  g_free (self);
}
