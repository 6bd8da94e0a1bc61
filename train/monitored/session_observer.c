// SPDX-License-Identifier: Apache-2.0
#include "train/monitored/session_observer.h"

struct _MusterSessionObserver {
  GObject parent;
  MusterSessionListener listener;
};

G_DEFINE_FINAL_TYPE (MusterSessionObserver, muster_session_observer, G_TYPE_OBJECT)

enum { LOST, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
emit_lost (const GError *why, guint n, gint64 pause_us, gpointer self)
{
  g_signal_emit (self, signals[LOST], 0, why, n, pause_us);
}

static void
muster_session_observer_class_init (MusterSessionObserverClass *klass)
{
  signals[LOST] = g_signal_new ("lost", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                NULL, G_TYPE_NONE, 3, G_TYPE_ERROR, G_TYPE_UINT, G_TYPE_INT64);
}

static void
muster_session_observer_init (MusterSessionObserver *self)
{
  self->listener = (MusterSessionListener){.lost = emit_lost, .user_data = self};
}

MusterSessionObserver *
muster_session_observer_new (void)
{
  return g_object_new (MUSTER_TYPE_SESSION_OBSERVER, NULL);
}

const MusterSessionListener *
muster_session_observer_listener (MusterSessionObserver *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return &self->listener;
}
