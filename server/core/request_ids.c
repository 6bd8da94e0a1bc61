// SPDX-License-Identifier: Apache-2.0
#include "server/core/request_ids.h"

#include "base/error.h"

/* The number that TensorFlow's server remembers. */
#define N_REMEMBERED 10000

struct _MusterRequestIds {
  GMutex lock;
  GHashTable *known;         /* (owned) the set of the IDs in ring; guarded by lock */
  gint64 ring[N_REMEMBERED]; /* guarded by lock; 0: none yet */
  guint next;                /* guarded by lock: the oldest */
};

MusterRequestIds *
muster_request_ids_new (void)
{
  MusterRequestIds *self = g_new0 (MusterRequestIds, 1);
  g_mutex_init (&self->lock);
  self->known = g_hash_table_new (g_int64_hash, g_int64_equal);
  return self;
}

void
muster_request_ids_free (MusterRequestIds *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->known);
  g_mutex_clear (&self->lock);
  g_free (self);
}

/* Returns FALSE if id is already known. */
static gboolean
remember (MusterRequestIds *self, gint64 id)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  if (g_hash_table_contains (self->known, &id))
    return FALSE;
  gint64 *oldest = &self->ring[self->next];
  if (*oldest != 0)
    g_hash_table_remove (self->known, oldest);
  *oldest = id;
  g_hash_table_add (self->known, oldest);
  self->next = (self->next + 1) % N_REMEMBERED;
  return TRUE;
}

void
muster_request_ids_leave (MusterRequestIds *self, gint64 id)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  gint64 *known = g_hash_table_lookup (self->known, &id);
  if (known == NULL)
    return;
  g_hash_table_remove (self->known, known);
  *known = 0;
}

gboolean
muster_request_ids_enter (MusterRequestIds *self, gint64 id, const char *method, GError **error)
{
  if (id == 0 || remember (self, id))
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_ABORTED,
                      "The same %s (Master) request was received twice. Its request_id is "
                      "%" G_GINT64_FORMAT,
                      method, id);
}
