// SPDX-License-Identifier: Apache-2.0
#include "server/http/pages.h"

#include "server/core/drain.h"
#include "server/core/server_private.h"
#include "server/core/service.h"

gboolean
muster_pages_serves (MusterServer *server)
{
  return !g_atomic_int_get (&server->is_stopping);
}

/* --- ready --- */

const char *
muster_pages_why_not_ready (const MusterAnnouncement *chief)
{
  if (!chief->prepared)
    return "not prepared yet";
  return chief->is_ready ? NULL : "its ready op reports it not ready";
}

/* "waiting for tasks: 1 of at least 2", or NULL. (transfer full) */
static char *
why_waiting (MusterServer *server, const char *model)
{
  MusterMemberCounts counts;
  muster_member_registry_count (server->members, model, &counts);
  return muster_member_counts_why (&counts);
}

/* Adds a line for a model that isn't ready, unless its job is over: nobody waits for that. */
static void
append_model (GString *text, MusterServer *server, const MusterAnnouncement *chief)
{
  g_autofree char *waits = why_waiting (server, chief->model);
  const char *why = muster_pages_why_not_ready (chief);
  if (chief->phase == MUSTER_CHIEF_OVER || (why == NULL && waits == NULL))
    return;
  g_autofree char *described = muster_announcement_describe (chief);
  g_string_append_printf (text, "%s: %s; chief %s\n", chief->model, why != NULL ? why : waits,
                          described);
}

/* A line for each expected model that no chief has announced, or whose job is over. */
static void
append_expected (GString *text, MusterServer *server)
{
  for (char **it = server->expected; it != NULL && *it != NULL; it++) {
    g_autoptr (MusterAnnouncement) chief = muster_chief_registry_find (server->registry, *it);
    g_autofree char *waits = why_waiting (server, *it);
    if (chief == NULL && waits != NULL)
      g_string_append_printf (text, "%s: %s\n", *it, waits);
    else if (chief == NULL)
      g_string_append_printf (text, "%s: no chief has ever registered\n", *it);
    else if (chief->phase == MUSTER_CHIEF_OVER)
      g_string_append_printf (text, "%s: its job is over\n", *it);
  }
}

char *
muster_pages_ready (MusterServer *server, gboolean *is_ready)
{
  g_autoptr (GPtrArray) chiefs = muster_chief_registry_list (server->registry);
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < chiefs->len; i++)
    append_model (text, server, chiefs->pdata[i]);
  append_expected (text, server);
  gboolean serves = muster_pages_serves (server);
  g_autofree char *failure = muster_server_master_failure (server);
  if (failure != NULL)
    g_string_append (text, "the gateway can't use its master; see `muster status`\n");
  if (!serves)
    g_string_append (text, "the server is stopping\n");
  else if (muster_server_drain_left_us (server) > 0)
    g_string_append (text, "the server is draining\n");
  *is_ready = text->len == 0;
  if (*is_ready)
    g_string_append_printf (text, "ready: %u of %u models\n", chiefs->len, chiefs->len);
  return g_string_free (text, FALSE);
}
