// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/main_loop.h"

MusterMainLoop
muster_main_loop_new (void)
{
  MusterMainLoop self = {
      .context = g_main_context_new (), .thread = g_thread_self (), .in_context = TRUE};
  g_main_context_push_thread_default (self.context);
  return self;
}

void
muster_main_loop_clear (MusterMainLoop *self)
{
  g_clear_object (&self->result);
  g_main_context_pop_thread_default (self->context);
  g_main_context_unref (self->context);
}

void
muster_main_loop_back (GObject *source G_GNUC_UNUSED, GAsyncResult *result, gpointer user_data)
{
  MusterMainLoop *self = user_data;
  self->in_context &= g_thread_self () == self->thread && g_main_context_is_owner (self->context);
  g_set_object (&self->result, result);
  self->n_back++;
}

static gboolean
on_patience_lost (gpointer user_data G_GNUC_UNUSED)
{
  g_error ("A call in the background never came back");
  return G_SOURCE_REMOVE;
}

void
muster_main_loop_until (MusterMainLoop *self, guint n)
{
  g_autoptr (GSource) patience = g_timeout_source_new_seconds (30);
  g_source_set_callback (patience, on_patience_lost, NULL, NULL);
  g_source_attach (patience, self->context);
  while (self->n_back < n)
    g_main_context_iteration (self->context, TRUE);
  g_source_destroy (patience);
}
