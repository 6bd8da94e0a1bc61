// SPDX-License-Identifier: Apache-2.0
#include "tests/gtest_shim.h"
#include "tests/wire/echo.h"
#include "wire/address.h"
#include "wire/knock.h"

#include <string.h>

static gint64
in_half_a_minute (void)
{
  return muster_clock_now_us (muster_system_clock ()) + 30 * MUSTER_SECOND;
}

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

/* FALSE if somebody took the port. */
static gboolean
waiting_serve (Waiting *self)
{
  g_autofree char *address = muster_address_format ("127.0.0.1", (guint16)self->port);
  self->server = muster_rpc_server_new ();
  if (muster_rpc_server_listen (self->server, address, NULL, NULL) == 0)
    return FALSE;
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
expect_presence (Waiting *self, MusterPresence presence)
{
  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (self->client, in_half_a_minute (), NULL),
                    (int)presence);
}

MUSTER_TEST (RpcReach, says_once_that_the_server_is_there)
{
  const char *const hosts[] = {"127.0.0.1", "localhost"};
  for (gsize i = 0; i < G_N_ELEMENTS (hosts); i++) {
    g_auto (Waiting) f = {0};
    MUSTER_TRACE ("%s", hosts[i]);
    waiting_start (&f, hosts[i]);
    expect_presence (&f, MUSTER_PRESENCE_DOWN);
    expect_presence (&f, MUSTER_PRESENCE_DOWN);
    if (!waiting_serve (&f))
      MUSTER_SKIP ("somebody took the port");

    expect_presence (&f, MUSTER_PRESENCE_CHANGED);

    MUSTER_EXPECT_EQ (call (&f), (int)MUSTER_ERROR_UNIMPLEMENTED); /* it answers at once */
    expect_presence (&f, MUSTER_PRESENCE_UP);
  }
}

/* Between the call that failed and the first look. */
MUSTER_TEST (RpcReach, notices_a_server_that_came_before_anybody_looked)
{
  g_auto (Waiting) f = {0};
  waiting_start (&f, "127.0.0.1");
  if (!waiting_serve (&f))
    MUSTER_SKIP ("somebody took the port");

  expect_presence (&f, MUSTER_PRESENCE_CHANGED);

  MUSTER_EXPECT_EQ (call (&f), (int)MUSTER_ERROR_UNIMPLEMENTED);
}

MUSTER_TEST (RpcReach, has_no_news_of_a_server_that_was_there_all_the_time)
{
  g_auto (Echo) f = {0};
  echo_start (&f);

  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (f.client, in_half_a_minute (), NULL),
                    (int)MUSTER_PRESENCE_UP);
  g_autoptr (GBytes) answer = echo_call (&f, "/test.Echo/Echo", "hello", NULL, NULL);
  MUSTER_EXPECT_TRUE (answer != NULL);
  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (f.client, in_half_a_minute (), NULL),
                    (int)MUSTER_PRESENCE_UP);
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
  expect_presence (&f, MUSTER_PRESENCE_DOWN);
  g_autoptr (GSocket) silent = bind_socket (f.port);
  MUSTER_EXPECT_TRUE (g_socket_listen (silent, NULL));

  expect_presence (&f, MUSTER_PRESENCE_CHANGED); /* somebody is there now */
  expect_presence (&f, MUSTER_PRESENCE_DOWN);
  expect_presence (&f, MUSTER_PRESENCE_DOWN);

  MUSTER_EXPECT_LE (count_accepted (silent), 2u); /* the knock's and gRPC's */
}

MUSTER_TEST (RpcReach, comes_back_when_cancelled)
{
  g_auto (Waiting) f = {0};
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  waiting_start (&f, "127.0.0.1");
  g_autoptr (GSocket) silent = bind_socket (f.port);
  MUSTER_EXPECT_TRUE (g_socket_listen (silent, NULL));
  g_cancellable_cancel (cancellable);

  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (f.client, in_half_a_minute (), cancellable),
                    (int)MUSTER_PRESENCE_DOWN);
}

/* Who connects to a free port of its own machine often enough is given that very port to connect
 * from, and is connected to itself. Linux gives out even ports for that, and odd ones for bind ().
 */
MUSTER_TEST (Knock, does_not_take_itself_for_the_server)
{
  g_autoptr (GSocket) socket = bind_socket (0);
  const int port = port_of (socket) / 2 * 2;
  g_autofree char *address = muster_address_format ("127.0.0.1", (guint16)port);
  MusterKnocker knocker;
  g_clear_object (&socket);
  muster_knocker_init (&knocker, address);
  if (muster_knock (&knocker, in_half_a_minute (), NULL) == 0)
    MUSTER_SKIP ("somebody listens on the port");

  int n_met = 0;
  for (int i = 0; i < 60000 && n_met == 0; i++)
    n_met += muster_knock (&knocker, in_half_a_minute (), NULL) == 0;

  MUSTER_EXPECT_EQ (n_met, 0);
  muster_knocker_clear (&knocker);
}
