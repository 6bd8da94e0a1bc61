// SPDX-License-Identifier: Apache-2.0
#include "tests/server/served.h"

#include "engine/session/local_master.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/ready_op.h"
#include "rpc/messages/run_step_private.h"
#include "rpc/proto/master.pb-c.h"

Served
served_start (void)
{
  return served_start_with (NULL, NULL);
}

Served
served_start_over (MusterMaster *master)
{
  return served_start_with (master, NULL);
}

static Served
start (const char *listens_at, MusterMaster *master, const MusterServerOptions *options)
{
  g_autoptr (GError) error = NULL;
  Served self = {.local = master != NULL ? g_object_ref (master) : muster_local_master_new ()};
  self.server = muster_server_new (self.local, options);
  int port = muster_server_listen (self.server, listens_at, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (self.server);
  g_autofree char *address = g_strdup_printf ("127.0.0.1:%d", port);
  self.remote = muster_remote_master_new (address, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  self.bare = muster_rpc_client_new (address, NULL);
  return self;
}

Served
served_start_with (MusterMaster *master, const MusterServerOptions *options)
{
  return start ("127.0.0.1:0", master, options);
}

Served
served_start_at (const char *address)
{
  return start (address, NULL, NULL);
}

void
served_clear (Served *self)
{
  g_clear_object (&self->remote);
  g_clear_pointer (&self->bare, muster_rpc_client_unref);
  g_clear_pointer (&self->server, muster_server_free);
  g_clear_object (&self->local);
}

MusterGraph *
served_graph (char **ready_op)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) one = muster_tensor_new_float (1);
  g_autoptr (MusterTensor) two = muster_tensor_new_float (2);
  muster_graph_builder_placeholder (b, "x", MUSTER_FLOAT, 0, NULL);
  muster_graph_builder_constant (b, "two", two);
  muster_graph_builder_node (b, "AddV2", "sum");
  muster_graph_builder_input (b, "x");
  muster_graph_builder_input (b, "two");
  muster_graph_builder_attr_type (b, "T", MUSTER_FLOAT);
  muster_graph_builder_variable (b, "v", one);
  muster_graph_builder_variable (b, "w", two);
  muster_graph_builder_group (b, "init", (const char *const[]){"v/Assign", "w/Assign", NULL});
  muster_graph_builder_group (b, "init_v", (const char *const[]){"v/Assign", NULL});
  g_autoptr (MusterGraph) plain = muster_graph_builder_end (b, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (plain == NULL)
    return NULL;
  g_autoptr (MusterMetaGraph) meta_graph = muster_meta_graph_new_for_graph (plain);
  g_autofree char *op = NULL;
  MusterGraph *graph = muster_graph_with_ready_op (meta_graph, FALSE, &op, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  if (ready_op != NULL)
    *ready_op = g_steal_pointer (&op);
  return graph;
}

MusterSession *
served_session (Served *self, char **ready_op)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterGraph) graph = served_graph (ready_op);
  if (graph == NULL)
    return NULL;
  MusterSession *session =
      muster_master_create_session (self->remote, graph, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return session;
}

MusterTensor *
served_fetch (MusterSession *session, const char *fetch, float x, GCancellable *cancellable,
              GError **error)
{
  g_autoptr (MusterTensor) fed = muster_tensor_new_float (x);
  const MusterFeed feed = {"x:0", fed};
  MusterTensor *fetched = NULL;
  MusterStep step = {
      .feeds = &feed,
      .n_feeds = 1,
      .fetches = &fetch,
      .n_fetches = 1,
      .deadline_us = test_deadline (),
  };
  return muster_session_run (session, &step, &fetched, NULL, cancellable, error) ? fetched : NULL;
}

gboolean
served_run (MusterSession *session, const char *op, GError **error)
{
  return muster_session_run_op (session, op, test_deadline (), NULL, error);
}

static gpointer
get_stuck (gpointer data)
{
  ServedStuck *self = data;
  g_autoptr (MusterTensor) got =
      served_fetch (self->session, "stuck:0", 0, self->cancellable, &self->error);
  return NULL;
}

void
served_stuck_start (ServedStuck *self, MusterSession *session, GCancellable *cancellable)
{
  *self = (ServedStuck){.session = session, .cancellable = cancellable};
  self->thread = g_thread_new ("stuck", get_stuck, self);
}

GError *
served_stuck_join (ServedStuck *self)
{
  g_thread_join (self->thread);
  return self->error;
}

MusterWatch *
served_watch_ready (MusterSession *session, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  const MusterWatchFor what = {.ready_op = ready_op};
  MusterWatch *watch = muster_session_watch (session, &what, test_deadline (), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return watch;
}

MusterLease *
served_claim (MusterSession *session, const char *ready_op)
{
  g_autoptr (GError) error = NULL;
  const MusterClaim claim = {.model = "digits", .task = "worker:0", .ready_op = ready_op};
  MusterLease *lease = muster_session_claim (session, &claim, NULL, test_deadline (), NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return lease;
}

GBytes *
served_call (Served *self, const char *name, GBytes *message, GError **error)
{
  g_autofree char *method = g_strconcat ("/tensorflow.MasterService/", name, NULL);
  MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_rope_append (&request, message);
  return muster_rpc_client_call (self->bare, method, &request, &options, NULL, error);
}

GBytes *
served_ask (Served *self, const char *method, const ProtobufCMessage *message, const char *lease,
            GError **error)
{
  const MusterRpcHeader header = {"muster-lease", lease};
  MusterRpcOptions options = {
      .deadline_us = test_deadline (),
      .headers = &header,
      .n_headers = lease != NULL,
  };
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) packed = muster_pack (message);
  muster_rope_append (&request, packed);
  return muster_rpc_client_call (self->bare, method, &request, &options, NULL, error);
}

/* The answer to a call, in arena, or NULL with an error. */
static gpointer
ask_for (Served *self, const char *method, const ProtobufCMessage *message, const char *lease,
         const ProtobufCMessageDescriptor *wanted, MusterArena *arena, GError **error)
{
  g_autoptr (GBytes) answer = served_ask (self, method, message, lease, error);
  if (answer == NULL)
    return NULL;
  return muster_unpack (wanted, g_bytes_get_data (answer, NULL), g_bytes_get_size (answer), arena,
                        wanted->short_name, error);
}

Muster__StatusResponse *
served_status (Served *self, MusterArena *arena)
{
  g_autoptr (GError) error = NULL;
  Muster__StatusRequest request = MUSTER__STATUS_REQUEST__INIT;
  Muster__StatusResponse *status = ask_for (self, "/muster.Readiness/Status", &request.base, NULL,
                                            &muster__status_response__descriptor, arena, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return status;
}

Muster__Limit *
served_limit (Muster__StatusResponse *status, const char *name)
{
  for (gsize i = 0; status != NULL && i < status->n_limits; i++)
    if (strcmp (status->limits[i]->name, name) == 0)
      return status->limits[i];
  MUSTER_FAIL ("there is no limit '%s'", name);
  return NULL;
}

char *
served_bare_session (Served *self, const char *lease, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Tensorflow__CreateSessionRequest request = TENSORFLOW__CREATE_SESSION_REQUEST__INIT;
  const Tensorflow__CreateSessionResponse *made =
      ask_for (self, "/tensorflow.MasterService/CreateSession", &request.base, lease,
               &tensorflow__create_session_response__descriptor, arena, error);
  return made != NULL ? g_strdup (made->session_handle) : NULL;
}

gboolean
served_bare_step (Served *self, const char *handle, const char *target, GError **error)
{
  const MusterStepRequest step = {.session_handle = handle,
                                  .step = {.targets = &target, .n_targets = 1}};
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  muster_step_request_encode_run (&step, &request, NULL);
  g_autoptr (GBytes) answer = muster_rpc_client_call (
      self->bare, "/tensorflow.MasterService/RunStep", &request, &options, NULL, error);
  return answer != NULL;
}

char *
served_renew (Served *self, const char *handle)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterArena) arena = muster_arena_new ();
  Muster__RenewRequest request = MUSTER__RENEW_REQUEST__INIT;
  request.session_handle = (char **)&handle;
  request.n_session_handle = 1;
  const Muster__RenewResponse *renewed =
      ask_for (self, "/muster.Readiness/Renew", &request.base, NULL,
               &muster__renew_response__descriptor, arena, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return renewed != NULL && renewed->n_gone > 0 ? g_strdup (renewed->gone[0]) : NULL;
}
