// SPDX-License-Identifier: Apache-2.0
#include "server/sessions.h"

struct _MusterSessions {
  MusterClock *clock; /* (owned) */
  GRWLock lock;
  GHashTable *table; /* (owned) (element-type utf8 MusterServed) guarded by lock; the keys are the
                        values' */
};

static MusterServed *
served_new (char *handle, MusterSession *session, gint64 timeout_us)
{
  MusterServed *self = g_new0 (MusterServed, 1);
  g_atomic_ref_count_init (&self->refs);
  self->handle = handle;
  self->session = g_object_ref (session);
  self->timeout_us = timeout_us;
  g_mutex_init (&self->extending);
  g_mutex_init (&self->lock);
  self->callables = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free);
  return self;
}

MusterServed *
muster_served_ref (MusterServed *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_served_unref (MusterServed *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_hash_table_unref (self->callables);
  g_mutex_clear (&self->extending);
  g_mutex_clear (&self->lock);
  g_object_unref (self->session);
  g_free (self->handle);
  g_free (self);
}

void
muster_served_add_callable (MusterServed *self, gint64 handle, MusterServedCallable callable)
{
  g_mutex_lock (&self->lock);
  g_hash_table_insert (self->callables, g_memdup2 (&handle, sizeof handle),
                       g_memdup2 (&callable, sizeof callable));
  g_mutex_unlock (&self->lock);
}

static gboolean
no_such_callable (gint64 handle, GError **error)
{
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
               "No such callable handle: %" G_GINT64_FORMAT, handle);
  return FALSE;
}

gboolean
muster_served_find_callable (MusterServed *self, gint64 handle, MusterServedCallable *callable,
                             GError **error)
{
  g_mutex_lock (&self->lock);
  const MusterServedCallable *found = g_hash_table_lookup (self->callables, &handle);
  if (found != NULL)
    *callable = *found;
  g_mutex_unlock (&self->lock);
  return found != NULL || no_such_callable (handle, error);
}

gboolean
muster_served_remove_callable (MusterServed *self, gint64 handle, GError **error)
{
  g_mutex_lock (&self->lock);
  gboolean found = g_hash_table_remove (self->callables, &handle);
  g_mutex_unlock (&self->lock);
  return found || no_such_callable (handle, error);
}

MusterSessions *
muster_sessions_new (MusterClock *clock)
{
  MusterSessions *self = g_new0 (MusterSessions, 1);
  self->clock = g_object_ref (clock);
  g_rw_lock_init (&self->lock);
  self->table =
      g_hash_table_new_full (g_str_hash, g_str_equal, NULL, (GDestroyNotify)muster_served_unref);
  return self;
}

void
muster_sessions_free (MusterSessions *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->table);
  g_rw_lock_clear (&self->lock);
  g_object_unref (self->clock);
  g_free (self);
}

static guint32
random_word (MusterClock *clock)
{
  return (guint32)(muster_clock_random (clock) * 4294967296.0);
}

MusterServed *
muster_sessions_add (MusterSessions *self, MusterSession *session, gint64 timeout_us)
{
  g_autofree char *handle = NULL;
  g_rw_lock_writer_lock (&self->lock);
  do {
    g_free (handle);
    handle = g_strdup_printf ("%08x%08x", random_word (self->clock), random_word (self->clock));
  } while (g_hash_table_contains (self->table, handle));
  MusterServed *served = served_new (g_steal_pointer (&handle), session, timeout_us);
  g_hash_table_insert (self->table, served->handle, muster_served_ref (served));
  g_rw_lock_writer_unlock (&self->lock);
  return served;
}

static MusterServed *
unless_unknown (MusterServed *served, const char *handle, GError **error)
{
  if (served == NULL)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED,
                 "Session %s is not found. Possibly, this master has restarted.", handle);
  return served;
}

MusterServed *
muster_sessions_find (MusterSessions *self, const char *handle, GError **error)
{
  g_rw_lock_reader_lock (&self->lock);
  MusterServed *served = g_hash_table_lookup (self->table, handle);
  if (served != NULL)
    muster_served_ref (served);
  g_rw_lock_reader_unlock (&self->lock);
  return unless_unknown (served, handle, error);
}

MusterServed *
muster_sessions_take (MusterSessions *self, const char *handle, GError **error)
{
  gpointer served = NULL;
  g_rw_lock_writer_lock (&self->lock);
  if (g_hash_table_steal_extended (self->table, handle, NULL, &served))
    g_atomic_int_set (&((MusterServed *)served)->is_closed, TRUE);
  g_rw_lock_writer_unlock (&self->lock);
  return unless_unknown (served, handle, error);
}

GPtrArray *
muster_sessions_take_all (MusterSessions *self)
{
  GPtrArray *all = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_served_unref);
  GHashTableIter iter;
  gpointer value;
  g_rw_lock_writer_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->table);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    MusterServed *served = value;
    g_atomic_int_set (&served->is_closed, TRUE);
    g_ptr_array_add (all, served);
    g_hash_table_iter_steal (&iter);
  }
  g_rw_lock_writer_unlock (&self->lock);
  return all;
}

guint
muster_sessions_size (MusterSessions *self)
{
  g_rw_lock_reader_lock (&self->lock);
  guint size = g_hash_table_size (self->table);
  g_rw_lock_reader_unlock (&self->lock);
  return size;
}
