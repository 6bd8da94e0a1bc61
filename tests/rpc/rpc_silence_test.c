// SPDX-License-Identifier: Apache-2.0
#include "rpc/client/rpc_call_private.h"
#include "tests/deadline.h"
#include "tests/doubles/heard.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/echo.h"
#include "tests/rpc/relay.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Connections that are dead although nobody closed them. */

/* An echo behind a relay; its client connects to that, and soon finds silence. */
typedef struct {
  Echo echo;
  Relay *relay;
} Behind;

static void
behind_start (Behind *self, const MusterRpcSilence *silence)
{
  echo_start (&self->echo);
  self->relay = relay_new (self->echo.address);
  muster_rpc_client_unref (self->echo.client);
  self->echo.client = muster_rpc_client_new (relay_address (self->relay), NULL);
  self->echo.client->silence = *silence;
  heard_begin (G_LOG_LEVEL_MESSAGE);
}

static void
behind_clear (Behind *self)
{
  heard_end ();
  relay_free (self->relay);
  echo_clear (&self->echo);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Behind, behind_clear)

static const MusterRpcSilence soon = {
    .call_us = 20 * MUSTER_MILLISECOND,
    .stream_us = 20 * MUSTER_MILLISECOND,
    .answer_us = 200 * MUSTER_MILLISECOND,
    .again_us = 200 * MUSTER_MILLISECOND,
};

/* A connection that isn't dead answers, however slow the machine. */
static const MusterRpcSilence patient = {
    .call_us = 20 * MUSTER_MILLISECOND,
    .stream_us = 20 * MUSTER_MILLISECOND,
    .answer_us = 200 * MUSTER_MILLISECOND,
    .again_us = 30 * MUSTER_SECOND,
};

static void
expect_echo (Behind *self)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) answer = echo_call (&self->echo, "/test.Echo/Echo", "again", NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (RpcSilence, fails_a_call_on_a_dead_connection_and_goes_on_on_another)
{
  g_auto (Behind) f = {0};
  EchoThread thread;
  behind_start (&f, &soon);
  g_autoptr (MusterRpcCall) call = echo_thread_start_waiting (&thread, &f.echo);
  relay_forget (f.relay);

  g_autoptr (GError) error = echo_thread_join (&thread);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  MUSTER_EXPECT_TRUE (g_str_has_suffix (
      error->message, ": the connection is dead; the server answers on another one"));
  MUSTER_EXPECT_TRUE (heard_wait ("connection-dead", "*is dead*"));
  expect_echo (&f);
}

static MusterRpcStream *
open_stream (Behind *self)
{
  g_autoptr (GError) error = NULL;
  const MusterRpcOptions options = {.deadline_us = MUSTER_WAIT_FOREVER};
  MusterRpcStream *stream =
      muster_rpc_client_open (self->echo.client, "/test.Echo/Open", NULL, &options, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (GBytes) first =
      muster_rpc_stream_next_until (stream, MUSTER_WAIT_FOREVER, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return stream;
}

MUSTER_TEST (RpcSilence, ends_a_stream_on_a_dead_connection)
{
  g_auto (Behind) f = {0};
  g_autoptr (GError) error = NULL;
  behind_start (&f, &soon);
  g_autoptr (MusterRpcStream) stream = open_stream (&f);
  relay_forget (f.relay);

  g_autoptr (GBytes) next = muster_rpc_stream_next_until (stream, test_deadline (), NULL, &error);

  MUSTER_EXPECT_NULL (next);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  g_autoptr (MusterRpcStream) another = open_stream (&f);
}

/* As the renewals of leases, whose streams nobody waits for. */
MUSTER_TEST (RpcSilence, is_noticed_by_calls_that_end_at_a_deadline)
{
  const MusterRpcSilence late = {.call_us = MUSTER_WAIT_FOREVER / 2,
                                 .stream_us = MUSTER_WAIT_FOREVER / 2,
                                 .answer_us = soon.answer_us,
                                 .again_us = soon.again_us};
  g_auto (Behind) f = {0};
  g_autoptr (GError) error = NULL, ended = NULL;
  behind_start (&f, &late);
  g_autoptr (MusterRpcStream) stream = open_stream (&f);
  relay_forget (f.relay);
  /* A call that is over within a second shows nothing. */
  const MusterRpcOptions options = echo_options_for (1500 * MUSTER_MILLISECOND);

  g_autoptr (GBytes) answer =
      muster_rpc_client_call (f.echo.client, "/test.Echo/Echo", NULL, &options, NULL, &error);

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED);
  g_autoptr (GBytes) next = muster_rpc_stream_next_until (stream, test_deadline (), NULL, &ended);
  MUSTER_EXPECT_ERROR (ended, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
}

/* A server that is stopped, or a network that is away, isn't a dead connection: its calls are
 * answered when it goes on. */
MUSTER_TEST (RpcSilence, keeps_the_connection_to_a_server_that_is_silent_on_all)
{
  g_auto (Behind) f = {0};
  EchoThread thread;
  behind_start (&f, &patient);
  g_autoptr (MusterRpcCall) call = echo_thread_start_waiting (&thread, &f.echo);
  relay_pause (f.relay);
  MUSTER_EXPECT_TRUE (relay_wait (f.relay, 3)); /* two other connections were tried */

  relay_go_on (f.relay);
  muster_rpc_call_finish (call, NULL);

  g_autoptr (GError) error = echo_thread_join (&thread);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL); /* it has no message */
  MUSTER_EXPECT_EQ (heard_count ("connection-dead", NULL), 0u);
}

/* A step that takes long, at a server that answers other calls. */
MUSTER_TEST (RpcSilence, is_no_fault_of_a_call_that_takes_long)
{
  g_auto (Behind) f = {0};
  EchoThread thread;
  behind_start (&f, &patient);
  g_autoptr (MusterRpcCall) call = echo_thread_start_waiting (&thread, &f.echo);
  MusterRpcChannel *channel = muster_rpc_client_hold_channel (f.echo.client);
  const gint64 deadline_us = test_deadline ();
  gint64 examined_us = 0;
  while (examined_us == 0 && muster_clock_now_us (muster_system_clock ()) < deadline_us) {
    g_mutex_lock (&f.echo.client->lock);
    examined_us = f.echo.client->examine_us;
    g_mutex_unlock (&f.echo.client->lock);
    g_thread_yield ();
  }
  MUSTER_EXPECT_TRUE (examined_us != 0);

  muster_rpc_call_finish (call, NULL);

  g_autoptr (GError) error = echo_thread_join (&thread);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INTERNAL);
  g_autoptr (MusterRpcChannel) still = muster_rpc_client_hold_channel (f.echo.client);
  MUSTER_EXPECT_TRUE (still == channel);
  muster_rpc_channel_unref (channel);
}

/* The sockets of this process that are connected from or to a port. */
static guint
count_kept_alive (int port, guint *n_all)
{
  guint n = 0;
  g_autoptr (GDir) folder = g_dir_open ("/proc/self/fd", 0, NULL);
  for (const char *name; (name = g_dir_read_name (folder)) != NULL;) {
    const int fd = atoi (name);
    struct sockaddr_in own = {0}, peer = {0};
    socklen_t own_size = sizeof own, peer_size = sizeof peer, size = sizeof (int);
    int is_on = 0, idle = 0, timeout = 0;
    if (getsockname (fd, (struct sockaddr *)&own, &own_size) != 0 ||
        getpeername (fd, (struct sockaddr *)&peer, &peer_size) != 0 ||
        (ntohs (own.sin_port) != port && ntohs (peer.sin_port) != port))
      continue;
    ++*n_all;
    (void)getsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &is_on, &size);
    (void)getsockopt (fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &size);
    (void)getsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &size);
    n += is_on != 0 && idle == 15 && timeout == 20000;
  }
  return n;
}

MUSTER_TEST (RpcSilence, is_asked_after_by_tcp_on_both_sides_of_a_connection)
{
  g_auto (Echo) f = {0};
  guint n_all, n;
  echo_start (&f);
  g_autoptr (GBytes) answer = echo_call (&f, "/test.Echo/Echo", "hello", NULL, NULL);
  MUSTER_EXPECT_TRUE (answer != NULL);

  const gint64 deadline_us = test_deadline ();
  do { /* until the server has closed its end of the look before the first call */
    n_all = 0;
    n = count_kept_alive (atoi (strchr (f.address, ':') + 1), &n_all);
  } while (n_all != 2 && muster_clock_now_us (muster_system_clock ()) < deadline_us);

  MUSTER_EXPECT_EQ (n_all, 2u);
  MUSTER_EXPECT_EQ (n, 2u);
}
