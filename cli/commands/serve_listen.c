// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/serve_listen.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log_private.h"
#include "rpc/address_private.h"

#include <pwd.h>
#include <signal.h>
#include <string.h>

#define MAX_ENTRY      (64 << 10)
#define IN_USE_POLL_US (20 * MUSTER_MILLISECOND)

void
muster_serve_append_port (GString *text, const char *what, const char *scheme, const char *address,
                          int port)
{
  const char *colon = strrchr (address, ':');
  if (muster_address_unix_path (address) != NULL)
    g_string_append_printf (text, "%s %s\n", what, address);
  else
    g_string_append_printf (text, "%s %s://%.*s:%d\n", what, scheme, (int)(colon - address),
                            address, port);
}

void
muster_serve_set_signals_end (gboolean do_end)
{
  sigset_t ends;
  sigemptyset (&ends);
  sigaddset (&ends, SIGINT);
  sigaddset (&ends, SIGTERM);
  pthread_sigmask (do_end ? SIG_UNBLOCK : SIG_BLOCK, &ends, NULL);
}

/* Only around the pause: a thread that is created has the mask of the one that creates it. */
static void
pause_before_retry (gint64 now_us)
{
  muster_serve_set_signals_end (TRUE);
  (void)muster_clock_wait_until (muster_system_clock (), now_us + IN_USE_POLL_US, NULL, NULL);
  muster_serve_set_signals_end (FALSE);
}

static int
listen_until (MusterServer *server, const char *address, gint64 until_us, GError **error)
{
  for (gboolean is_first = TRUE;; is_first = FALSE) {
    g_autoptr (GError) why = NULL;
    const int port = muster_server_listen (server, address, &why);
    const gint64 now_us = muster_clock_now_us (muster_system_clock ());
    if (port != 0)
      return port;
    if (!muster_error_is (why, MUSTER_ERROR_UNAVAILABLE) || now_us >= until_us) {
      g_propagate_error (error, g_steal_pointer (&why));
      return 0;
    }
    if (is_first)
      muster_log (G_LOG_LEVEL_MESSAGE, "listen", "MESSAGE", "%s; waiting for it", why->message);
    pause_before_retry (now_us);
  }
}

gboolean
muster_serve_listen (MusterServer *server, char **addresses, gboolean has_tls, gint64 patience_us,
                     GString *text, GError **error)
{
  const gint64 until_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), patience_us);
  for (char **at = addresses; *at != NULL; at++) {
    const int port = listen_until (server, *at, until_us, error);
    if (port == 0)
      return FALSE;
    muster_serve_append_port (text, "serving", has_tls ? "grpcs" : "grpc", *at, port);
  }
  return TRUE;
}

/* Any free port may be asked for twice. */
static gboolean
is_asked_twice (char **addresses, const char *address)
{
  guint n = 0;
  for (char **at = addresses; *at != NULL; at++)
    n += g_str_equal (*at, address);
  return n > 1 && !g_str_has_suffix (address, ":0");
}

gboolean
muster_serve_may_listen (const MusterServerOptions *server, char **addresses, GError **error)
{
  for (char **at = addresses; *at != NULL; at++) {
    if (!muster_server_may_listen (server, *at, error))
      return FALSE;
    if (is_asked_twice (addresses, *at))
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "--listen has '%s' twice", *at);
  }
  return TRUE;
}

static gboolean
is_reached_by (const char *listens, const char *host)
{
  static const char *const any[] = {"0.0.0.0", "::", NULL};
  static const char *const loopback[] = {"localhost", "127.0.0.1", "::1", NULL};
  if (g_ascii_strcasecmp (listens, host) == 0)
    return TRUE;
  if (!g_strv_contains (loopback, host))
    return FALSE;
  return g_strv_contains (any, listens) ||
         (g_strv_contains (loopback, listens) &&
          (g_str_equal (listens, "localhost") || g_str_equal (host, "localhost")));
}

static gboolean
is_same (const char *listens, const char *address)
{
  g_autofree char *own = NULL, *host = NULL;
  guint16 own_port, port;
  return g_str_equal (listens, address) || (muster_address_parse (listens, &own, &own_port, NULL) &&
                                            muster_address_parse (address, &host, &port, NULL) &&
                                            own_port == port && is_reached_by (own, host));
}

gboolean
muster_serve_is_own (char **addresses, const char *address)
{
  for (char **at = addresses; *at != NULL; at++)
    if (is_same (*at, address))
      return TRUE;
  return FALSE;
}

gboolean
muster_serve_is_exposed (char **addresses)
{
  for (char **at = addresses; *at != NULL; at++)
    if (!muster_address_is_loopback (*at))
      return TRUE;
  return FALSE;
}

static gboolean
has_unix_socket (char **addresses)
{
  for (char **at = addresses; *at != NULL; at++)
    if (muster_address_unix_path (*at) != NULL)
      return TRUE;
  return FALSE;
}

/* A name, or a number. */
static gboolean
find_user (const char *name, guint32 *user, GError **error)
{
  struct passwd entry, *found = NULL;
  g_autofree char *buffer = g_malloc (MAX_ENTRY);
  guint64 number;
  if (getpwnam_r (name, &entry, buffer, MAX_ENTRY, &found) == 0 && found != NULL) {
    *user = found->pw_uid;
    return TRUE;
  }
  if (g_ascii_string_to_unsigned (name, 10, 0, G_MAXUINT32 - 1, &number, NULL)) {
    *user = (guint32)number;
    return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --allow-user '%s': no user has this name", name);
}

GArray *
muster_serve_users (char **names, char **addresses, GError **error)
{
  g_autoptr (GArray) users = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (names != NULL && !has_unix_socket (addresses)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "--allow-user has no effect without a Unix socket; add --listen=unix:/PATH");
    return NULL;
  }
  for (char **name = names; name != NULL && *name != NULL; name++) {
    guint32 user;
    if (!find_user (*name, &user, error))
      return NULL;
    g_array_append_val (users, user);
  }
  return g_steal_pointer (&users);
}
