// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/local_peers_private.h"

#include "base/log_private.h"

#include <sys/socket.h>
#include <sys/un.h>

/* Exists once per process, as accept4 () does: docs/decisions/0018. */
static GMutex lock;
static GHashTable *allowed; /* guarded by lock: path -> GArray of guint32 */
static gint n_allowed;      /* atomic: of paths */

void
muster_local_peers_allow (const char *path, const guint32 *users, gsize n_users)
{
  GArray *list = g_array_new (FALSE, FALSE, sizeof *users);
  g_array_append_vals (list, users, (guint)n_users);
  g_mutex_lock (&lock);
  if (allowed == NULL)
    allowed =
        g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
  g_hash_table_replace (allowed, g_strdup (path), list);
  g_atomic_int_set (&n_allowed, (gint)g_hash_table_size (allowed));
  g_mutex_unlock (&lock);
}

void
muster_local_peers_forget (const char *path)
{
  g_mutex_lock (&lock);
  g_hash_table_remove (allowed, path);
  g_atomic_int_set (&n_allowed, (gint)g_hash_table_size (allowed));
  g_mutex_unlock (&lock);
}

static gboolean
may_connect (const char *path, guint32 user)
{
  g_mutex_lock (&lock);
  const GArray *list = g_hash_table_lookup (allowed, path);
  gboolean is_found = list == NULL;
  for (guint i = 0; !is_found && i < list->len; i++)
    is_found = g_array_index (list, guint32, i) == user;
  g_mutex_unlock (&lock);
  return is_found;
}

static void
log_refusal (const char *path, guint32 user)
{
  static MusterLogLimit refusals;
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (!muster_log_bounded (G_LOG_LEVEL_INFO, &refusals, left_out))
    return;
  g_autofree char *address = g_strconcat ("unix:", path, NULL);
  muster_log (G_LOG_LEVEL_INFO, "refused", "MUSTER_ADDRESS", address, "MUSTER_USER",
              MUSTER_LOG_INT (user), "MUSTER_LEFT_OUT", left_out, "MESSAGE",
              "a connection of user %u was refused: not in --allow-user", user);
}

gboolean
muster_local_peers_are_allowed (int listener, int connection)
{
  struct sockaddr_un address = {0};
  struct ucred peer;
  socklen_t size = sizeof address - 1, n_peer = sizeof peer;
  if (g_atomic_int_get (&n_allowed) == 0)
    return TRUE;
  if (getsockname (listener, (struct sockaddr *)&address, &size) != 0 ||
      address.sun_family != AF_UNIX)
    return TRUE;
  if (getsockopt (connection, SOL_SOCKET, SO_PEERCRED, &peer, &n_peer) != 0)
    return FALSE;
  const gboolean is_allowed = may_connect (address.sun_path, peer.uid);
  if (!is_allowed)
    log_refusal (address.sun_path, peer.uid);
  return is_allowed;
}
