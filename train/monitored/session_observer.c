// SPDX-License-Identifier: Apache-2.0
#include "train/monitored/session_observer_private.h"

struct _MusterSessionObserver {
  GObject parent;
};

G_DEFINE_FINAL_TYPE (MusterSessionObserver, muster_session_observer, G_TYPE_OBJECT)

enum { WAITING, MADE, LOST, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
muster_session_observer_class_init (MusterSessionObserverClass *klass)
{
  const GType type = G_TYPE_FROM_CLASS (klass);
  signals[WAITING] = g_signal_new ("waiting", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                   G_TYPE_NONE, 3, G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE,
                                   MUSTER_TYPE_READINESS | G_SIGNAL_TYPE_STATIC_SCOPE,
                                   G_TYPE_PTR_ARRAY | G_SIGNAL_TYPE_STATIC_SCOPE);
  /* a handler may take the report: it isn't copied */
  signals[MADE] = g_signal_new ("made", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                2, MUSTER_TYPE_SESSION_REPORT | G_SIGNAL_TYPE_STATIC_SCOPE,
                                G_TYPE_ERROR | G_SIGNAL_TYPE_STATIC_SCOPE);
  signals[LOST] =
      g_signal_new ("lost", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 3,
                    G_TYPE_ERROR | G_SIGNAL_TYPE_STATIC_SCOPE, G_TYPE_UINT, G_TYPE_INT64);
}

static void
muster_session_observer_init (MusterSessionObserver *self G_GNUC_UNUSED)
{
}

MusterSessionObserver *
muster_session_observer_new (void)
{
  return g_object_new (MUSTER_TYPE_SESSION_OBSERVER, NULL);
}

void
muster_session_observer_waiting (const char *message, const MusterReadiness *readiness,
                                 GPtrArray *reasons, gpointer self)
{
  g_signal_emit (self, signals[WAITING], 0, message, readiness, reasons);
}

void
muster_session_observer_made (MusterSessionObserver *self, MusterSessionReport *report,
                              const GError *failure)
{
  if (self != NULL)
    g_signal_emit (self, signals[MADE], 0, report, failure);
}

void
muster_session_observer_lost (MusterSessionObserver *self, const GError *why, guint n,
                              gint64 pause_us)
{
  if (self != NULL)
    g_signal_emit (self, signals[LOST], 0, why, n, pause_us);
}
