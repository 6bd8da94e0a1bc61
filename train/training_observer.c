// SPDX-License-Identifier: Apache-2.0
#include "train/training_observer_private.h"

#include "base/fields_private.h"
#include "train/hooks/saver_observer_private.h"

#include <math.h>
#include <string.h>

/* --- the state --- */

MUSTER_DEFINE_OPTIONS (MusterTrainingState, muster_training_state)

/* --- an evaluation --- */

MUSTER_DEFINE_OPTIONS (MusterEvaluated, muster_evaluated)

double
muster_evaluated_value (const MusterEvaluated *self, const char *metric)
{
  g_return_val_if_fail (self != NULL && metric != NULL, 0);

  for (guint i = 0; self->values != NULL && i < self->values->len; i++) {
    const char *name = self->metrics[i], *slash = strchr (name, '/');
    if (strcmp (name, metric) == 0 || (slash != NULL && strcmp (slash + 1, metric) == 0))
      return g_array_index (self->values, double, i);
  }
  return NAN;
}

void
muster_evaluated_clear (MusterEvaluated *self)
{
  g_return_if_fail (self != NULL);

  g_free (self->prefix);
  g_strfreev (self->metrics);
  g_clear_pointer (&self->values, g_array_unref);
  g_free (self->why);
  *self = (MusterEvaluated){.step = -1};
}

/* --- the observer --- */

struct _MusterTrainingObserver {
  GObject parent;
};

G_DEFINE_FINAL_TYPE (MusterTrainingObserver, muster_training_observer, G_TYPE_OBJECT)

enum { WAITING, READY, LOST, ROLE, PROGRESS, EVALUATED, N_SIGNALS };
static guint signals[N_SIGNALS];

/* What they tell isn't copied. */
static void
muster_training_observer_class_init (MusterTrainingObserverClass *klass)
{
  const GType type = G_TYPE_FROM_CLASS (klass);
  signals[WAITING] = g_signal_new ("waiting", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                   G_TYPE_NONE, 3, G_TYPE_STRING | G_SIGNAL_TYPE_STATIC_SCOPE,
                                   MUSTER_TYPE_READINESS | G_SIGNAL_TYPE_STATIC_SCOPE,
                                   G_TYPE_PTR_ARRAY | G_SIGNAL_TYPE_STATIC_SCOPE);
  signals[READY] =
      g_signal_new ("ready", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                    MUSTER_TYPE_SESSION_REPORT | G_SIGNAL_TYPE_STATIC_SCOPE, G_TYPE_INT64);
  signals[LOST] =
      g_signal_new ("lost", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 3,
                    G_TYPE_ERROR | G_SIGNAL_TYPE_STATIC_SCOPE, G_TYPE_UINT, G_TYPE_INT64);
  signals[ROLE] = g_signal_new ("role", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                2, G_TYPE_BOOLEAN, G_TYPE_UINT);
  signals[PROGRESS] =
      g_signal_new ("progress", type, G_SIGNAL_RUN_LAST, 0, muster_observer_any, NULL, NULL,
                    G_TYPE_BOOLEAN, 1, MUSTER_TYPE_TRAINING_STATE | G_SIGNAL_TYPE_STATIC_SCOPE);
  signals[EVALUATED] =
      g_signal_new ("evaluated", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                    MUSTER_TYPE_EVALUATED | G_SIGNAL_TYPE_STATIC_SCOPE);
  muster_save_signals_install (type);
}

static void
muster_training_observer_init (MusterTrainingObserver *self G_GNUC_UNUSED)
{
}

MusterTrainingObserver *
muster_training_observer_new (void)
{
  return g_object_new (MUSTER_TYPE_TRAINING_OBSERVER, NULL);
}

void
muster_training_observer_waiting (const char *message, const MusterReadiness *readiness,
                                  GPtrArray *reasons, gpointer self)
{
  if (self != NULL)
    g_signal_emit (self, signals[WAITING], 0, message, readiness, reasons);
}

void
muster_training_observer_ready (MusterTrainingObserver *self, const MusterSessionReport *report,
                                gint64 step)
{
  if (self != NULL)
    g_signal_emit (self, signals[READY], 0, report, step);
}

void
muster_training_observer_lost (MusterTrainingObserver *self, const GError *why, guint n,
                               gint64 pause_us)
{
  if (self != NULL)
    g_signal_emit (self, signals[LOST], 0, why, n, pause_us);
}

void
muster_training_observer_role (MusterTrainingObserver *self, gboolean is_chief, guint slot)
{
  if (self != NULL)
    g_signal_emit (self, signals[ROLE], 0, is_chief, slot);
}

gboolean
muster_training_observer_has_listener (MusterTrainingObserver *self)
{
  return self != NULL && g_signal_has_handler_pending (self, signals[PROGRESS], 0, FALSE);
}

gboolean
muster_training_observer_progress (MusterTrainingObserver *self, const MusterTrainingState *state)
{
  gboolean stops = FALSE;
  if (self != NULL)
    g_signal_emit (self, signals[PROGRESS], 0, state, &stops);
  return stops;
}

void
muster_training_observer_evaluated (MusterTrainingObserver *self, const MusterEvaluated *evaluated)
{
  if (self != NULL)
    g_signal_emit (self, signals[EVALUATED], 0, evaluated);
}
