// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/saver_observer_private.h"

/* --- the signals that are shared --- */

#define SAVED  "saved"
#define COPIED "copied"
#define FAILED "save-failed"

gboolean
muster_observer_any (GSignalInvocationHint *hint G_GNUC_UNUSED, GValue *sum, const GValue *one,
                     gpointer unused G_GNUC_UNUSED)
{
  g_value_set_boolean (sum, g_value_get_boolean (sum) || g_value_get_boolean (one));
  return TRUE;
}

void
muster_save_signals_install (GType type)
{
  g_signal_new (SAVED, type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                MUSTER_TYPE_SAVED | G_SIGNAL_TYPE_STATIC_SCOPE);
  g_signal_new (COPIED, type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                MUSTER_TYPE_TIER_COPIED | G_SIGNAL_TYPE_STATIC_SCOPE);
  g_signal_new (FAILED, type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 4, G_TYPE_INT64,
                G_TYPE_ERROR | G_SIGNAL_TYPE_STATIC_SCOPE, G_TYPE_UINT, G_TYPE_UINT);
}

void
muster_save_signals_saved (gpointer observer, const MusterSaved *saved)
{
  if (observer != NULL)
    g_signal_emit_by_name (observer, SAVED, saved);
}

void
muster_save_signals_copied (gpointer observer, const MusterTierCopied *copied)
{
  if (observer != NULL)
    g_signal_emit_by_name (observer, COPIED, copied);
}

void
muster_save_signals_failed (gpointer observer, gint64 step, const GError *why, guint n_in_a_row,
                            guint n_left_out)
{
  if (observer != NULL)
    g_signal_emit_by_name (observer, FAILED, step, why, n_in_a_row, n_left_out);
}

gboolean
muster_save_signals_has_listener (gpointer observer)
{
  return observer != NULL &&
         g_signal_has_handler_pending (observer, g_signal_lookup (SAVED, G_OBJECT_TYPE (observer)),
                                       0, FALSE);
}

/* --- the observer --- */

struct _MusterSaverObserver {
  GObject parent;
};

G_DEFINE_FINAL_TYPE (MusterSaverObserver, muster_saver_observer, G_TYPE_OBJECT)

enum { BEGIN, BEFORE_SAVE, AFTER_SAVE, END, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
muster_saver_observer_class_init (MusterSaverObserverClass *klass)
{
  const GType type = G_TYPE_FROM_CLASS (klass);
  signals[BEGIN] =
      g_signal_new ("begin", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[BEFORE_SAVE] =
      g_signal_new ("before-save", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 4,
                    MUSTER_TYPE_SESSION, G_TYPE_INT64, G_TYPE_INT64, G_TYPE_CANCELLABLE);
  signals[AFTER_SAVE] = g_signal_new (
      "after-save", type, G_SIGNAL_RUN_LAST, 0, muster_observer_any, NULL, NULL, G_TYPE_BOOLEAN, 5,
      MUSTER_TYPE_SESSION, G_TYPE_INT64, G_TYPE_STRING, G_TYPE_INT64, G_TYPE_CANCELLABLE);
  muster_save_signals_install (type);
  signals[END] = g_signal_new ("end", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 4,
                               MUSTER_TYPE_SESSION, G_TYPE_INT64, G_TYPE_INT64, G_TYPE_CANCELLABLE);
}

static void
muster_saver_observer_init (MusterSaverObserver *self G_GNUC_UNUSED)
{
}

MusterSaverObserver *
muster_saver_observer_new (void)
{
  return g_object_new (MUSTER_TYPE_SAVER_OBSERVER, NULL);
}

void
muster_saver_observer_begin (MusterSaverObserver *self)
{
  if (self != NULL)
    g_signal_emit (self, signals[BEGIN], 0);
}

void
muster_saver_observer_before_save (MusterSaverObserver *self, MusterSession *session, gint64 step,
                                   gint64 deadline_us, GCancellable *cancellable)
{
  if (self != NULL)
    g_signal_emit (self, signals[BEFORE_SAVE], 0, session, step, deadline_us, cancellable);
}

gboolean
muster_saver_observer_after_save (MusterSaverObserver *self, MusterSession *session,
                                  const MusterSaved *saved, gint64 deadline_us,
                                  GCancellable *cancellable)
{
  gboolean stops = FALSE;
  if (self != NULL)
    g_signal_emit (self, signals[AFTER_SAVE], 0, session, saved->step, saved->prefix, deadline_us,
                   cancellable, &stops);
  return stops;
}

void
muster_saver_observer_end (MusterSaverObserver *self, MusterSession *session, gint64 step,
                           gint64 deadline_us, GCancellable *cancellable)
{
  if (self != NULL)
    g_signal_emit (self, signals[END], 0, session, step, deadline_us, cancellable);
}
