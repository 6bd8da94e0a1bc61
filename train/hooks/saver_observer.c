// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/saver_observer_private.h"

/* --- the signals that are shared --- */

#define SAVED  "saved"
#define COPIED "copied"
#define FAILED "save-failed"

void
muster_save_signals_install (GType type)
{
  g_signal_new (SAVED, type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 4, G_TYPE_STRING,
                G_TYPE_INT64, G_TYPE_INT64, G_TYPE_STRING);
  g_signal_new (COPIED, type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 3, G_TYPE_STRING,
                G_TYPE_INT64, G_TYPE_STRING);
  g_signal_new (FAILED, type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 3, G_TYPE_INT64,
                G_TYPE_ERROR, G_TYPE_UINT);
}

void
muster_save_signals_saved (const MusterSaved *saved, gpointer object)
{
  g_signal_emit_by_name (object, SAVED, saved->prefix, saved->step, saved->took_us, saved->why);
}

void
muster_save_signals_copied (const MusterTierCopied *copied, gpointer object)
{
  g_signal_emit_by_name (object, COPIED, copied->prefix, copied->step, copied->why);
}

void
muster_save_signals_failed (const MusterFailedSave *failed, gpointer object)
{
  g_signal_emit_by_name (object, FAILED, failed->step, failed->why, failed->n_in_a_row);
}

/* --- the observer --- */

struct _MusterSaverObserver {
  GObject parent;
  MusterSaverListener listener;
};

G_DEFINE_FINAL_TYPE (MusterSaverObserver, muster_saver_observer, G_TYPE_OBJECT)

enum { BEFORE_SAVE, AFTER_SAVE, END, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
emit_before_save (MusterSession *session, gint64 step, gint64 deadline_us G_GNUC_UNUSED,
                  GCancellable *cancellable G_GNUC_UNUSED, gpointer self)
{
  g_signal_emit (self, signals[BEFORE_SAVE], 0, session, step);
}

static gboolean
emit_after_save (MusterSession *session, gint64 step, const char *prefix,
                 gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
                 gpointer self)
{
  gboolean stops = FALSE;
  g_signal_emit (self, signals[AFTER_SAVE], 0, session, step, prefix, &stops);
  return !stops;
}

static void
emit_end (MusterSession *session, gint64 step, gint64 deadline_us G_GNUC_UNUSED,
          GCancellable *cancellable G_GNUC_UNUSED, gpointer self)
{
  g_signal_emit (self, signals[END], 0, session, step);
}

static void
muster_saver_observer_class_init (MusterSaverObserverClass *klass)
{
  const GType type = G_TYPE_FROM_CLASS (klass);
  signals[BEFORE_SAVE] = g_signal_new ("before-save", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                       G_TYPE_NONE, 2, MUSTER_TYPE_SESSION, G_TYPE_INT64);
  signals[AFTER_SAVE] = g_signal_new ("after-save", type, G_SIGNAL_RUN_LAST, 0,
                                      g_signal_accumulator_true_handled, NULL, NULL, G_TYPE_BOOLEAN,
                                      3, MUSTER_TYPE_SESSION, G_TYPE_INT64, G_TYPE_STRING);
  muster_save_signals_install (type);
  signals[END] = g_signal_new ("end", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 2,
                               MUSTER_TYPE_SESSION, G_TYPE_INT64);
}

static void
muster_saver_observer_init (MusterSaverObserver *self)
{
  self->listener = (MusterSaverListener){.before_save = emit_before_save,
                                         .after_save = emit_after_save,
                                         .end = emit_end,
                                         .saved = muster_save_signals_saved,
                                         .copied = muster_save_signals_copied,
                                         .failed = muster_save_signals_failed,
                                         .user_data = self};
}

MusterSaverObserver *
muster_saver_observer_new (void)
{
  return g_object_new (MUSTER_TYPE_SAVER_OBSERVER, NULL);
}

const MusterSaverListener *
muster_saver_observer_listener (MusterSaverObserver *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return &self->listener;
}
