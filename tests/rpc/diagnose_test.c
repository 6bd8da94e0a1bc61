// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "rpc/address_private.h"
#include "rpc/client/diagnose.h"
#include "rpc/server/rpc_server_private.h"
#include "tests/gtest_shim.h"

#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <string.h>

/* A socket that listens on loopback. What it says to whom it accepts is up to the test. */
typedef struct {
  GSocket *socket;
  char *address;
  const char *says; /* (nullable) NULL: it accepts nobody */
  gsize n_says;
  gboolean closes; /* after what it says; else it waits until the other end closes */
  GThread *thread;
  GCancellable *ended;
} Listener;

static gpointer
accept_all (gpointer data)
{
  Listener *self = data;
  for (;;) {
    g_autoptr (GSocket) peer = g_socket_accept (self->socket, self->ended, NULL);
    if (peer == NULL)
      return NULL;
    g_socket_set_timeout (peer, 30);
    g_socket_send (peer, self->says, self->n_says, NULL, NULL);
    if (self->closes)
      g_socket_shutdown (peer, FALSE, TRUE, NULL);
    char heard[256];
    while (g_socket_receive (peer, heard, sizeof heard, NULL, NULL) > 0)
      ;
  }
}

static void
listener_start (Listener *self, int backlog)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GInetAddress) loopback = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  g_autoptr (GSocketAddress) any_port = g_inet_socket_address_new (loopback, 0);
  self->ended = g_cancellable_new ();
  self->socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error);
  g_socket_set_listen_backlog (self->socket, backlog);
  g_socket_set_timeout (self->socket, 30);
  MUSTER_EXPECT_TRUE (g_socket_bind (self->socket, any_port, FALSE, &error));
  MUSTER_EXPECT_TRUE (g_socket_listen (self->socket, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  g_autoptr (GSocketAddress) bound = g_socket_get_local_address (self->socket, NULL);
  self->address = muster_address_format (
      "127.0.0.1", g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)));
  if (self->says != NULL)
    self->thread = g_thread_new ("listener", accept_all, self);
}

static void
listener_clear (Listener *self)
{
  g_cancellable_cancel (self->ended);
  g_clear_pointer (&self->thread, g_thread_join);
  g_clear_object (&self->ended);
  g_clear_object (&self->socket);
  g_free (self->address);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Listener, listener_clear)

static gint64
within (gint64 timeout_us)
{
  return muster_clock_now_us (muster_system_clock ()) + timeout_us;
}

static void
expect_stage (const MusterDiagnosis *found, MusterReach stage, const char *text)
{
  MUSTER_TRACE ("%s", found->text);
  MUSTER_EXPECT_EQ ((int)found->stage, (int)stage);
  MUSTER_EXPECT_TRUE (strstr (found->text, text) != NULL);
  MUSTER_EXPECT_TRUE (strchr (found->text, '\n') == NULL);
}

static MusterRpcServer *
serve (char **address)
{
  MusterRpcServer *server = muster_rpc_server_new ();
  int port = muster_rpc_server_listen (server, "127.0.0.1:0", NULL, NULL);
  muster_rpc_server_start (server);
  *address = g_strdup_printf ("127.0.0.1:%d", port);
  return server;
}

/* --- the service behind it --- */

static void
say_it_is_unknown (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer n_asked)
{
  g_autoptr (GError) error =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_ABORTED, "Session x is not found.");

  g_atomic_int_inc ((gint *)n_asked);
  muster_rpc_call_finish (call, error);
}

static void
say_nothing (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer kept)
{
  *(MusterRpcCall **)kept = muster_rpc_call_ref (call);
}

static MusterRpcServer *
serve_devices (MusterRpcHandler handler, gpointer user_data, char **address)
{
  MusterRpcServer *server = muster_rpc_server_new ();
  muster_rpc_server_add_method (server, "/tensorflow.MasterService/ListDevices", handler,
                                user_data);
  *address = g_strdup_printf ("127.0.0.1:%d",
                              muster_rpc_server_listen (server, "127.0.0.1:0", NULL, NULL));
  muster_rpc_server_start (server);
  return server;
}

MUSTER_TEST (Diagnosis, of_a_master_asks_it_something)
{
  gint n_asked = 0;
  g_autofree char *address = NULL;
  g_autoptr (MusterRpcServer) server = serve_devices (say_it_is_unknown, &n_asked, &address);
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose_master (address, within (30 * MUSTER_SECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_ANSWERS, "HTTP/2 settings received, MasterService answers");
  MUSTER_EXPECT_EQ (g_atomic_int_get (&n_asked), 1);
}

MUSTER_TEST (Diagnosis, of_a_server_of_other_things_is_that_it_has_no_master)
{
  g_autofree char *address = NULL;
  g_autoptr (MusterRpcServer) server = serve (&address);
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose_master (address, within (30 * MUSTER_SECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_NO_MASTER, "but it has no MasterService");
}

MUSTER_TEST (Diagnosis, of_a_master_that_says_nothing_ends_in_time)
{
  MusterRpcCall *kept = NULL;
  g_autofree char *address = NULL;
  g_autoptr (MusterRpcServer) server = serve_devices (say_nothing, &kept, &address);
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose_master (address, within (300 * MUSTER_MILLISECOND), NULL, &found);

  MUSTER_EXPECT_TRUE (found.stage == MUSTER_REACH_NO_WORD || found.stage == MUSTER_REACH_SILENT);
  muster_rpc_server_stop (server, 0);
  g_clear_pointer (&kept, muster_rpc_call_unref);
}

MUSTER_TEST (Diagnosis, of_a_master_that_is_not_there_comes_as_far_as_without)
{
  g_auto (MusterDiagnosis) found = {0};
  muster_diagnose_master ("127.0.0.1:0", within (30 * MUSTER_SECOND), NULL, &found);

  MUSTER_EXPECT_TRUE (found.stage == MUSTER_REACH_REFUSED || found.stage == MUSTER_REACH_NO_ROUTE);
}

MUSTER_TEST (Diagnosis, of_a_server_is_that_it_answers)
{
  g_autofree char *address = NULL;
  g_autoptr (MusterRpcServer) server = serve (&address);
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose (address, FALSE, within (30 * MUSTER_SECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_ANSWERS, "HTTP/2 settings received");
  MUSTER_EXPECT_STREQ (found.resolved, "127.0.0.1");
  MUSTER_EXPECT_GE (found.connect_us, 0);
}

MUSTER_TEST (Diagnosis, tries_all_addresses_of_a_name)
{
  g_autofree char *address = NULL;
  g_autoptr (MusterRpcServer) server = serve (&address); /* not on ::1 */
  g_autofree char *by_name = g_strdup_printf ("localhost%s", strchr (address, ':'));
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose (by_name, FALSE, within (30 * MUSTER_SECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_ANSWERS, "name localhost -> 127.0.0.1, TCP connected in ");
}

MUSTER_TEST (Diagnosis, of_a_closed_port_is_that_it_refuses)
{
  g_autofree char *address = NULL;
  MusterRpcServer *server = serve (&address);
  muster_rpc_server_free (server);
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose (address, FALSE, within (30 * MUSTER_SECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_REFUSED, "no process listens on port ");
  MUSTER_EXPECT_STREQ (found.resolved, "127.0.0.1");
  MUSTER_EXPECT_EQ (found.connect_us, -1);
}

MUSTER_TEST (Diagnosis, of_a_path_without_a_server_says_what_is_there)
{
  g_autofree char *directory = g_dir_make_tmp ("muster-XXXXXX", NULL);
  g_autofree char *file = g_build_filename (directory, "file", NULL);
  g_autofree char *left = g_build_filename (directory, "left", NULL);
  MUSTER_ASSERT_TRUE (g_file_set_contents (file, "", 0, NULL));
  g_autoptr (GSocketAddress) at = g_unix_socket_address_new (left);
  g_autoptr (GSocket) ended =
      g_socket_new (G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, NULL);
  MUSTER_ASSERT_TRUE (g_socket_bind (ended, at, TRUE, NULL));
  g_clear_object (&ended);
  const struct {
    const char *name, *words;
  } cases[] = {{"nope", "there is no such socket: no process listens there"},
               {"", "that is a directory, not a socket"},
               {"file", "that is a file, not a socket"},
               {"left", "connection refused: no process listens on this socket"}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *address = g_strconcat ("unix:", directory, "/", cases[i].name, NULL);
    g_auto (MusterDiagnosis) found = {0};
    muster_diagnose (address, FALSE, within (30 * MUSTER_SECOND), NULL, &found);
    expect_stage (&found, MUSTER_REACH_REFUSED, cases[i].words);
  }
  MUSTER_EXPECT_TRUE (g_unlink (file) == 0 && g_unlink (left) == 0 && g_rmdir (directory) == 0);
}

MUSTER_TEST (Diagnosis, of_an_unknown_name_is_that_it_does_not_resolve)
{
  g_auto (MusterDiagnosis) found = {0};
  muster_diagnose ("chief.invalid:2222", FALSE, within (5 * MUSTER_SECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_NOT_RESOLVED, "name chief.invalid doesn't resolve: ");
  MUSTER_EXPECT_NULL (found.resolved);
}

MUSTER_TEST (Diagnosis, of_what_is_no_address_says_so)
{
  g_auto (MusterDiagnosis) found = {0};
  muster_diagnose ("chief", FALSE, within (30 * MUSTER_SECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_NOT_RESOLVED, "no port");
}

/* Connects without waiting for the end of it. */
static GSocket *
begin_to_connect (const Listener *listener)
{
  g_autoptr (GSocketAddress) address = g_socket_get_local_address (listener->socket, NULL);
  GSocket *socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
  g_socket_set_blocking (socket, FALSE);
  g_socket_connect (socket, address, NULL, NULL);
  return socket;
}

/* A listener whose backlog is full: the kernel drops what comes, as a firewall does. FALSE where
 * the kernel doesn't. */
static gboolean
fill (Listener *self, GPtrArray *fillers)
{
  for (int i = 0; i < 16; i++) {
    GSocket *filler = begin_to_connect (self);
    g_ptr_array_add (fillers, filler);
    if (!g_socket_condition_timed_wait (filler, G_IO_OUT, 200 * MUSTER_MILLISECOND, NULL, NULL))
      return TRUE;
  }
  return FALSE;
}

MUSTER_TEST (Diagnosis, of_a_black_hole_is_that_tcp_never_connects)
{
  g_auto (Listener) f = {0};
  listener_start (&f, 0);
  g_autoptr (GPtrArray) fillers = g_ptr_array_new_with_free_func (g_object_unref);
  if (!fill (&f, fillers))
    MUSTER_SKIP ("this kernel takes connections over the backlog");
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose (f.address, FALSE, within (100 * MUSTER_MILLISECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_NO_TCP, "127.0.0.1, no TCP connection (");
  MUSTER_EXPECT_EQ (found.connect_us, -1);
}

MUSTER_TEST (Diagnosis, of_a_stopped_server_is_that_it_is_silent)
{
  g_auto (Listener) f = {0}; /* the kernel connects, nobody accepts */
  listener_start (&f, 10);
  g_auto (MusterDiagnosis) found = {0};
  muster_diagnose (f.address, FALSE, within (MUSTER_SECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_SILENT, "no HTTP/2 settings received (");
  MUSTER_EXPECT_GE (found.connect_us, 0);
}

static void
expect_of (const char *says, gsize n_says, gboolean closes, MusterReach stage, const char *text)
{
  g_auto (Listener) f = {.says = says, .n_says = n_says, .closes = closes};
  listener_start (&f, 10);
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose (f.address, FALSE, within (30 * MUSTER_SECOND), NULL, &found);

  expect_stage (&found, stage, text);
}

MUSTER_TEST (Diagnosis, reports_what_speaks_instead)
{
  static const char http[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
  static const char alert[] = "\x15\x03\x01\x00\x02\x02\x46";
  static const char goaway[] = "\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";
  expect_of (http, sizeof http - 1, FALSE, MUSTER_REACH_NOT_HTTP2, "it speaks HTTP/1, not HTTP/2");
  expect_of (alert, sizeof alert - 1, FALSE, MUSTER_REACH_TLS_FAILED,
             "the port speaks TLS; use grpcs://");
  expect_of ("SSH-2.0-x\r\n", 11, FALSE, MUSTER_REACH_NOT_HTTP2, "an unknown protocol");
  expect_of (goaway, sizeof goaway - 1, FALSE, MUSTER_REACH_NOT_HTTP2, "an unknown protocol");
  expect_of ("\0\0", 2, TRUE, MUSTER_REACH_SILENT, "connection closed before");
  expect_of ("", 0, TRUE, MUSTER_REACH_SILENT, "connection closed before");
}

MUSTER_TEST (Diagnosis, takes_settings_with_a_payload)
{
  static const char settings[] = "\0\0\x06\4\0\0\0\0\0\0\x03\0\0\0\x64";
  expect_of (settings, sizeof settings - 1, FALSE, MUSTER_REACH_ANSWERS, "settings received");
}

static void
expect_of_tls (const char *says, gsize n_says, gboolean closes, MusterReach stage, const char *text)
{
  g_auto (Listener) f = {.says = says, .n_says = n_says, .closes = closes};
  listener_start (&f, 10);
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose (f.address, TRUE, within (30 * MUSTER_SECOND), NULL, &found);

  expect_stage (&found, stage, text);
}

MUSTER_TEST (Diagnosis, with_tls_reports_what_answers_the_handshake)
{
  static const char hello[] = "\x16\x03\x03\x00\x04";
  static const char settings[] = "\0\0\0\4\0\0\0\0\0";
  expect_of_tls (hello, sizeof hello - 1, FALSE, MUSTER_REACH_ANSWERS, "TLS works");
  expect_of_tls (settings, sizeof settings - 1, FALSE, MUSTER_REACH_TLS_FAILED,
                 "TLS handshake failed: the port speaks plain text; use grpc://");
  expect_of_tls ("HTTP/1.1 400\r\n", 14, TRUE, MUSTER_REACH_TLS_FAILED, "use grpc://");
  expect_of_tls ("", 0, TRUE, MUSTER_REACH_SILENT, "connection closed during the TLS handshake");
}

MUSTER_TEST (Diagnosis, of_a_stopped_server_with_tls_is_that_it_is_silent)
{
  g_auto (Listener) f = {0};
  listener_start (&f, 10);
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose (f.address, TRUE, within (MUSTER_SECOND), NULL, &found);

  expect_stage (&found, MUSTER_REACH_SILENT, "no TLS answer (");
}

static gpointer
cancel_when_connected (gpointer data)
{
  gpointer *both = data;
  g_autoptr (GSocket) peer = g_socket_accept (both[0], NULL, NULL);
  char heard[8];
  g_socket_receive (peer, heard, sizeof heard, NULL, NULL); /* it has begun to speak */
  g_cancellable_cancel (both[1]);
  return g_steal_pointer (&peer);
}

MUSTER_TEST (Diagnosis, ends_when_cancelled)
{
  g_auto (Listener) f = {0};
  listener_start (&f, 10);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  gpointer both[] = {f.socket, cancellable};
  GThread *canceller = g_thread_new ("canceller", cancel_when_connected, both);
  g_auto (MusterDiagnosis) found = {0};

  muster_diagnose (f.address, FALSE, MUSTER_WAIT_FOREVER, cancellable, &found);

  expect_stage (&found, MUSTER_REACH_SILENT, "until cancelled");
  g_object_unref (g_thread_join (canceller));
}

MUSTER_TEST (Diagnosis, without_time_comes_back_at_once)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  g_cancellable_cancel (cancellable);
  g_auto (MusterDiagnosis) cancelled = {0};
  g_auto (MusterDiagnosis) late = {0};

  muster_diagnose ("chief.invalid:1", FALSE, MUSTER_WAIT_FOREVER, cancellable, &cancelled);
  muster_diagnose ("192.0.2.1:1", FALSE, within (0), NULL, &late);

  expect_stage (&cancelled, MUSTER_REACH_NOT_RESOLVED, "timed out before");
  expect_stage (&late, MUSTER_REACH_NOT_RESOLVED, "timed out before");
}

/* A name service that says nothing until it is told to stop, or knows many addresses. */
#define TYPE_STUCK_RESOLVER (muster_stuck_resolver_get_type ())
G_DECLARE_FINAL_TYPE (MusterStuckResolver, muster_stuck_resolver, MUSTER, STUCK_RESOLVER, GResolver)

struct _MusterStuckResolver {
  GResolver parent;
  GCancellable *cancels; /* (not owned) (nullable) the caller's, when it is asked */
  guint n_addresses;
};

G_DEFINE_FINAL_TYPE (MusterStuckResolver, muster_stuck_resolver, G_TYPE_RESOLVER)

static void
on_stop_requested (GCancellable *cancellable G_GNUC_UNUSED, gpointer task)
{
  g_task_return_error_if_cancelled (task);
}

static void
stuck_ask (GResolver *resolver, const char *host G_GNUC_UNUSED, GCancellable *cancellable,
           GAsyncReadyCallback callback, gpointer user_data)
{
  MusterStuckResolver *self = MUSTER_STUCK_RESOLVER (resolver);
  GTask *task = g_task_new (resolver, cancellable, callback, user_data);
  GList *addresses = NULL;
  for (guint i = 0; i < self->n_addresses; i++)
    addresses = g_list_prepend (addresses, g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4));
  if (addresses != NULL) {
    g_task_return_pointer (task, addresses, NULL);
    g_object_unref (task);
    return;
  }
  g_cancellable_connect (cancellable, G_CALLBACK (on_stop_requested), task, g_object_unref);
  if (self->cancels != NULL)
    g_cancellable_cancel (self->cancels);
}

static GList *
stuck_finish (GResolver *resolver G_GNUC_UNUSED, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}

static void
muster_stuck_resolver_class_init (MusterStuckResolverClass *klass)
{
  GResolverClass *resolver = G_RESOLVER_CLASS (klass);
  resolver->lookup_by_name_async = stuck_ask;
  resolver->lookup_by_name_finish = stuck_finish;
}

static void
muster_stuck_resolver_init (MusterStuckResolver *self G_GNUC_UNUSED)
{
}

static void
diagnose_by (MusterStuckResolver *resolver, gint64 deadline_us, GCancellable *cancellable,
             const char *address, MusterDiagnosis *found)
{
  g_autoptr (GResolver) usual = g_resolver_get_default ();
  g_resolver_set_default (G_RESOLVER (resolver));
  muster_diagnose (address, FALSE, deadline_us, cancellable, found);
  g_resolver_set_default (usual);
}

MUSTER_TEST (Diagnosis, of_a_silent_name_service_ends_at_the_deadline)
{
  g_autoptr (MusterStuckResolver) resolver = g_object_new (TYPE_STUCK_RESOLVER, NULL);
  g_auto (MusterDiagnosis) found = {0};
  diagnose_by (resolver, within (50 * MUSTER_MILLISECOND), NULL, "chief:1", &found);

  expect_stage (&found, MUSTER_REACH_NOT_RESOLVED,
                "name chief doesn't resolve: no answer from the name service (");
}

MUSTER_TEST (Diagnosis, of_a_silent_name_service_ends_when_cancelled)
{
  g_autoptr (MusterStuckResolver) resolver = g_object_new (TYPE_STUCK_RESOLVER, NULL);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  resolver->cancels = cancellable;
  g_auto (MusterDiagnosis) found = {0};

  diagnose_by (resolver, MUSTER_WAIT_FOREVER, cancellable, "chief:1", &found);

  expect_stage (&found, MUSTER_REACH_NOT_RESOLVED,
                "no answer from the name service until cancelled");
}

MUSTER_TEST (Diagnosis, shares_its_time_among_many_addresses)
{
  g_auto (Listener) f = {0};
  listener_start (&f, 10);
  g_autoptr (MusterStuckResolver) resolver = g_object_new (TYPE_STUCK_RESOLVER, NULL);
  resolver->n_addresses = 1000;
  g_autofree char *by_name = g_strdup_printf ("chief%s", strchr (f.address, ':'));
  g_auto (MusterDiagnosis) found = {0};

  diagnose_by (resolver, within (MUSTER_SECOND), NULL, by_name, &found);

  expect_stage (&found, MUSTER_REACH_SILENT, "name chief -> 127.0.0.1, TCP connected in ");
}
