// SPDX-License-Identifier: Apache-2.0
#include "rpc/client/resolve_private.h"

#include "base/clock.h"

static void
on_resolved (GObject *resolver G_GNUC_UNUSED, GAsyncResult *result, gpointer data)
{
  GAsyncResult **resolution = data;
  *resolution = g_object_ref (result);
}

static gboolean
on_late (gpointer cancellable)
{
  g_cancellable_cancel (cancellable);
  return G_SOURCE_REMOVE;
}

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer find_session)
{
  g_cancellable_cancel (find_session);
}

/* In a separate context, so that it ends at the deadline: GLib's resolver returns at once from a
 * cancelled lookup, whatever its thread waits for. */
static GList *
resolve_in (GMainContext *context, const char *host, gint64 deadline_us, GCancellable *cancellable,
            GError **error)
{
  g_autoptr (GResolver) resolver = g_resolver_get_default ();
  g_autoptr (GCancellable) stop = g_cancellable_new ();
  g_autoptr (GAsyncResult) resolution = NULL;
  g_autoptr (GSource) timer = g_timeout_source_new (0);
  g_source_set_ready_time (timer, deadline_us == MUSTER_WAIT_FOREVER ? -1 : deadline_us);
  g_source_set_callback (timer, on_late, stop, NULL);
  g_source_attach (timer, context);
  gulong id = cancellable != NULL
                  ? g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), stop, NULL)
                  : 0;
  g_resolver_lookup_by_name_async (resolver, host, stop, on_resolved, &resolution);
  while (resolution == NULL)
    g_main_context_iteration (context, TRUE);
  if (id != 0)
    g_cancellable_disconnect (cancellable, id);
  g_source_destroy (timer);
  return g_resolver_lookup_by_name_finish (resolver, resolution, error);
}

static char *
say_late (gint64 since_us, GCancellable *cancellable)
{
  g_autofree char *waited =
      muster_format_duration (muster_clock_now_us (muster_system_clock ()) - since_us);
  gboolean is_cancelled = g_cancellable_is_cancelled (cancellable);
  return g_strdup_printf ("no answer from the name service%s (%s)",
                          is_cancelled ? " until cancelled" : "", waited);
}

GList *
muster_resolve_host (const char *host, gint64 deadline_us, GCancellable *cancellable, char **reason)
{
  gint64 since_us = muster_clock_now_us (muster_system_clock ());
  g_autoptr (GError) error = NULL;
  g_autoptr (GMainContext) context = g_main_context_new ();
  g_main_context_push_thread_default (context);
  GList *addresses = resolve_in (context, host, deadline_us, cancellable, &error);
  g_main_context_pop_thread_default (context);
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    *reason = say_late (since_us, cancellable);
  else if (g_error_matches (error, G_RESOLVER_ERROR, G_RESOLVER_ERROR_NOT_FOUND))
    *reason = g_strdup ("unknown host name");
  else if (error != NULL)
    *reason = g_strdup (error->message);
  return addresses;
}
