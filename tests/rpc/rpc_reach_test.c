// SPDX-License-Identifier: Apache-2.0
#include "rpc/address_private.h"
#include "rpc/client/reach_probe_private.h"
#include "rpc/client/rpc_call_private.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/echo.h"

#include <errno.h>
#include <string.h>

static GSocket *
bind_socket (int port)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GInetAddress) loopback = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  g_autoptr (GSocketAddress) address = g_inet_socket_address_new (loopback, (guint16)port);
  GSocket *socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error);
  MUSTER_EXPECT_TRUE (g_socket_bind (socket, address, TRUE, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return socket;
}

static int
port_of (GSocket *socket)
{
  g_autoptr (GSocketAddress) bound = g_socket_get_local_address (socket, NULL);
  return g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound));
}

/* A client of a server that isn't there yet; its first call has failed. */
typedef struct {
  int port;
  char *address;
  MusterRpcClient *client;
  MusterRpcServer *server; /* (nullable) */
} Waiting;

static int
call (Waiting *self)
{
  g_autoptr (GError) error = NULL;
  MusterRpcOptions options = echo_options ();
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (self->client, "/test.Echo/Echo", NULL, &options, NULL, &error);
  return error != NULL && error->domain == MUSTER_ERROR ? error->code : -1;
}

static void
waiting_start (Waiting *self, const char *host)
{
  g_autoptr (GSocket) socket = bind_socket (0);
  self->port = port_of (socket);
  g_clear_object (&socket);
  self->address = muster_address_format (host, (guint16)self->port);
  self->client = muster_rpc_client_new (self->address, NULL);
  MUSTER_EXPECT_EQ (call (self), (int)MUSTER_ERROR_UNAVAILABLE);
}

static void
on_echo (MusterRpcCall *call, GBytes *request, gpointer data G_GNUC_UNUSED)
{
  g_auto (MusterRope) reply = MUSTER_ROPE_INIT;
  muster_rope_append (&reply, request);
  muster_rpc_call_reply (call, &reply);
}

/* FALSE if somebody took the port. */
static gboolean
waiting_serve (Waiting *self)
{
  g_autofree char *address = muster_address_format ("127.0.0.1", (guint16)self->port);
  self->server = muster_rpc_server_new ();
  if (muster_rpc_server_listen (self->server, address, NULL, NULL) == 0)
    return FALSE;
  muster_rpc_server_add_method (self->server, "/test.Echo/Answer", on_echo, self);
  muster_rpc_server_start (self->server);
  return TRUE;
}

static void
waiting_clear (Waiting *self)
{
  g_free (self->address);
  g_clear_pointer (&self->client, muster_rpc_client_unref);
  g_clear_pointer (&self->server, muster_rpc_server_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Waiting, waiting_clear)

static void
expect_server_state (Waiting *self, MusterServerState state)
{
  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (self->client, test_deadline (), NULL),
                    (int)state);
}

MUSTER_TEST (RpcReach, says_once_that_the_server_is_there)
{
  const char *const hosts[] = {"127.0.0.1", "localhost"};
  for (gsize i = 0; i < G_N_ELEMENTS (hosts); i++) {
    g_auto (Waiting) f = {0};
    MUSTER_TRACE ("%s", hosts[i]);
    waiting_start (&f, hosts[i]);
    expect_server_state (&f, MUSTER_SERVER_DOWN);
    expect_server_state (&f, MUSTER_SERVER_DOWN);
    if (!waiting_serve (&f))
      MUSTER_SKIP ("somebody took the port");

    expect_server_state (&f, MUSTER_SERVER_CHANGED);

    MUSTER_EXPECT_EQ (call (&f), (int)MUSTER_ERROR_UNIMPLEMENTED); /* it answers at once */
    expect_server_state (&f, MUSTER_SERVER_UP);
  }
}

/* gRPC in a process wakes it some five times a second. */
MUSTER_TEST (RpcReach, makes_no_channel_before_somebody_listens)
{
  g_auto (Waiting) f = {0};
  waiting_start (&f, "127.0.0.1");
  expect_server_state (&f, MUSTER_SERVER_DOWN);
  MUSTER_EXPECT_EQ (call (&f), (int)MUSTER_ERROR_UNAVAILABLE);
  expect_server_state (&f, MUSTER_SERVER_DOWN);

  MUSTER_EXPECT_TRUE (!muster_rpc_client_has_channel (f.client));

  if (!waiting_serve (&f))
    MUSTER_SKIP ("somebody took the port");
  expect_server_state (&f, MUSTER_SERVER_CHANGED);
  MUSTER_EXPECT_TRUE (muster_rpc_client_has_channel (f.client));
}

MUSTER_TEST (RpcReach, says_that_nobody_listens_as_the_first_call_finds)
{
  g_auto (Waiting) f = {0};
  g_autoptr (GError) error = NULL;
  MusterRpcOptions options = echo_options ();
  waiting_start (&f, "127.0.0.1");
  g_autofree char *expected =
      g_strdup_printf ("no answer from '%s': %s", f.address, g_strerror (ECONNREFUSED));

  g_autoptr (GBytes) answer =
      muster_rpc_client_call (f.client, "/test.Echo/Echo", NULL, &options, NULL, &error);

  MUSTER_EXPECT_TRUE (answer == NULL && error != NULL);
  MUSTER_EXPECT_STREQ (error->message, expected);
}

/* Between the call that failed and the first look. */
MUSTER_TEST (RpcReach, notices_a_server_that_came_before_anybody_connected)
{
  g_auto (Waiting) f = {0};
  waiting_start (&f, "127.0.0.1");
  if (!waiting_serve (&f))
    MUSTER_SKIP ("somebody took the port");

  expect_server_state (&f, MUSTER_SERVER_CHANGED);

  MUSTER_EXPECT_EQ (call (&f), (int)MUSTER_ERROR_UNIMPLEMENTED);
}

MUSTER_TEST (RpcReach, has_no_news_of_a_server_that_was_there_all_the_time)
{
  g_auto (Echo) f = {0};
  echo_start (&f);

  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (f.client, test_deadline (), NULL),
                    (int)MUSTER_SERVER_UP);
  g_autoptr (GBytes) answer = echo_call (&f, "/test.Echo/Echo", "hello", NULL, NULL);
  MUSTER_EXPECT_TRUE (answer != NULL);
  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (f.client, test_deadline (), NULL),
                    (int)MUSTER_SERVER_UP);
}

MUSTER_TEST (RpcReach, has_no_news_of_a_server_that_has_answered_a_call)
{
  g_auto (Waiting) f = {0};
  g_autoptr (GError) error = NULL;
  MusterRpcOptions options = echo_options ();
  options.wait_for_ready = TRUE;
  waiting_start (&f, "127.0.0.1");
  if (!waiting_serve (&f))
    MUSTER_SKIP ("somebody took the port");

  g_autoptr (GBytes) answer =
      muster_rpc_client_call (f.client, "/test.Echo/Answer", NULL, &options, NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  expect_server_state (&f, MUSTER_SERVER_UP);
}

static guint
count_accepted (GSocket *socket)
{
  guint n = 0;
  g_socket_set_blocking (socket, FALSE);
  for (;; n++) {
    g_autoptr (GSocket) peer = g_socket_accept (socket, NULL, NULL);
    if (peer == NULL)
      return n;
  }
}

/* One that is stopped, or no server of gRPC's. */
MUSTER_TEST (RpcReach, is_down_while_who_listens_says_nothing_and_does_not_heap_up_connections)
{
  g_auto (Waiting) f = {0};
  waiting_start (&f, "127.0.0.1");
  expect_server_state (&f, MUSTER_SERVER_DOWN);
  g_autoptr (GSocket) silent = bind_socket (f.port);
  MUSTER_EXPECT_TRUE (g_socket_listen (silent, NULL));

  expect_server_state (&f, MUSTER_SERVER_CHANGED); /* somebody is there now */
  expect_server_state (&f, MUSTER_SERVER_DOWN);
  expect_server_state (&f, MUSTER_SERVER_DOWN);

  MUSTER_EXPECT_LE (count_accepted (silent), 2u); /* the probe's and gRPC's */
}

MUSTER_TEST (RpcReach, comes_back_when_cancelled)
{
  g_auto (Waiting) f = {0};
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  waiting_start (&f, "127.0.0.1");
  g_autoptr (GSocket) silent = bind_socket (f.port);
  MUSTER_EXPECT_TRUE (g_socket_listen (silent, NULL));
  g_cancellable_cancel (cancellable);

  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (f.client, test_deadline (), cancellable),
                    (int)MUSTER_SERVER_DOWN);
}

/* A name service that gives the addresses it was told, or never answers if there are none. */
#define TYPE_STUB_RESOLVER (muster_stub_resolver_get_type ())
G_DECLARE_FINAL_TYPE (MusterStubResolver, muster_stub_resolver, MUSTER, STUB_RESOLVER, GResolver)

struct _MusterStubResolver {
  GResolver parent;
  const char *const *addresses; /* (not owned) (nullable) */
};

G_DEFINE_FINAL_TYPE (MusterStubResolver, muster_stub_resolver, G_TYPE_RESOLVER)

static void
on_stop_requested (GCancellable *cancellable G_GNUC_UNUSED, gpointer task)
{
  g_task_return_error_if_cancelled (task);
}

static void
stub_lookup (GResolver *resolver, const char *host G_GNUC_UNUSED, GCancellable *cancellable,
             GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task = g_task_new (resolver, cancellable, callback, user_data);
  const char *const *at = MUSTER_STUB_RESOLVER (resolver)->addresses;
  GList *addresses = NULL;
  if (at == NULL) {
    g_cancellable_connect (cancellable, G_CALLBACK (on_stop_requested), task, g_object_unref);
    return;
  }
  for (; *at != NULL; at++)
    addresses = g_list_append (addresses, g_inet_address_new_from_string (*at));
  g_task_return_pointer (task, addresses, NULL);
  g_object_unref (task);
}

static GList *
stub_lookup_finish (GResolver *resolver G_GNUC_UNUSED, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}

static void
muster_stub_resolver_class_init (MusterStubResolverClass *klass)
{
  G_RESOLVER_CLASS (klass)->lookup_by_name_async = stub_lookup;
  G_RESOLVER_CLASS (klass)->lookup_by_name_finish = stub_lookup_finish;
}

static void
muster_stub_resolver_init (MusterStubResolver *self G_GNUC_UNUSED)
{
}

static gint64
soon (void)
{
  return test_deadline_in (50 * MUSTER_MILLISECOND);
}

/* ReachProbes at a name with these addresses (nullable). */
static int
probe_by (const char *const *addresses, int port, gint64 deadline_us)
{
  g_autoptr (GResolver) usual = g_resolver_get_default ();
  g_autoptr (MusterStubResolver) told = g_object_new (TYPE_STUB_RESOLVER, NULL);
  g_autofree char *address = muster_address_format ("server.test", (guint16)port);
  MusterReachProber prober;
  told->addresses = addresses;
  g_resolver_set_default (G_RESOLVER (told));
  muster_reach_prober_init (&prober, address);
  int why = muster_reach_probe (&prober, deadline_us, NULL);
  muster_reach_prober_clear (&prober);
  g_resolver_set_default (usual);
  return why;
}

/* gRPC asks for itself, and waits for longer than a probe does. */
MUSTER_TEST (RpcReach, does_not_take_a_slow_name_service_for_a_server_that_is_down)
{
  g_autoptr (GResolver) usual = g_resolver_get_default ();
  g_autoptr (MusterStubResolver) silent = g_object_new (TYPE_STUB_RESOLVER, NULL);
  MusterRpcClient *client = muster_rpc_client_new ("server.test:1", NULL);
  g_resolver_set_default (G_RESOLVER (silent));

  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (client, soon (), NULL), (int)MUSTER_SERVER_UP);

  MUSTER_EXPECT_EQ (probe_by (NULL, 1, soon ()), EAGAIN);
  g_resolver_set_default (usual);
  muster_rpc_client_unref (client);
}

/* The second that the first look waits for the name service isn't added to the call's time. */
MUSTER_TEST (RpcReach, keeps_the_deadline_of_a_call_after_a_slow_name_service)
{
  g_auto (Echo) f = {0};
  echo_start (&f);
  g_autoptr (GResolver) usual = g_resolver_get_default ();
  g_autoptr (MusterStubResolver) silent = g_object_new (TYPE_STUB_RESOLVER, NULL);
  g_autofree char *address = g_strdup_printf ("localhost%s", strchr (f.address, ':'));
  g_resolver_set_default (G_RESOLVER (silent));
  muster_rpc_client_unref (f.client);
  f.client = muster_rpc_client_new (address, NULL);
  EchoThread thread;

  g_autoptr (MusterRpcCall) call = echo_thread_start_waiting (&thread, &f);

  const gint64 late_us = muster_rpc_call_deadline_us (call) - thread.options.deadline_us;
  MUSTER_EXPECT_LE (late_us, 900 * MUSTER_MILLISECOND);
  muster_rpc_call_finish (call, NULL);
  g_autoptr (GError) error = echo_thread_join (&thread);
  g_resolver_set_default (usual);
}

#define SIX_IN(net) net "1", net "2", net "3", net "4", net "5", net "6"

MUSTER_TEST (ReachProbe, finds_the_server_at_any_of_many_addresses)
{
  const char *const few[] = {SIX_IN ("127.0.1."), "127.0.0.1", NULL};
  const char *const many[] = {SIX_IN ("127.0.1."), SIX_IN ("127.0.2."), SIX_IN ("127.0.3."),
                              "127.0.0.1", NULL};
  g_autoptr (GSocket) socket = bind_socket (0);
  MUSTER_EXPECT_TRUE (g_socket_listen (socket, NULL));

  MUSTER_EXPECT_EQ (probe_by (few, port_of (socket), test_deadline ()), 0);
  MUSTER_EXPECT_EQ (probe_by (many, port_of (socket), test_deadline ()), EAGAIN);
}

/* Which of its two faces it shows is the routers' affair. */
MUSTER_TEST (ReachProbe, says_the_same_of_a_machine_without_a_way_to_it_and_of_a_silent_one)
{
  const char *const nowhere[] = {"224.0.0.1", NULL}; /* no TCP goes to a group */
  const char *const loopback[] = {"127.0.0.1", NULL};
  g_autoptr (GSocket) full = bind_socket (0);
  g_autoptr (GSocketAddress) address = g_socket_get_local_address (full, NULL);
  GSocket *fillers[4];
  g_socket_set_listen_backlog (full, 0);
  MUSTER_EXPECT_TRUE (g_socket_listen (full, NULL));
  for (gsize i = 0; i < G_N_ELEMENTS (fillers); i++) {
    fillers[i] =
        g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
    g_socket_set_blocking (fillers[i], FALSE);
    (void)g_socket_connect (fillers[i], address, NULL, NULL);
  }

  MUSTER_EXPECT_EQ (probe_by (nowhere, 1, test_deadline ()), ETIMEDOUT);
  MUSTER_EXPECT_EQ (probe_by (loopback, port_of (full), soon ()), ETIMEDOUT);

  for (gsize i = 0; i < G_N_ELEMENTS (fillers); i++)
    g_object_unref (fillers[i]);
}

/* Who connects to a free port of its own machine often enough is given that very port to connect
 * from, and is connected to itself. Linux gives out even ports for that, and odd ones for bind ().
 */
MUSTER_TEST (ReachProbe, does_not_take_itself_for_the_server)
{
  g_autoptr (GSocket) socket = bind_socket (0);
  const int port = port_of (socket) / 2 * 2;
  g_autofree char *address = muster_address_format ("127.0.0.1", (guint16)port);
  MusterReachProber prober;
  g_clear_object (&socket);
  muster_reach_prober_init (&prober, address);
  if (muster_reach_probe (&prober, test_deadline (), NULL) == 0)
    MUSTER_SKIP ("somebody listens on the port");

  int n_met = 0;
  for (int i = 0; i < 60000 && n_met == 0; i++)
    n_met += muster_reach_probe (&prober, test_deadline (), NULL) == 0;

  MUSTER_EXPECT_EQ (n_met, 0);
  muster_reach_prober_clear (&prober);
}
