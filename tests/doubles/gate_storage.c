// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/gate_storage.h"

#include "base/clock.h"

struct _MusterGateStorage {
  MusterForwardingStorage parent;
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  gboolean is_closed[MUSTER_N_GATES];
  guint n_waiting[MUSTER_N_GATES];
  GThread *let_through; /* (not owned) (nullable) */
  guint n_failures;
  MusterError code;
  char *message; /* (owned) (nullable) */
};

static gint64
patience (void)
{
  return g_get_monotonic_time () + 30 * MUSTER_SECOND;
}

static void
pass (MusterGateStorage *self, MusterGate gate)
{
  const gint64 until_us = patience ();
  if (self->let_through == g_thread_self ())
    return;
  self->n_waiting[gate]++;
  g_cond_broadcast (&self->changed);
  while (self->is_closed[gate] && g_cond_wait_until (&self->changed, &self->lock, until_us))
    ;
  self->n_waiting[gate]--;
}

static gboolean
gate_make_directory (MusterStorage *storage, const char *directory, GError **error)
{
  MusterGateStorage *self = MUSTER_GATE_STORAGE (storage);
  g_mutex_lock (&self->lock);
  pass (self, MUSTER_GATE_BEGIN);
  gboolean fails = self->n_failures > 0;
  if (fails) {
    self->n_failures--;
    g_set_error_literal (error, MUSTER_ERROR, (gint)self->code, self->message);
  }
  g_mutex_unlock (&self->lock);
  return !fails && muster_storage_make_directory (muster_local_storage (), directory, error);
}

/* The name that this thread renamed last, if it is the side file's: that is written by who claims a
 * directory or begins a run as well, before any save. */
static __thread gboolean is_side_file;

static gboolean
gate_rename (MusterStorage *storage G_GNUC_UNUSED, const char *from, const char *to, GError **error)
{
  is_side_file = g_str_has_suffix (to, "/checkpoint.muster");
  return muster_storage_rename (muster_local_storage (), from, to, error);
}

static gboolean
gate_sync_directory (MusterStorage *storage, const char *directory, GError **error)
{
  MusterGateStorage *self = MUSTER_GATE_STORAGE (storage);
  g_mutex_lock (&self->lock);
  if (!is_side_file)
    pass (self, MUSTER_GATE_PUBLISH);
  is_side_file = FALSE;
  g_mutex_unlock (&self->lock);
  return muster_storage_sync_directory (muster_local_storage (), directory, error);
}

static void
storage_init (MusterStorageInterface *iface)
{
  iface->rename = gate_rename;
  iface->make_directory = gate_make_directory;
  iface->sync_directory = gate_sync_directory;
}

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterGateStorage, muster_gate_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE, storage_init))

static void
muster_gate_storage_finalize (GObject *object)
{
  MusterGateStorage *self = MUSTER_GATE_STORAGE (object);
  g_free (self->message);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (muster_gate_storage_parent_class)->finalize (object);
}

static void
muster_gate_storage_class_init (MusterGateStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_gate_storage_finalize;
}

static void
muster_gate_storage_init (MusterGateStorage *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
}

MusterGateStorage *
muster_gate_storage_new (void)
{
  return g_object_new (MUSTER_TYPE_GATE_STORAGE, NULL);
}

static void
set_gate (MusterGateStorage *self, MusterGate gate, gboolean is_closed)
{
  g_mutex_lock (&self->lock);
  self->is_closed[gate] = is_closed;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
muster_gate_storage_let_through (MusterGateStorage *self)
{
  g_mutex_lock (&self->lock);
  self->let_through = g_thread_self ();
  g_mutex_unlock (&self->lock);
}

void
muster_gate_storage_close_gate (MusterGateStorage *self, MusterGate gate)
{
  set_gate (self, gate, TRUE);
}

void
muster_gate_storage_open_gate (MusterGateStorage *self, MusterGate gate)
{
  set_gate (self, gate, FALSE);
}

gboolean
muster_gate_storage_wait_for_arrival (MusterGateStorage *self, MusterGate gate)
{
  const gint64 until_us = patience ();
  g_mutex_lock (&self->lock);
  while (self->n_waiting[gate] == 0 && g_cond_wait_until (&self->changed, &self->lock, until_us))
    ;
  gboolean arrived = self->n_waiting[gate] > 0;
  g_mutex_unlock (&self->lock);
  return arrived;
}

void
muster_gate_storage_fail (MusterGateStorage *self, guint n_times, MusterError code,
                          const char *message)
{
  g_mutex_lock (&self->lock);
  self->n_failures = n_times;
  self->code = code;
  g_free (self->message);
  self->message = g_strdup (message);
  g_mutex_unlock (&self->lock);
}
