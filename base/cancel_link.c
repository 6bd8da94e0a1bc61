// SPDX-License-Identifier: Apache-2.0
#include "base/cancel_link_private.h"

static void
on_cancelled (GCancellable *cancelled G_GNUC_UNUSED, gpointer either)
{
  g_cancellable_cancel (either);
}

static void
follow (MusterCancelLink *self, guint i, GCancellable *cancellable)
{
  if (cancellable == NULL)
    return;
  self->of[i] = g_object_ref (cancellable);
  self->ids[i] = g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled),
                                        g_object_ref (self->cancellable), g_object_unref);
}

MusterCancelLink
muster_cancel_link (GCancellable *a, GCancellable *b)
{
  MusterCancelLink self = {.cancellable = g_cancellable_new ()};
  follow (&self, 0, a);
  follow (&self, 1, b);
  return self;
}

void
muster_cancel_link_clear (MusterCancelLink *self)
{
  for (guint i = 0; i < G_N_ELEMENTS (self->of); i++) {
    g_cancellable_disconnect (self->of[i], self->ids[i]);
    g_clear_object (&self->of[i]);
  }
  g_clear_object (&self->cancellable);
}
