// SPDX-License-Identifier: Apache-2.0
// Clients that speak bare HTTP/2 and ask for more than a client of ours would. Each loses its
// connection, while others are served.
#include "tests/gtest_shim.h"
#include "tests/rpc/certificates.h"
#include "tests/rpc/echo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ECHO "/test.Echo/Echo"
#define WAIT "/test.Echo/Wait"
#define OPEN "/test.Echo/Open"

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, CONTINUATION = 9 };
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

/* --- the server --- */

typedef struct {
  MusterRpcServer *server;
  MusterRpcCredentials *of_server, *of_client; /* (owned) (nullable) */
  char *address;                               /* (owned) */
  int port;
} Served;

static void
on_echo (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  muster_rpc_call_reply (call, NULL);
}

static void
on_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer call)
{
  muster_rpc_call_finish (call, NULL);
}

/* Ends with its caller. */
static void
on_wait (MusterRpcCall *call, GBytes *request G_GNUC_UNUSED, gpointer data G_GNUC_UNUSED)
{
  g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_gone),
                         muster_rpc_call_ref (call), (GDestroyNotify)muster_rpc_call_unref);
}

static void
served_start (Served *self, const MusterRpcServerLimits *limits)
{
  signal (SIGPIPE, SIG_IGN);
  g_autoptr (GError) error = NULL;
  self->server = muster_rpc_server_new_with_limits (limits);
  muster_rpc_server_add_method (self->server, ECHO, on_echo, NULL);
  muster_rpc_server_add_method (self->server, WAIT, on_wait, NULL);
  muster_rpc_server_add_open_method (self->server, OPEN, on_wait, NULL);
  self->port = muster_rpc_server_listen (self->server, "127.0.0.1:0", self->of_server, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  self->address = g_strdup_printf ("127.0.0.1:%d", self->port);
  muster_rpc_server_start (self->server);
}

static void
served_clear (Served *self)
{
  muster_rpc_server_free (self->server);
  muster_rpc_credentials_unref (self->of_server);
  muster_rpc_credentials_unref (self->of_client);
  g_free (self->address);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Served, served_clear)

static void
expect_served (Served *self)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (self->address, self->of_client);
  MusterRpcOptions options = echo_options ();
  g_auto (MusterRope) request = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&request), (const guint8 *)"hello", 5);
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (client, ECHO, &request, &options, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
}

/* --- a guest --- */

typedef struct {
  in_port_t from; /* the port that it comes from; 0: any */
  int fd;
  SSL *tls; /* (owned) (nullable) */
  guint32 last_id;
  gboolean is_over; /* the server has ended the connection */
} Guest;

static void
guest_send (Guest *self, GByteArray *bytes)
{
  for (gsize at = 0; at < bytes->len && !self->is_over;) {
    const gssize n = self->tls != NULL
                         ? SSL_write (self->tls, bytes->data + at, (int)(bytes->len - at))
                         : send (self->fd, bytes->data + at, bytes->len - at, MSG_NOSIGNAL);
    self->is_over = n <= 0;
    at += n > 0 ? (gsize)n : 0;
  }
  g_byte_array_set_size (bytes, 0);
}

static void
put_frame (GByteArray *out, guint8 type, guint8 flags, guint32 id, const void *payload, gsize size)
{
  const guint8 head[9] = {
      (guint8)(size >> 16), (guint8)(size >> 8), (guint8)size,      type,      flags,
      (guint8)(id >> 24),   (guint8)(id >> 16),  (guint8)(id >> 8), (guint8)id};
  g_byte_array_append (out, head, sizeof head);
  if (size > 0)
    g_byte_array_append (out, payload, (guint)size);
}

static void
put_text (GByteArray *block, const char *text)
{
  const guint8 size = (guint8)strlen (text);
  g_byte_array_append (block, &size, 1);
  g_byte_array_append (block, (const guint8 *)text, size);
}

static void
put_header (GByteArray *block, const char *name, const char *value)
{
  g_byte_array_append (block, (const guint8 *)"", 1);
  put_text (block, name);
  put_text (block, value);
}

/* The headers of a call, of which more may follow. */
static guint32
put_call (Guest *self, GByteArray *out, guint8 flags, const char *path)
{
  g_autoptr (GByteArray) block = g_byte_array_new ();
  put_header (block, ":method", "POST");
  put_header (block, ":scheme", "http");
  put_header (block, ":path", path);
  put_header (block, ":authority", "localhost");
  put_header (block, "te", "trailers");
  put_header (block, "content-type", "application/grpc");
  const guint32 id = self->last_id == 0 ? 1 : self->last_id + 2;
  put_frame (out, HEADERS, flags, id, block->data, block->len);
  return self->last_id = id;
}

static void
put_message (GByteArray *out, guint32 id)
{
  put_frame (out, DATA, END_STREAM, id, "\0\0\0\0", 5);
}

/* At an address of its own, so that nobody else takes its port, which is free again as soon as it
 * is closed. */
static void
bind_guest (Guest *self)
{
  const int yes = 1;
  const struct linger at_once = {.l_onoff = 1};
  const struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = self->from,
                                      .sin_addr.s_addr = htonl (INADDR_LOOPBACK + 1)};
  setsockopt (self->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  setsockopt (self->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  MUSTER_EXPECT_EQ (bind (self->fd, (const struct sockaddr *)&address, sizeof address), 0);
}

static in_port_t
port_of (const Guest *guest)
{
  struct sockaddr_in address = {0};
  socklen_t size = sizeof address;
  MUSTER_EXPECT_EQ (getsockname (guest->fd, (struct sockaddr *)&address, &size), 0);
  return address.sin_port;
}

static gboolean
connect_guest (Guest *self, Served *served)
{
  const struct timeval bound = {.tv_sec = 30};
  const struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons ((guint16)served->port),
                                      .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  *self = (Guest){.from = self->from, .fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  bind_guest (self);
  setsockopt (self->fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  setsockopt (self->fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
  return connect (self->fd, (const struct sockaddr *)&address, sizeof address) == 0;
}

static void
connect_tls (Guest *self)
{
  SSL_CTX *context = SSL_CTX_new (TLS_client_method ());
  SSL_CTX_set_alpn_protos (context, (const guint8 *)"\2h2", 3);
  self->tls = SSL_new (context);
  SSL_CTX_free (context);
  SSL_set_fd (self->tls, self->fd);
  self->is_over = SSL_connect (self->tls) != 1;
}

/* Holds what is sent back, or sends it at once. */
static void
cork (const Guest *guest, int is_held)
{
  setsockopt (guest->fd, IPPROTO_TCP, TCP_CORK, &is_held, sizeof is_held);
}

/* Doesn't acknowledge the settings unless it is asked to. */
static void
begin_http2 (Guest *self, gboolean settles)
{
  g_autoptr (GByteArray) out = g_byte_array_new ();
  g_byte_array_append (out, (const guint8 *)"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
  put_frame (out, SETTINGS, 0, 0, NULL, 0);
  if (settles)
    put_frame (out, SETTINGS, ACK, 0, NULL, 0);
  guest_send (self, out);
}

static void
guest_start (Guest *self, Served *served, gboolean settles)
{
  MUSTER_ASSERT_TRUE (connect_guest (self, served));
  if (served->of_server != NULL)
    connect_tls (self);
  begin_http2 (self, settles);
}

static void
guest_clear (Guest *self)
{
  if (self->tls != NULL)
    SSL_free (self->tls);
  close (self->fd);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Guest, guest_clear)

/* Whether the server ends the connection, within half a minute. */
static gboolean
guest_is_ended (Guest *self)
{
  char bytes[4096];
  gssize n = self->is_over ? 0 : 1;
  while (n > 0)
    n = self->tls != NULL ? SSL_read (self->tls, bytes, sizeof bytes)
                          : recv (self->fd, bytes, sizeof bytes, 0);
  return self->is_over || n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* --- what they do --- */

static void
ask (Guest *self, const char *path, guint n, gboolean with_message)
{
  g_autoptr (GByteArray) out = g_byte_array_new ();
  for (guint i = 0; i < n; i++) {
    const guint32 id = put_call (self, out, END_HEADERS, path);
    if (with_message)
      put_message (out, id);
  }
  guest_send (self, out);
}

static void
wait_until_calls (Served *self, guint n)
{
  for (int i = 0; i < 3000 && muster_rpc_server_n_calls (self->server) != n; i++)
    g_usleep (10000);
  MUSTER_EXPECT_EQ (muster_rpc_server_n_calls (self->server), n);
}

/* Who loses its connection may see that before it is counted. */
static void
wait_until_ended (Served *self, guint64 n)
{
  for (int i = 0; i < 3000 && muster_rpc_server_n_ended (self->server) < n; i++)
    g_usleep (10000);
  MUSTER_EXPECT_EQ (muster_rpc_server_n_ended (self->server), n);
}

MUSTER_TEST (Guests, that_send_no_request_lose_the_connection_that_has_most_calls)
{
  g_auto (Served) f = {0};
  served_start (&f, &(MusterRpcServerLimits){.bare = 60});
  const guint64 n_ended = muster_rpc_server_n_ended (f.server);
  g_auto (Guest) few = {0}, many = {0}, more = {0};
  guest_start (&few, &f, TRUE);
  guest_start (&many, &f, TRUE);
  guest_start (&more, &f, TRUE);
  ask (&few, ECHO, 5, FALSE);
  ask (&many, ECHO, 40, FALSE);
  wait_until_calls (&f, 45); /* the server reads two connections at once */
  ask (&more, ECHO, 30, FALSE);

  MUSTER_EXPECT_TRUE (guest_is_ended (&many));

  expect_served (&f);
  wait_until_ended (&f, n_ended + 1);
  ask (&few, ECHO, 1, TRUE);
  char byte;
  MUSTER_EXPECT_EQ (recv (few.fd, &byte, 1, 0), 1);
}

/* Who sends requests has more calls than each of the guests, but calls that need a token. */
MUSTER_TEST (Guests, that_together_hold_calls_without_a_token_end_none_that_has_one)
{
  g_auto (Served) f = {0};
  served_start (&f, &(MusterRpcServerLimits){.bare = 60});
  const guint64 n_ended = muster_rpc_server_n_ended (f.server);
  g_auto (Guest) first = {0}, second = {0}, third = {0}, sender = {0};
  Guest *const guests[] = {&first, &second, &third};
  for (gsize i = 0; i < G_N_ELEMENTS (guests); i++) {
    guest_start (guests[i], &f, TRUE);
    ask (guests[i], OPEN, 15, TRUE);
  }
  guest_start (&sender, &f, TRUE);
  wait_until_calls (&f, 45);

  ask (&sender, ECHO, 16, FALSE);

  wait_until_ended (&f, n_ended + 1);
  wait_until_calls (&f, 46); /* a guest has lost its 15 */
  g_autoptr (GByteArray) out = g_byte_array_new ();
  for (guint32 id = 1; id < 32; id += 2)
    put_message (out, id);
  guest_send (&sender, out);
  wait_until_calls (&f, 30);
  expect_served (&f);
}

/* The connection is a new one, and counts as such. */
MUSTER_TEST (Guests, that_come_back_from_the_same_port_lose_the_connection_again)
{
  g_auto (Served) f = {0};
  served_start (&f, &(MusterRpcServerLimits){.bare = 60});
  const guint64 n_ended = muster_rpc_server_n_ended (f.server);
  in_port_t port = 0;
  for (guint64 i = 1; i <= 3; i++) {
    g_auto (Guest) guest = {.from = port};
    guest_start (&guest, &f, TRUE);
    port = port_of (&guest);
    ask (&guest, OPEN, 61, TRUE);
    MUSTER_ASSERT_TRUE (guest_is_ended (&guest));
    wait_until_calls (&f, 0);
    wait_until_ended (&f, n_ended + i);
  }
  expect_served (&f);
}

/* Nobody has let them in: so their calls are bounded as those that say nothing. */
MUSTER_TEST (Guests, that_hold_calls_for_which_no_token_is_needed_lose_the_connection)
{
  g_auto (Served) f = {0};
  served_start (&f, &(MusterRpcServerLimits){.bare = 60});
  g_auto (Guest) guest = {0};
  guest_start (&guest, &f, TRUE);

  ask (&guest, OPEN, 61, TRUE);

  MUSTER_EXPECT_TRUE (guest_is_ended (&guest));
  expect_served (&f);
}

MUSTER_TEST (Guests, that_ignore_the_settings_lose_the_connection)
{
  g_auto (Served) f = {0};
  served_start (&f, &(MusterRpcServerLimits){.streams = 70});
  g_auto (Guest) guest = {0};
  guest_start (&guest, &f, FALSE);

  ask (&guest, WAIT, 71, TRUE);

  MUSTER_EXPECT_TRUE (guest_is_ended (&guest));
  expect_served (&f);
}

/* A value of a gigabyte; what is sent is far below what would harm this process. */
static void
send_headers_without_end (Guest *self)
{
  static const guint8 huge[] = {0, 1, 'x', 0x7f, 0x80, 0x80, 0x80, 0x80, 4};
  g_autoptr (GByteArray) out = g_byte_array_new ();
  g_autofree guint8 *piece = g_malloc0 (16384);
  memset (piece, 'a', 16384);
  (void)put_call (self, out, 0, ECHO);
  put_frame (out, CONTINUATION, 0, self->last_id, huge, sizeof huge);
  for (guint i = 0; i < 1000 && !self->is_over; i++) {
    put_frame (out, CONTINUATION, 0, self->last_id, piece, 16384);
    guest_send (self, out);
  }
}

MUSTER_TEST (Guests, that_send_headers_without_end_lose_the_connection)
{
  g_auto (Served) f = {0};
  served_start (&f, &(MusterRpcServerLimits){0});
  g_auto (Guest) guest = {0};
  guest_start (&guest, &f, TRUE);

  send_headers_without_end (&guest);

  MUSTER_EXPECT_TRUE (guest_is_ended (&guest));
  expect_served (&f);
}

MUSTER_TEST (Guests, that_take_back_calls_at_once_lose_the_connection)
{
  g_auto (Served) f = {0};
  served_start (&f, &(MusterRpcServerLimits){0});
  g_auto (Guest) guest = {0};
  guest_start (&guest, &f, TRUE);

  g_autoptr (GByteArray) out = g_byte_array_new ();
  for (guint i = 0; i < 10000 && !guest.is_over; i++) {
    const guint32 id = put_call (&guest, out, END_HEADERS, ECHO);
    put_frame (out, RST_STREAM, 0, id, "\0\0\0\10", 4);
    if (i % 100 == 99)
      guest_send (&guest, out);
  }

  MUSTER_EXPECT_TRUE (guest_is_ended (&guest));
  expect_served (&f);
}

static MusterRpcCredentials *
read_credentials (const char *own, const char *ca)
{
  const char *folder = muster_test_tmpdir ();
  g_autofree char *certificate = own != NULL ? g_strdup_printf ("%s/%s.pem", folder, own) : NULL;
  g_autofree char *key = own != NULL ? g_strdup_printf ("%s/%s.key", folder, own) : NULL;
  g_autofree char *ca_file = ca != NULL ? g_strdup_printf ("%s/%s", folder, ca) : NULL;
  const MusterRpcSecurity security = {
      .certificate_file = certificate, .key_file = key, .ca_file = ca_file};
  g_autoptr (GError) error = NULL;
  MusterRpcCredentials *made = muster_rpc_credentials_new (&security, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return made;
}

MUSTER_TEST (Guests, over_tls_lose_the_connection_too)
{
  certificates_make (muster_test_tmpdir ());
  g_auto (Served) f = {.of_server = read_credentials ("server", NULL),
                       .of_client = read_credentials (NULL, "ca.pem")};
  served_start (&f, &(MusterRpcServerLimits){0});
  g_auto (Guest) guest = {0};
  guest_start (&guest, &f, TRUE);
  MUSTER_ASSERT_FALSE (guest.is_over);

  send_headers_without_end (&guest);

  MUSTER_EXPECT_TRUE (guest_is_ended (&guest));
  MUSTER_EXPECT_GE (muster_rpc_server_n_ended (f.server), 1);
  expect_served (&f);
}

/* With the end of the handshake: gRPC reads that before it has sent the settings, and takes it for
 * the acknowledgement of none. */
MUSTER_TEST (Guests, that_acknowledge_the_settings_before_they_come_lose_the_connection)
{
  certificates_make (muster_test_tmpdir ());
  g_auto (Served) f = {.of_server = read_credentials ("server", NULL),
                       .of_client = read_credentials (NULL, "ca.pem")};
  served_start (&f, &(MusterRpcServerLimits){0});
  const guint64 n_ended = muster_rpc_server_n_ended (f.server);
  g_auto (Guest) guest = {0};
  MUSTER_ASSERT_TRUE (connect_guest (&guest, &f));
  cork (&guest, TRUE);
  connect_tls (&guest);
  begin_http2 (&guest, TRUE);
  cork (&guest, FALSE);

  ask (&guest, ECHO, 1001, TRUE);

  MUSTER_EXPECT_TRUE (guest_is_ended (&guest));
  MUSTER_EXPECT_EQ (muster_rpc_server_n_ended (f.server), n_ended + 1);
  expect_served (&f);
}

/* Nothing of what they send is read as HTTP/2. */
MUSTER_TEST (Guests, without_a_client_certificate_end_in_the_handshake)
{
  certificates_make (muster_test_tmpdir ());
  g_auto (Served) f = {.of_server = read_credentials ("server", "ca.pem"),
                       .of_client = read_credentials ("client", "ca.pem")};
  served_start (&f, &(MusterRpcServerLimits){0});
  const guint64 n_ended = muster_rpc_server_n_ended (f.server);
  g_auto (Guest) guest = {0};
  guest_start (&guest, &f, TRUE);

  send_headers_without_end (&guest);

  MUSTER_EXPECT_TRUE (guest_is_ended (&guest));
  MUSTER_EXPECT_EQ (muster_rpc_server_n_ended (f.server), n_ended);
  expect_served (&f);
}
