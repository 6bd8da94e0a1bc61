// SPDX-License-Identifier: Apache-2.0
/* Finds out how far a connection to a server comes: name, TCP, protocol, TLS. It speaks HTTP/2
 * and TLS itself, because gRPC's errors don't tell. */
#include "rpc/client/diagnose.h"

#include "base/blocking_private.h"
#include "base/clock.h"
#include "base/unpack_private.h"
#include "rpc/address_private.h"
#include "rpc/client/resolve_private.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/proto/master.pb-c.h"

#include <gio/gunixsocketaddress.h>
#include <string.h>
#include <sys/stat.h>

/* Maximum number of addresses that are tried. */
#define MAX_ADDRESSES 4

#define LIST_DEVICES "/tensorflow.MasterService/ListDevices"

/* A session that doesn't exist: a master answers at once. */
#define NO_SESSION "muster-looks"

#define FRAME_HEADER 9
#define SETTINGS     4

/* A client's first bytes: the preface, and empty settings. */
static const char opening[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

/* A ClientHello of TLS 1.2, which any server answers with its own or an alert. */
static const guint8 client_hello[] = {
    0x16, 0x03, 0x01, 0x00, 0x62,                  /* a record: a handshake */
    0x01, 0x00, 0x00, 0x5e, 0x03, 0x03,            /* ClientHello, TLS 1.2 */
    'm',  'u',  's',  't',  'e',  'r',  ' ',  'l', /* 32 bytes for a random number: */
    'o',  'o',  'k',  's',  ' ',  'w',  'h',  'a', /* nothing is ever encrypted */
    't',  ' ',  'i',  's',  ' ',  's',  'p',  'o',  'k',  'e',
    'n',  ' ',  'h',  'e',  'r',  'e',  0x00,                   /* no session */
    0x00, 0x08, 0xc0, 0x2b, 0xc0, 0x2f, 0xc0, 0x2c, 0xc0, 0x30, /* ECDHE with AES-GCM */
    0x01, 0x00,                                                 /* no compression */
    0x00, 0x2d,                                                 /* extensions: */
    0x00, 0x0a, 0x00, 0x06, 0x00, 0x04, 0x00, 0x1d, 0x00, 0x17, /* x25519, P-256 */
    0x00, 0x0b, 0x00, 0x02, 0x01, 0x00,                         /* points uncompressed */
    0x00, 0x0d, 0x00, 0x10, 0x00, 0x0e, 0x04, 0x03, 0x05, 0x03, /* signatures: ECDSA, */
    0x06, 0x03, 0x08, 0x04, 0x04, 0x01, 0x05, 0x01, 0x08, 0x07, /* RSA, Ed25519 */
    0x00, 0x10, 0x00, 0x05, 0x00, 0x03, 0x02, 'h',  '2',        /* HTTP/2 */
};

typedef struct {
  const char *host; /* or the path of a Unix socket */
  guint16 port;
  gboolean tls, is_unix;
  gint64 deadline_us;
  GCancellable *cancellable; /* (nullable) */
} Probe;

void
muster_diagnosis_clear (MusterDiagnosis *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->resolved, g_free);
  g_clear_pointer (&self->text, g_free);
}

static gint64
now_us (void)
{
  return muster_clock_now_us (muster_system_clock ());
}

/* What was missing, and for how long. */
static char *
say_unfinished (const Probe *probe, const char *what, gint64 since_us)
{
  g_autofree char *waited = muster_format_duration (now_us () - since_us);
  gboolean is_cancelled = g_cancellable_is_cancelled (probe->cancellable);
  return g_strdup_printf ("%s%s (%s)", what, is_cancelled ? " until cancelled" : "", waited);
}

/* FALSE when the deadline has passed, it was cancelled, or the socket can't be waited for. */
static gboolean
wait_for (const Probe *probe, gint64 until_us, GSocket *socket, GIOCondition condition)
{
  gint64 left_us = muster_deadline_remaining (until_us, now_us ());
  if (left_us == 0)
    return FALSE;
  return g_socket_condition_timed_wait (
      socket, condition, left_us == MUSTER_WAIT_FOREVER ? -1 : left_us, probe->cancellable, NULL);
}

/* A Unix socket that doesn't exist is one on which nobody listens. */
static MusterReach
stage_of (const GError *error)
{
  return g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED) ||
                 g_error_matches (error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND)
             ? MUSTER_REACH_REFUSED
             : MUSTER_REACH_NO_ROUTE;
}

static char *
say_refused (const Probe *probe)
{
  struct stat found;
  if (!probe->is_unix)
    return g_strdup_printf ("TCP connection refused: no process listens on port %u", probe->port);
  if (stat (probe->host, &found) != 0)
    return g_strdup ("there is no such socket: no process listens there");
  if (!S_ISSOCK (found.st_mode))
    return g_strdup_printf ("that is %s, not a socket",
                            S_ISDIR (found.st_mode) ? "a directory" : "a file");
  return g_strdup ("connection refused: no process listens on this socket");
}

static GSocket *
new_socket (GSocketAddress *address, GError **error)
{
  const GSocketFamily family = g_socket_address_get_family (address);
  return g_socket_new (
      family, G_SOCKET_TYPE_STREAM,
      family == G_SOCKET_FAMILY_UNIX ? G_SOCKET_PROTOCOL_DEFAULT : G_SOCKET_PROTOCOL_TCP, error);
}

/* Connects. On failure returns the stage and the reason (transfer full). */
static gboolean
connect_to (const Probe *probe, gint64 until_us, GSocket *socket, GSocketAddress *address,
            MusterReach *stage, char **reason)
{
  gint64 since_us = now_us ();
  g_autoptr (GError) error = NULL;
  if (g_socket_connect (socket, address, NULL, &error))
    return TRUE;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_PENDING)) {
    g_clear_error (&error);
    if (!wait_for (probe, until_us, socket, G_IO_OUT)) {
      *stage = MUSTER_REACH_NO_TCP;
      *reason =
          say_unfinished (probe, probe->is_unix ? "no connection" : "no TCP connection", since_us);
      return FALSE;
    }
    if (g_socket_check_connect_result (socket, &error))
      return TRUE;
  }
  *stage = stage_of (error);
  *reason =
      *stage == MUSTER_REACH_REFUSED
          ? say_refused (probe)
          : g_strdup_printf ("no %sconnection: %s", probe->is_unix ? "" : "TCP ", error->message);
  return FALSE;
}

/* The protocol of these first bytes, unless it is HTTP/2; NULL if it may be. */
static const char *
name_protocol (const guint8 *bytes, gsize n_bytes)
{
  static const guint8 rest[FRAME_HEADER - 3] = {SETTINGS};
  if (n_bytes > 4 && memcmp (bytes, "HTTP/", 5) == 0)
    return "HTTP/1";
  /* A frame's length has three bytes; the first is 0 in all frames that come unrequested. */
  if (n_bytes > 0 && bytes[0] != 0)
    return "an unknown protocol";
  if (n_bytes > 3 && memcmp (bytes + 3, rest, n_bytes - 3) != 0)
    return "an unknown protocol";
  return NULL;
}

/* Sends a client's first bytes, ignoring errors: a server that doesn't read may be stopped. */
static void
send_opening (GSocket *socket)
{
  g_socket_send (socket, opening, sizeof opening - 1, NULL, NULL);
}

static gboolean
is_tls (const guint8 *bytes, gsize n_bytes)
{
  return n_bytes > 1 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 3;
}

/* Reads more bytes. Returns their number, 0 if the other end has closed, -1 at the deadline. */
static gssize
read_more (const Probe *probe, gint64 until_us, GSocket *socket, guint8 *bytes, gsize capacity)
{
  for (;;) {
    g_autoptr (GError) error = NULL;
    if (!wait_for (probe, until_us, socket, G_IO_IN))
      return -1;
    const gssize n = g_socket_receive (socket, (char *)bytes, capacity, NULL, &error);
    if (n >= 0 || !g_error_matches (error, G_IO_ERROR, G_IO_ERROR_WOULD_BLOCK))
      return MAX (n, 0);
  }
}

/* The beginning of an answer. */
typedef struct {
  guint8 bytes[FRAME_HEADER];
  gsize size, wanted;
  gint64 since_us;
  const char *missing, *closed; /* the reason where it doesn't come */
} Answer;

static gboolean
read_answer (const Probe *probe, gint64 until_us, GSocket *socket, Answer *answer, char **reason)
{
  const gssize n = read_more (probe, until_us, socket, answer->bytes + answer->size,
                              answer->wanted - answer->size);
  if (n < 0)
    *reason = say_unfinished (probe, answer->missing, answer->since_us);
  else if (n == 0)
    *reason = g_strdup (answer->closed);
  answer->size += (gsize)MAX (n, 0);
  return n > 0;
}

/* Reads until the header of the first frame is there. */
static MusterReach
await_settings (const Probe *probe, gint64 until_us, GSocket *socket, char **reason)
{
  Answer answer = {.wanted = FRAME_HEADER,
                   .since_us = now_us (),
                   .missing = "no HTTP/2 settings received",
                   .closed = probe->is_unix
                                 ? "the server closed the connection of this user; add the user to "
                                   "its --allow-user"
                                 : "connection closed before HTTP/2 settings were received"};
  while (answer.size < answer.wanted) {
    if (!read_answer (probe, until_us, socket, &answer, reason))
      return MUSTER_REACH_SILENT;
    const char *protocol = name_protocol (answer.bytes, answer.size);
    if (is_tls (answer.bytes, answer.size))
      return MUSTER_REACH_TLS_FAILED;
    if (protocol != NULL) {
      *reason = g_strdup_printf ("but it speaks %s, not HTTP/2", protocol);
      return MUSTER_REACH_NOT_HTTP2;
    }
  }
  *reason = g_strdup ("HTTP/2 settings received");
  return MUSTER_REACH_ANSWERS;
}

/* Sends the first message of a handshake, and reads the beginning of the answer. */
static MusterReach
await_tls (const Probe *probe, gint64 until_us, GSocket *socket, char **reason)
{
  Answer answer = {.wanted = 2,
                   .since_us = now_us (),
                   .missing = "no TLS answer",
                   .closed = "connection closed during the TLS handshake"};
  g_socket_send (socket, (const char *)client_hello, sizeof client_hello, NULL, NULL);
  while (answer.size < answer.wanted)
    if (!read_answer (probe, until_us, socket, &answer, reason))
      return MUSTER_REACH_SILENT;
  if (!is_tls (answer.bytes, answer.size))
    return MUSTER_REACH_TLS_FAILED;
  *reason = g_strdup ("TLS works");
  return MUSTER_REACH_ANSWERS;
}

static char *
number_of (GSocketAddress *address)
{
  if (G_IS_UNIX_SOCKET_ADDRESS (address))
    return g_strdup (g_unix_socket_address_get_path (G_UNIX_SOCKET_ADDRESS (address)));
  if (!G_IS_INET_SOCKET_ADDRESS (address))
    return g_strdup ("?");
  return g_inet_address_to_string (
      g_inet_socket_address_get_address (G_INET_SOCKET_ADDRESS (address)));
}

/* "name chief -> 10.1.2.3", or the number alone. */
static char *
say_where (const Probe *probe, const char *number)
{
  return strcmp (probe->host, number) == 0 ? g_strdup (number)
                                           : g_strdup_printf ("name %s -> %s", probe->host, number);
}

static GSocket *
connect_again (const Probe *probe, gint64 until_us, GSocketAddress *address)
{
  MusterReach stage;
  g_autofree char *reason = NULL;
  g_autoptr (GSocket) socket = new_socket (address, NULL);
  if (socket == NULL)
    return NULL;
  g_socket_set_blocking (socket, FALSE);
  return connect_to (probe, until_us, socket, address, &stage, &reason) ? g_steal_pointer (&socket)
                                                                        : NULL;
}

/* A server that closes after plain text without an answer may expect TLS. */
static gboolean
wants_tls (const Probe *probe, gint64 until_us, GSocketAddress *address)
{
  g_autofree char *reason = NULL;
  g_autoptr (GSocket) socket = connect_again (probe, until_us, address);
  return socket != NULL && await_tls (probe, until_us, socket, &reason) == MUSTER_REACH_ANSWERS;
}

static MusterReach
try_plain (const Probe *probe, gint64 until_us, GSocket *socket, GSocketAddress *address,
           char **reason)
{
  send_opening (socket);
  const MusterReach stage = await_settings (probe, until_us, socket, reason);
  const gboolean has_closed = stage == MUSTER_REACH_SILENT && !probe->is_unix &&
                              now_us () < until_us &&
                              !g_cancellable_is_cancelled (probe->cancellable);
  if (!has_closed)
    return stage;
  g_socket_close (socket, NULL);
  return wants_tls (probe, until_us, address) ? MUSTER_REACH_TLS_FAILED : stage;
}

/* After the connection. */
static void
try_protocol (const Probe *probe, gint64 until_us, GSocket *socket, GSocketAddress *address,
              MusterDiagnosis *out)
{
  g_autofree char *where = say_where (probe, out->resolved);
  g_autofree char *took = muster_format_duration (out->connect_us);
  g_autofree char *reason = NULL;
  out->stage = probe->tls ? await_tls (probe, until_us, socket, &reason)
                          : try_plain (probe, until_us, socket, address, &reason);
  if (out->stage == MUSTER_REACH_TLS_FAILED) {
    g_free (reason);
    reason = g_strdup (probe->tls ? "TLS handshake failed: the port speaks plain text; use grpc://"
                                  : "no HTTP/2: the port speaks TLS; use grpcs://");
  }
  out->text = g_strdup_printf ("%s, %sconnected in %s, %s", where, probe->is_unix ? "" : "TCP ",
                               took, reason);
}

static void
try_address (const Probe *probe, gint64 until_us, GSocketAddress *address, MusterDiagnosis *out)
{
  *out = (MusterDiagnosis){
      .stage = MUSTER_REACH_NO_ROUTE, .resolved = number_of (address), .connect_us = -1};
  g_autofree char *where = say_where (probe, out->resolved);
  g_autofree char *reason = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocket) socket = new_socket (address, &error);
  if (socket == NULL) {
    out->text = g_strdup_printf ("%s, no TCP connection: %s", where, error->message);
    return;
  }
  g_socket_set_blocking (socket, FALSE);
  gint64 began_us = now_us ();
  if (!connect_to (probe, until_us, socket, address, &out->stage, &reason)) {
    out->text = g_strdup_printf ("%s, %s", where, reason);
    return;
  }
  out->connect_us = now_us () - began_us;
  try_protocol (probe, until_us, socket, address, out);
}

/* Orders stages by how far they got; no route is the lowest. */
static int
progress_of (MusterReach stage)
{
  return stage == MUSTER_REACH_NO_ROUTE ? -1 : (int)stage;
}

/* Each gets its share of the remaining time. */
static void
try_all (Probe *probe, GList *addresses, MusterDiagnosis *out)
{
  guint n_left = MIN (g_list_length (addresses), MAX_ADDRESSES);
  for (GList *at = addresses; n_left > 0; at = at->next, n_left--) {
    gint64 began_us = now_us ();
    gint64 left_us = muster_deadline_remaining (probe->deadline_us, began_us);
    gint64 until_us =
        n_left == 1 ? probe->deadline_us : muster_deadline_after (began_us, left_us / n_left);
    g_autoptr (GSocketAddress) address = g_inet_socket_address_new (at->data, probe->port);
    MusterDiagnosis tried;
    try_address (probe, until_us, address, &tried);
    gboolean is_better = out->text == NULL || progress_of (tried.stage) > progress_of (out->stage);
    muster_diagnosis_clear (is_better ? out : &tried);
    if (is_better)
      *out = tried;
    if (out->stage == MUSTER_REACH_ANSWERS || g_cancellable_is_cancelled (probe->cancellable))
      return;
  }
}

static void
try_unix (Probe *probe, const char *path, MusterDiagnosis *out)
{
  g_autoptr (GSocketAddress) address = g_unix_socket_address_new (path);
  probe->host = path;
  probe->is_unix = TRUE;
  muster_about_to_block ();
  try_address (probe, probe->deadline_us, address, out);
}

static void
try_name (Probe *probe, MusterDiagnosis *out)
{
  muster_about_to_block ();
  g_autofree char *reason = NULL;
  GList *addresses =
      muster_resolve_host (probe->host, probe->deadline_us, probe->cancellable, &reason);
  if (addresses == NULL)
    out->text = g_strdup_printf ("name %s doesn't resolve: %s", probe->host, reason);
  else
    try_all (probe, addresses, out);
  g_resolver_free_addresses (addresses);
}

void
muster_diagnose (const char *address, gboolean tls, gint64 deadline_us, GCancellable *cancellable,
                 MusterDiagnosis *out)
{
  g_return_if_fail (address != NULL && out != NULL);
  *out = (MusterDiagnosis){.stage = MUSTER_REACH_NOT_RESOLVED, .connect_us = -1};
  g_autofree char *host = NULL;
  g_autoptr (GError) error = NULL;
  const char *path = muster_address_unix_path (address);
  Probe probe = {.tls = tls, .deadline_us = deadline_us, .cancellable = cancellable};
  if (path == NULL && !muster_address_parse (address, &host, &probe.port, &error)) {
    out->text = g_strdup (error->message);
    return;
  }
  /* GLib would leak the error of a lookup that was cancelled before it started. */
  if (g_cancellable_is_cancelled (cancellable) || deadline_us <= now_us ()) {
    out->text = g_strdup_printf ("timed out before trying %s", address);
    return;
  }
  probe.host = host;
  if (path != NULL)
    try_unix (&probe, path, out);
  else
    try_name (&probe, out);
}

/* --- the MasterService --- */

static GBytes *
make_query (void)
{
  Tensorflow__ListDevicesRequest request = TENSORFLOW__LIST_DEVICES_REQUEST__INIT;
  request.session_handle = (char *)NO_SESSION;
  return muster_pack (&request.base);
}

/* The stage for the result of a call. */
static MusterReach
stage_of_answer (const GError *error)
{
  if (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED))
    return MUSTER_REACH_NO_MASTER;
  return muster_error_is (error, MUSTER_ERROR_UNAVAILABLE) ||
                 muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED) ||
                 (error != NULL && error->domain != MUSTER_ERROR)
             ? MUSTER_REACH_NO_WORD
             : MUSTER_REACH_ANSWERS;
}

static char *
describe_answer (MusterReach stage, const MusterDiagnosis *so_far, gint64 took_us)
{
  g_autofree char *took = muster_format_duration (took_us);

  switch (stage) {
  case MUSTER_REACH_NO_MASTER:
    return g_strdup_printf ("%s, but it has no MasterService", so_far->text);
  case MUSTER_REACH_NO_WORD:
    return g_strdup_printf ("%s, but MasterService didn't answer (%s)", so_far->text, took);
  default:
    return g_strdup_printf ("%s, MasterService answers", so_far->text);
  }
}

void
muster_diagnose_master (const char *address, gint64 deadline_us, GCancellable *cancellable,
                        MusterDiagnosis *out)
{
  g_return_if_fail (address != NULL && out != NULL);

  g_autoptr (GError) error = NULL;
  muster_diagnose (address, FALSE, deadline_us, cancellable, out);
  if (out->stage != MUSTER_REACH_ANSWERS)
    return;
  const gint64 began_us = muster_clock_now_us (muster_system_clock ());
  const MusterRpcOptions options = {.deadline_us = deadline_us, .wait_for_ready = TRUE};
  g_auto (MusterRope) question = {0};
  g_autoptr (GBytes) packed = make_query ();
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, NULL);
  muster_rope_append (&question, packed);
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (client, LIST_DEVICES, &question, &options, cancellable, &error);
  out->stage = stage_of_answer (error);
  char *text =
      describe_answer (out->stage, out, muster_clock_now_us (muster_system_clock ()) - began_us);
  g_free (out->text);
  out->text = text;
}

static MusterDiagnosis *
muster_diagnosis_copy (const MusterDiagnosis *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterDiagnosis *copy = g_memdup2 (self, sizeof *self);
  copy->resolved = g_strdup (self->resolved);
  copy->text = g_strdup (self->text);
  return copy;
}

static void
muster_diagnosis_free (MusterDiagnosis *self)
{
  if (self == NULL)
    return;
  muster_diagnosis_clear (self);
  g_free (self);
}

G_DEFINE_BOXED_TYPE (MusterDiagnosis, muster_diagnosis, muster_diagnosis_copy,
                     muster_diagnosis_free)
