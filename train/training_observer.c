// SPDX-License-Identifier: Apache-2.0
#include "train/training_observer.h"

#include "base/fields_private.h"
#include "train/hooks/saver_observer_private.h"

/* --- the state --- */

MUSTER_DEFINE_OPTIONS (MusterTrainingState, muster_training_state)

/* --- the observer --- */

struct _MusterTrainingObserver {
  GObject parent;
  MusterTrainingListener listener;
};

G_DEFINE_FINAL_TYPE (MusterTrainingObserver, muster_training_observer, G_TYPE_OBJECT)

enum { WAITING, READY, LOST, ROLE, PROGRESS, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
emit_waiting (const char *message, const MusterReadiness *readiness G_GNUC_UNUSED,
              GPtrArray *reasons G_GNUC_UNUSED, gpointer self)
{
  g_signal_emit (self, signals[WAITING], 0, message);
}

static void
emit_ready (const MusterSessionReport *report, gint64 step, gpointer self)
{
  g_signal_emit (self, signals[READY], 0, step, report->restored_from);
}

static void
emit_lost (const GError *why, guint n, gint64 pause_us, gpointer self)
{
  g_signal_emit (self, signals[LOST], 0, why, n, pause_us);
}

static void
emit_role (gboolean is_chief, guint slot, gpointer self)
{
  g_signal_emit (self, signals[ROLE], 0, is_chief, slot);
}

static gboolean
emit_progress (const MusterTrainingState *state, gpointer self)
{
  gboolean stops = FALSE;
  g_signal_emit (self, signals[PROGRESS], 0, state, &stops);
  return !stops;
}

static void
muster_training_observer_class_init (MusterTrainingObserverClass *klass)
{
  const GType type = G_TYPE_FROM_CLASS (klass);
  signals[WAITING] = g_signal_new ("waiting", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                   G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[READY] = g_signal_new ("ready", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                 2, G_TYPE_INT64, G_TYPE_STRING);
  signals[LOST] = g_signal_new ("lost", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                3, G_TYPE_ERROR, G_TYPE_UINT, G_TYPE_INT64);
  signals[ROLE] = g_signal_new ("role", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                                2, G_TYPE_BOOLEAN, G_TYPE_UINT);
  signals[PROGRESS] =
      g_signal_new ("progress", type, G_SIGNAL_RUN_LAST, 0, g_signal_accumulator_true_handled, NULL,
                    NULL, G_TYPE_BOOLEAN, 1, MUSTER_TYPE_TRAINING_STATE);
  muster_save_signals_install (type);
}

static void
muster_training_observer_init (MusterTrainingObserver *self)
{
  self->listener = (MusterTrainingListener){.waiting = emit_waiting,
                                            .waiting_data = self,
                                            .ready = emit_ready,
                                            .lost = emit_lost,
                                            .role = emit_role,
                                            .progress = emit_progress,
                                            .saved = muster_save_signals_saved,
                                            .copied = muster_save_signals_copied,
                                            .save_failed = muster_save_signals_failed,
                                            .user_data = self};
}

MusterTrainingObserver *
muster_training_observer_new (void)
{
  return g_object_new (MUSTER_TYPE_TRAINING_OBSERVER, NULL);
}

const MusterTrainingListener *
muster_training_observer_listener (MusterTrainingObserver *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return &self->listener;
}
